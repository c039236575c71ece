"""What people are told while a command waits and runs: lines on standard error, never elsewhere."""

from __future__ import annotations

import os
import select
import shutil
import sys
from contextlib import suppress
from typing import IO

from moorage.client.run.api_types import Waiting
from moorage.client.run.durations import OVERDUE, SOON, eta_spoken, spoken
from moorage.client.run.failures import failure_json
from moorage.client.run.printing import printable
from moorage.client.run.terminal import unstopped

LIVE_SECONDS = 1.0
LOG_SECONDS = 60.0
WRITE_SECONDS = 1.0
"""How long to wait for whoever reads our lines; then one is left out."""

CLEAR_LINE = "\r\x1b[K"


class Notices:
    """Says things in lines; where it stands in line on one live line, if that is a terminal."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        # Python has no standard error if the shell has closed it.
        told: IO[str] | None = sys.stderr if stream is None else stream
        self._stream = told
        self.live = told is not None and told.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False
        self._next = 0.0

    def say(self, text: str) -> None:
        """Print one line."""
        self.clear()
        self._write(f"moorage: {printable(' '.join(text.split()))}\n")

    def fail(
        self, exit_code: int, text: str, code: str | None = None, as_json: bool = False
    ) -> None:
        """Say why a command fails: in one line, as JSON if it was asked for that."""
        if not as_json:
            self.say(text)
            return
        self.clear()
        self._write(f"{failure_json(exit_code, ' '.join(text.split()), code)}\n")

    def standing(self, text: str, now: float) -> None:
        """Print where it stands, as often as is useful: every second, in a log every minute."""
        if now < self._next:
            return
        self._next = now + (LIVE_SECONDS if self.live else LOG_SECONDS)
        if not self.live:
            self.say(text)
            return
        width = shutil.get_terminal_size().columns - 1
        self._write(CLEAR_LINE + f"moorage: {printable(text)}"[:width])
        self._shown = True

    def clear(self) -> None:
        """Take the live line away."""
        if self._shown:
            self._write(CLEAR_LINE)
            self._shown = False

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        # If nobody reads it any more that is no reason to lose a command or a lease.
        with suppress(OSError, ValueError), unstopped():
            if _takes_more(self._stream):
                self._stream.write(text)
                self._stream.flush()


def _takes_more(stream: IO[str]) -> bool:
    """Would a line be taken soon? Nobody can wait for a pager that is not scrolled."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True  # it is no file
    return bool(select.select([], [descriptor], [], WRITE_SECONDS)[1])


def standing_of(
    pools: str, waiting: Waiting | None, waited: float, trouble: str | None, age: float = 0.0
) -> str:
    """Return where a ticket stands, for people: place, time to go, and what binds.

    `age`: seconds since that was told; the time to go counts down meanwhile.
    """
    if trouble is not None:
        return f"waiting for {pools}: {trouble} ({spoken(waited)} so far)"
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


def _eta(earliest: float, latest: float) -> str:
    told = eta_spoken(earliest, latest)
    if told in (OVERDUE, SOON):
        return told
    return f"{told} to go" if " " in told else f"about {told} to go"
