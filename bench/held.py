"""Measures how long single callbacks block the event loop of a server.

While a callback runs, no other request is answered. Its processor time is measured, because that
does not depend on the load of the machine. The delay of timers is measured, too: it shows how long
other threads keep the interpreter's lock.

    python -m bench.held LISTEN DATABASE BACKUPS

serves like `moorage serve`, with a measured event loop: for each line on standard input it prints
one line of JSON about the longest callback since the previous line.
"""

import asyncio
import json
import os
import sys
import time
from asyncio import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from moorage.config import settings as config
from moorage.serve import lifecycle

BEAT_SECONDS = 0.005
"""The interval of the timer whose delay is measured."""

PREFIX = "held: "

_Handle: Any = Handle
"""The class whose `_run` executes every callback of asyncio's loops; it is private to asyncio."""


@dataclass
class LongestCallback:
    """The longest callback of a period."""

    milliseconds: float = 0.0
    """Processor time of the thread of the loop."""
    what: str = ""
    late: float = 0.0
    """The longest delay of a timer, in milliseconds."""
    callbacks: int = 0


class CallbackTimer:
    """Measures every callback of asyncio's own loops while the context `watching` is entered."""

    def __init__(self) -> None:
        self.longest = LongestCallback()

    def take(self) -> LongestCallback:
        """Return the longest callback since the last call."""
        longest, self.longest = self.longest, LongestCallback()
        return longest

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure until the context is left."""
        run = _Handle._run
        clock = time.thread_time

        def measured(handle: Handle) -> None:
            began = clock()
            try:
                run(handle)
            finally:
                spent = 1_000 * (clock() - began)
                longest = self.longest
                longest.callbacks += 1
                if spent > longest.milliseconds:
                    longest.milliseconds, longest.what = spent, _callback_name(handle)

        _Handle._run = measured
        try:
            yield
        finally:
            _Handle._run = run

    async def beat(self) -> None:
        """Measure the delays of a timer until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self.longest.late = max(self.longest.late, 1_000 * (loop.time() - due))


def _callback_name(handle: Handle) -> str:
    """Return the name of a callback, or that of the coroutine of its task."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # asyncio has no public name for it
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine = owner.get_coro()
        return getattr(coroutine, "__qualname__", repr(coroutine))
    return getattr(callback, "__qualname__", repr(callback))


def _loop(timer: CallbackTimer) -> asyncio.AbstractEventLoop:
    """Return a loop that prints the longest callback for each line on standard input."""
    loop = asyncio.SelectorEventLoop()

    def asked() -> None:
        for _ in os.read(sys.stdin.fileno(), 4_096).splitlines():
            sys.stdout.write(f"{PREFIX}{json.dumps(asdict(timer.take()))}\n")
        sys.stdout.flush()

    def begin() -> None:
        loop.add_reader(sys.stdin.fileno(), asked)
        beats.append(loop.create_task(timer.beat()))

    beats: list[asyncio.Task[None]] = []
    loop.call_soon(begin)
    return loop


def main(listen: str, database: str, backups: str) -> int:
    """Serve with a measured event loop until a signal arrives."""
    options = {"listen": listen, "database": database, "backup_directory": backups}
    loaded = config.load({**options, "auth": "noauth2"})
    timer = CallbackTimer()
    with timer.measuring():
        return lifecycle.run(loaded, lambda: _loop(timer))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
