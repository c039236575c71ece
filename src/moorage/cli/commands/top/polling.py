"""Asks the server in a thread of its own, so that keys work while it does not answer."""

from collections.abc import Callable
from datetime import datetime
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple

from moorage.cli.commands.top.rooms import Room
from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, Transport, UnreachableError

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
