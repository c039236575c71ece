"""When agents were last heard of, in the memory of this process.

Every process keeps what it has heard itself, and learns from the rows of the others. Ages count
only while the service was running: an outage makes nobody older.
"""

from collections.abc import Callable

from moorage.core.clock import SECOND, Instant
from moorage.core.fleet.liveness import Silence, grace
from moorage.store.fleet.heard import Exchange

EVERY = 5 * SECOND
"""How often a process overwrites its row."""

OUTAGE = 3 * EVERY
"""If no process has written its row for longer, the service was not running."""


class SignsOfLife:
    """The monotonic time at which each agent was last heard of, by its number."""

    def __init__(self, monotonic: Callable[[], int], *, alone: bool) -> None:
        """Create it; `alone`: no other process serves this database."""
        self._monotonic = monotonic
        self._alone = alone
        self._heard: dict[int, int] = {}
        self._began = monotonic()
        self._outage_ended: int | None = None
        self._merged: dict[str, Instant] = {}
        """The time of the last row of each other process."""
        self._exchanged: int | None = None
        """When rows were last exchanged."""

    def note(self, number: int) -> None:
        """Note that an agent was heard of just now."""
        self._heard[number] = self._monotonic()

    def note_age(self, number: int, age: int) -> None:
        """Note that an agent was heard of this long ago, unless it was heard of since."""
        heard = self._monotonic() - age
        if heard > self._heard.get(number, heard - 1):
            self._heard[number] = heard

    def forget(self, number: int) -> None:
        """Forget an agent: another one may get its number."""
        self._heard.pop(number, None)

    def ages(self) -> dict[int, int]:
        """Return how long ago each agent was last heard of."""
        now = self._monotonic()
        return {number: now - heard for number, heard in self._heard.items()}

    def recent(self, age: int) -> set[int]:
        """Return the agents that were heard of at most this long ago."""
        since = self._monotonic() - age
        return {number for number, heard in self._heard.items() if heard >= since}

    def age(self, number: int) -> int:
        """Return how long ago an agent was last heard of; unknown: since this process began."""
        return self._monotonic() - self._heard.get(number, self._began)

    def silence(self, number: int, ttl: int) -> Silence:
        """Return how long an agent is silent, and its grace period after an outage."""
        age = self.age(number)
        ended = self._outage_ended
        since = None if ended is None else self._monotonic() - ended
        return Silence(age, grace(age, since, ttl))

    def merge(self, exchange: Exchange, own: str) -> int:
        """Learn from the rows of all processes; return for how long the service was not running.

        Args:
            exchange: the rows.
            own: the id of this process.
        """
        now = self._monotonic()
        down = self._downtime(exchange, own, now)
        if down and self._heard:
            # What was heard since the outage stays: nothing is heard of in the future.
            self._heard = {number: min(now, heard + down) for number, heard in self._heard.items()}
        self._exchanged = now
        present = {row.process for row in exchange.rows}
        self._merged = {process: at for process, at in self._merged.items() if process in present}
        for row in exchange.rows:
            # A row that is as before tells nothing new; its time may be ahead of a clock set back.
            if row.process == own or self._merged.get(row.process) == row.at:
                continue
            self._merged[row.process] = row.at
            passed = max(0, max(0, exchange.now - row.at) - down)
            for number, age in row.ages.items():
                heard = now - age - passed
                if number not in self._heard or heard > self._heard[number]:
                    self._heard[number] = heard
        return down

    def _downtime(self, exchange: Exchange, own: str, now: int) -> int:
        """Return for how long nobody could be heard.

        A process that did not stop properly may have lived until it had to write its next row. One
        that is alone knows that nobody else was running before it started.
        """
        gaps = [
            max(0, exchange.now - row.at - (0 if row.stopped else EVERY))
            for row in exchange.rows
            if row.process != own
        ]
        first = self._exchanged is None
        if self._exchanged is not None:
            gaps.append(max(0, now - self._exchanged - EVERY))
        if gaps and min(gaps) <= OUTAGE and not (first and self._alone):
            return 0
        if gaps or first:  # without rows, a process before may have been killed before its first
            self._outage_ended = now
        return min(gaps, default=0)

    def is_written(self, at_most: int) -> bool:
        """Return whether rows were exchanged within the last `at_most` microseconds."""
        return self._exchanged is not None and self._monotonic() - self._exchanged <= at_most
