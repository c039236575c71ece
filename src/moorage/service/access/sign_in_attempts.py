"""Limits how often a client may fail to sign in, and how often a reader does."""

from collections import OrderedDict, deque

from moorage.core.clock import MINUTE, SECOND, Clock

FAILURES_MAX = 5
"""Failures within a minute; after that every failure is refused until the first is a minute old."""

SOURCES_MAX = 4_096
"""Sources that are remembered; beyond this the one that failed longest ago is forgotten."""


class SignInAttempts:
    """Notes by source, in memory: of failures, or of what each leaves a row or a record.

    Args:
        clock: measures the time.
        most: notes within that time.
        within: microseconds.
    """

    def __init__(self, clock: Clock, most: int = FAILURES_MAX, within: int = MINUTE) -> None:
        self._clock = clock
        self._most = most
        self._within = within
        self._failures: OrderedDict[str, deque[int]] = OrderedDict()

    def wait(self, source: str) -> float:
        """Return how many seconds a source must wait before its next attempt; 0: it need not."""
        failures = self._recent(source)
        if len(failures) < self._most:
            return 0.0
        return (failures[0] + self._within - self._clock.monotonic()) / SECOND

    def note(self, source: str) -> None:
        """Note one more."""
        failures = self._recent(source)
        failures.append(self._clock.monotonic())
        self._failures[source] = failures
        self._failures.move_to_end(source)
        if len(self._failures) > SOURCES_MAX:
            self._failures.popitem(last=False)

    def _recent(self, source: str) -> deque[int]:
        failures = self._failures.get(source, deque(maxlen=self._most))
        since = self._clock.monotonic() - self._within
        while failures and failures[0] <= since:
            failures.popleft()
        return failures
