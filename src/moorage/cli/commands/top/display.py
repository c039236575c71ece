"""What `moorage top` draws, and what keys do."""

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from textwrap import wrap
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple

import click

from moorage.cli.commands.top.rooms import AdmissionRoom, FleetRoom, Room
from moorage.cli.commands.top.screen import QUIT, Screen
from moorage.cli.support.output import printable
from moorage.cli.support.tables import BAD, FAINT, draw
from moorage.cli.support.terminal import has_colours, size_of_terminal, width_of, wrapped
from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, Transport, UnreachableError
from moorage.core.ages import age_text

SLOW_SECONDS = 5.0
"""A request that takes longer is remarked on, although it may still be answered."""


class Seen(NamedTuple):
    """The last answer about a room, and when it came: by our clock, and by the server's."""

    value: Any
    as_of: str | None
    at: float
    server_time: datetime | None

    @property
    def age(self) -> float:
        """Return how old it is, in seconds."""
        return monotonic() - self.at


class Poller:
    """What the server has answered about each room, and what is wrong with it now."""

    def __init__(self, transport: Transport, every: float, first: Room) -> None:
        """Ask about the first room. Raises UnreachableError, RefusedError, UndecodableError."""
        self._transport, self._every = transport, every
        self._wanted = Condition()
        self._soon = False
        self._room = first
        self._asking: float | None = None
        self._trouble: dict[str, str] = {}
        self.seen: dict[str, Seen] = {}
        self.fault: Exception | None = None
        """What has ended the thread; nothing does but a fault of this program."""
        self._ask(first)

    def start(self, ring: Callable[[], None]) -> None:
        """Ask again and again until the process ends; `ring` is called after each answer."""
        Thread(target=self._run, args=(ring,), daemon=True).start()

    def look(self, room: Room) -> None:
        """Ask about this room from now on, and at once."""
        with self._wanted:
            self._room, self._soon = room, True
            self._wanted.notify()

    def trouble(self, room: Room) -> str | None:
        """Return why what is shown of a room is old; None: nothing is wrong."""
        asking = self._asking
        if trouble := self._trouble.get(room.name):
            return f"{trouble}; trying again"
        if asking is not None and monotonic() - asking >= SLOW_SECONDS:
            return f"no answer for {int(monotonic() - asking)}s; still waiting"
        return None

    def _run(self, ring: Callable[[], None]) -> None:
        while True:
            with self._wanted:
                self._wanted.wait_for(lambda: self._soon, self._every)
                self._soon, room = False, self._room
            try:
                self._ask(room)
                self._trouble.clear()
            except (UnreachableError, RefusedError, UndecodableError) as error:
                self._trouble[room.name] = str(error)
            except Exception as fault:
                self.fault = fault
            ring()
            if self.fault is not None:
                return

    def _ask(self, room: Room) -> None:
        self._asking = monotonic()
        try:
            found = room.ask()
        finally:
            self._asking = None
        time = self._transport.server_time
        self.seen[room.name] = Seen(found.value, found.as_of, monotonic(), time)


TICK_SECONDS = 1.0
"""The screen is drawn at least so often: ages rise."""

FRESH_SECONDS = 3.0
"""An answer that is not older is of now: by default the next one comes after two."""

REMARK_LINES = 2
"""Lines that the totals, what is wrong, or missing columns may take."""

ESCAPE = re.compile(r"(\x1b\[[0-9;]*m)")

HELP = (
    ("up down", "one line"),
    ("PgUp PgDn", "one screen"),
    ("Home End", "the first line, the last line"),
    ("tab 1 2", "admission (pools and lines), fleet (capacity, agents, reporters)"),
    ("s", "next order: busy ones first, by name, full ones first"),
    ("? h", "show or hide this help"),
    ("q Ctrl-C", "quit"),
)
"""Keys, and what they do."""

KEYS_WIDTH = 13


class _Line(NamedTuple):
    """A line below the totals, and the title of the table that it belongs to."""

    title: str
    text: str
    is_row: bool


def live(transport: Transport, every: float, *, wide: bool) -> None:
    """Show the rooms until the user quits. Raises the first failure; later ones are shown."""
    rooms = (AdmissionRoom(transport), FleetRoom(transport))
    poller = Poller(transport, every, rooms[0])
    display = Display(rooms, poller, wide=wide)
    try:
        with Screen() as screen:
            poller.start(screen.wake)
            while poller.fault is None:
                screen.draw(display.frame(size_of_terminal()))
                for key in screen.keys(TICK_SECONDS):
                    if key in (QUIT, "Q"):
                        return
                    display.press(key)
        raise poller.fault
    except KeyboardInterrupt:
        return


