"""The work queue of controller-runtime: each key once, never by two workers, with back-off.

A key that waits for its time is in the queue once, with the earliest time that was asked for
(`pkg/controller/priorityqueue`).
"""

import asyncio
from collections import Counter, deque

from tests.support.bmo_double.throttle import Bucket
from tests.support.ironic_double.agenda import Agenda

FIRST_BACK_OFF, LONGEST_BACK_OFF = 0.005, 1000.0
RATE, BURST = 10.0, 100


class WorkQueue:
    """Keys that wait for a worker."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._bucket = Bucket(agenda, RATE, BURST)
        self._waiting: deque[str] = deque()
        self._dirty: set[str] = set()
        self._working: set[str] = set()
        self._ripe: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._filled = asyncio.Event()

    def add(self, key: str) -> None:
        """Queue a key; if a worker has it, it is queued again when that is done."""
        self._ripe.pop(key, None)
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._push(key)

    def _push(self, key: str) -> None:
        self._waiting.append(key)
        self._filled.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Queue a key in this many seconds, unless it is queued already, or sooner."""
        self._agenda.catch_up()
        at = self._agenda.now + seconds
        if key in self._dirty or self._ripe.get(key, at + 1) <= at:
            return
        self._ripe[key] = at
        self._agenda.at(seconds, lambda: self._ripen(key, at))

    def _ripen(self, key: str, at: float) -> None:
        if self._ripe.get(key) == at:
            self.add(key)

    def add_limited(self, key: str) -> None:
        """Queue a key with back-off: each time later, and not too many of all."""
        seconds = min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2.0 ** self._failures[key])
        self._failures[key] += 1
        self.add_after(key, max(seconds, self._bucket.reserve()))

    def forget(self, key: str) -> None:
        """Start the back-off of a key from the beginning."""
        del self._failures[key]

    async def take(self) -> str:
        """Return the next key, and keep it from other workers."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        key = self._waiting.popleft()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: str) -> None:
        """Give a key back."""
        self._working.discard(key)
        if key in self._dirty:
            self._push(key)
