"""Measures how long one callback blocks the event loop, in a server that contains the instrument.

While a callback runs, nothing else is answered. What counts is the processor time of the loop's own
thread, which does not depend on other processes. The lateness of a timer shows the rest: what other
threads do with the interpreter's lock.

    python -m bench.held LISTEN DATABASE

serves as `moorage serve` does, on a watched loop: each line on its standard input is answered with
one line of JSON, the longest callback since the last one.
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

from moorage import config
from moorage.serve import lifecycle

BEAT_SECONDS = 0.005
"""Between two looks at how late a timer comes."""

PREFIX = "held: "

_Handle: Any = Handle
"""What every loop of asyncio runs; only this instrument may use it."""


@dataclass
class Held:
    """The longest callback of some time."""

    milliseconds: float = 0.0
    """Processor time of the loop's thread."""
    what: str = ""
    late: float = 0.0
    """Milliseconds that the latest timer came late."""
    callbacks: int = 0


class Watched:
    """Measures every callback that asyncio's own loop runs, as long as `watching` is entered."""

    def __init__(self) -> None:
        self.longest = Held()

    def taken(self) -> Held:
        """Return the longest callback since the last call."""
        longest, self.longest = self.longest, Held()
        return longest

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Measure until this is left."""
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
                    longest.milliseconds, longest.what = spent, _told(handle)

        _Handle._run = measured
        try:
            yield
        finally:
            _Handle._run = run

    async def beat(self) -> None:
        """Note the lateness of timers until the process ends."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self.longest.late = max(self.longest.late, 1_000 * (loop.time() - due))


def _told(handle: Handle) -> str:
    """Name what a callback belongs to: the coroutine, where it is a task's."""
    callback: Any = handle._callback  # type: ignore[attr-defined]  # asyncio has no public name for it
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine = owner.get_coro()
        return getattr(coroutine, "__qualname__", repr(coroutine))
    return getattr(callback, "__qualname__", repr(callback))


def _loop(watched: Watched) -> asyncio.AbstractEventLoop:
    """Return a loop that reports on standard output for each line on standard input."""
    loop = asyncio.SelectorEventLoop()

    def asked() -> None:
        for _ in os.read(sys.stdin.fileno(), 4_096).splitlines():
            sys.stdout.write(f"{PREFIX}{json.dumps(asdict(watched.taken()))}\n")
        sys.stdout.flush()

    def begin() -> None:
        loop.add_reader(sys.stdin.fileno(), asked)
        beats.append(loop.create_task(watched.beat()))

    beats: list[asyncio.Task[None]] = []
    loop.call_soon(begin)
    return loop


def main(listen: str, database: str, backups: str) -> int:
    """Serve on a loop that is watched, until a signal ends it."""
    options = {"listen": listen, "database": database, "backup_directory": backups}
    settings = config.load({**options, "auth": "noauth2"}).settings
    watched = Watched()
    with watched.watching():
        return lifecycle.run(settings, lambda: _loop(watched))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