class Display:
    """Draws one of the rooms."""

    def __init__(self, rooms: tuple[Room, ...], poller: Poller, *, wide: bool) -> None:
        self._rooms, self._poller, self._wide = rooms, poller, wide
        self._room = rooms[0]
        self._orders = {room.name: 0 for room in rooms}
        self._offsets = {room.name: 0 for room in rooms}
        self._last = self._page = 0
        """The offset of the last screen, and the lines of one."""
        self._helping = False
        self._colours = has_colours(os.environ)

    def press(self, key: str) -> None:
        """Do what a key asks for; others do nothing."""
        room, offset = self._room, self._offsets[self._room.name]
        moved = {
            "up": offset - 1,
            "down": offset + 1,
            "page up": offset - self._page,
            "page down": offset + self._page,
            "home": 0,
            "end": self._last,
        }
        if key in moved:
            self._offsets[room.name] = max(0, min(moved[key], self._last))
        elif key == "s":
            self._orders[room.name] = (self._orders[room.name] + 1) % len(room.orders)
            self._offsets[room.name] = 0
        elif key in "?h":
            self._helping = not self._helping
        elif key in ("tab", "1", "2"):
            number = self._rooms.index(room) + 1 if key == "tab" else int(key) - 1
            self._room = self._rooms[number % len(self._rooms)]
            self._poller.look(self._room)

    def frame(self, size: os.terminal_size) -> list[str]:
        """Return what to draw on a screen of this size: all of its lines."""
        width, height = size.columns, size.lines
        top = self._header(width)
        notes: list[str]
        if self._helping:
            body, notes, place = [*_help(width)], [], ""
        else:
            lines, notes = self._lines(width)
            body, place = self._window(lines, height - len(top) - len(notes) - 1)
        room = max(0, height - len(top) - len(notes) - 1)
        body = [*body[:room], *[""] * (room - len(body))]
        drawn = [*top, *body, *notes, self._footer(place, width)]
        return [_cropped(line, width) for line in drawn[:height]]

    def _header(self, width: int) -> list[str]:
        """Return the first lines: where we are, how old it is, the totals, what is wrong."""
        seen = self._poller.seen.get(self._room.name)
        parts = []
        if seen is not None:
            parts = ["now" if seen.age <= FRESH_SECONDS else f"{age_text(seen.age)} old"]
            if seen.as_of is not None:
                parts.insert(0, f"revision {seen.as_of}")
            if seen.server_time is not None:
                parts.insert(0, f"{seen.server_time:%H:%M:%S} UTC")
        name, age = f"moorage top: {self._room.name}", "  ".join(parts)
        space = " " * max(2, width - width_of(name) - width_of(age))
        lines = [f"{self._styled(name, bold=True)}{space}{age}"]
        totals = "" if seen is None else self._room.totals(seen.value)
        lines += wrapped(totals, width)[:REMARK_LINES] or [""]
        trouble = printable(self._poller.trouble(self._room) or "")
        lines += [self._styled(one, fg=BAD) for one in wrap(trouble, width)[:REMARK_LINES]]
        return lines

    def _lines(self, width: int) -> tuple[list[_Line], list[str]]:
        """Return all lines of the tables, and the lines that name missing columns."""
        seen = self._poller.seen.get(self._room.name)
        if seen is None:
            return [_Line("", "", is_row=False)], []
        lines: list[_Line] = []
        notes: list[str] = []
        order = self._room.orders[self._orders[self._room.name]]
        for table in self._room.tables(seen.value, order):
            if not table.rows:
                continue
            drawn = draw(
                table.columns, table.rows, None if self._wide else width, colours=self._colours
            )
            if lines:
                lines += [_Line(lines[-1].title, text, is_row=False) for text in ("", drawn.title)]
            lines += [_Line(drawn.title, row, is_row=True) for row in drawn.rows]
            notes = notes or drawn.rest[:REMARK_LINES]
        return lines or [_Line("", "there is nothing here yet", is_row=False)], notes

    def _window(self, lines: list[_Line], height: int) -> tuple[list[str], str]:
        """Return the lines that fit below the title of the first one, and which ones they are."""
        self._page = max(1, height - 1)
        self._last = max(0, len(lines) - self._page)
        offset = self._offsets[self._room.name] = min(self._offsets[self._room.name], self._last)
        shown = lines[offset : offset + self._page]
        count, before = (sum(one.is_row for one in some) for some in (lines, lines[:offset]))
        here = sum(one.is_row for one in shown)
        place = f"{before + 1}-{before + here} of {count}" if here < count else f"all {count}"
        return [shown[0].title, *(one.text for one in shown)], place if count else ""

    def _footer(self, place: str, width: int) -> str:
        """Return the last line: which rows are shown, in which order, and the keys."""
        order = self._room.orders[self._orders[self._room.name]]
        other = self._rooms[(self._rooms.index(self._room) + 1) % len(self._rooms)].name
        parts = [
            f"{place}, {order}" if place else "",
            f"tab {other}",
            "s order",
            "? help",
            "q quit",
        ]
        return self._styled("  ".join(filter(None, parts)), fg=FAINT)

    def _styled(self, text: str, *, fg: str | None = None, bold: bool | None = None) -> str:
        return click.style(text, fg=fg, bold=bold) if self._colours else text


def _help(width: int) -> Iterator[str]:
    """Yield the lines of the help."""
    for keys, text in HELP:
        for number, line in enumerate(wrapped(text, max(1, width - KEYS_WIDTH))):
            yield f"{'' if number else keys:{KEYS_WIDTH}}{line}"


def _cropped(line: str, width: int) -> str:
    """Return a line with at most this width; colours end with it."""
    if width_of(ESCAPE.sub("", line)) <= width:
        return line
    return "".join(_pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    for number, part in enumerate(ESCAPE.split(line)):
        if number % 2:  # what stands between texts: a colour, or its end
            yield part
            continue
        for one in part:
            width -= width_of(one)
            if width < 0:
                break
            yield one
