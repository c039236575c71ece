"""Messages for people while a command waits and runs: lines on standard error only."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import IO

from moorage.client.run.api_types import Waiting
from moorage.client.run.durations import OVERDUE, SOON, eta_spoken, spoken
from moorage.client.run.exit_codes import failure_json
from moorage.client.run.printing import printable
from moorage.client.run.terminal import unstopped

LIVE_SECONDS = 1.0
LOG_SECONDS = 60.0
WRITE_SECONDS = 1.0
"""How long to wait for the reader of standard error; then the line is dropped."""

CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Prints messages as lines; on a terminal, shows the standing in one line that is updated."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        # `sys.stderr` is None if the shell has closed it.
        target: IO[str] | None = sys.stderr if stream is None else stream
        self._stream = target
        self.live = target is not None and target.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False
        self._next = 0.0

    def say(self, text: str) -> None:
        """Print one line."""
        self.clear()
        self._write(f"moorage: {printable(' '.join(text.split()))}\n")

    def fail(
        self, exit_code: int, text: str, code: str | None = None, as_json: bool = False
    ) -> None:
        """Report why a command fails: on one line, or as JSON if requested."""
        if not as_json:
            self.say(text)
            return
        self.clear()
        self._write(f"{failure_json(exit_code, ' '.join(text.split()), code)}\n")

    def standing(self, text: str, now: float) -> None:
        """Print the standing, at most once per second on a terminal, once per minute in a log."""
        if now < self._next:
            return
        self._next = now + (LIVE_SECONDS if self.live else LOG_SECONDS)
        if not self.live:
            self.say(text)
            return
        import shutil  # deferred: it loads compressions, and only a terminal needs it

        width = shutil.get_terminal_size().columns - 1
        self._write(CLEAR_LINE + f"moorage: {printable(text)}"[:width])
        self._shown = True

    def first_standing(self, text: str, now: float) -> None:
        """Print the first standing of a ticket as a line that stays; a log has no other at once."""
        self.say(text)
        if not self.live:
            self._next = now + LOG_SECONDS

    def clear(self) -> None:
        """Erase the live line."""
        if self._shown:
            self._write(CLEAR_LINE)
            self._shown = False

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        # A closed standard error must not end the command or lose the lease.
        with suppress(OSError, ValueError), unstopped():
            if _takes_more(self._stream):
                self._stream.write(text)
                self._stream.flush()


def _takes_more(stream: IO[str]) -> bool:
    """Return whether a write would not block for long, as it does with a pager at rest."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True  # it is not a file
    return bool(select.select([], [descriptor], [], WRITE_SECONDS)[1])


def standing_of(
    pools: str, waiting: Waiting | None, waited: float, trouble: str | None, age: float = 0.0
) -> str:
    """Return the standing of a ticket as text for people: place, time to go, and the reason.

    `age`: seconds since the answer was received; they are subtracted from the time to go.
    """
    if trouble is not None:
        return f"waiting for {pools} ({spoken(waited)} so far): {trouble}"
    if waiting is None:
        return f"waiting for {pools} ({spoken(waited)} so far)"
    parts = [f"place {waiting.position}"]
    if waiting.overdue:
        parts.append(OVERDUE)
    elif waiting.eta_seconds is not None:
        parts.append(_eta(waiting.eta_seconds[0] - age, waiting.eta_seconds[1] - age))
    if waiting.reason:
        parts.append(waiting.reason)
    return f"waiting for {pools}: {'; '.join(parts)} ({spoken(waited)} so far)"


def ticket_of(ticket: str, pools: str, waiting: Waiting, pages: str | None = None) -> str:
    """Return the first standing of a ticket as text for people, with its id for other commands.

    `pages`: the address of the server's pages for people; None: it has none.
    """
    text = f"ticket {ticket} waits in line of {pools}: place {waiting.position}"
    if waiting.overdue:
        text += f", {OVERDUE}"
    elif waiting.eta_seconds is not None:
        span = eta_spoken(*waiting.eta_seconds)
        text += f", expected {span}" if span in (OVERDUE, SOON) else f", expected in {span}"
    text = f"{text}; {waiting.reason}" if waiting.reason else text
    return text if pages is None else f"{text}; see {pages}/leases/{ticket}"


def _eta(earliest: float, latest: float) -> str:
    span = eta_spoken(earliest, latest)
    if span in (OVERDUE, SOON):
        return span
    return f"{span} to go" if " " in span else f"about {span} to go"
