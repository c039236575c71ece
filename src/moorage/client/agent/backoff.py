"""Delays between attempts: they double up to a limit, and each is random (full jitter)."""

from __future__ import annotations

import random
from collections.abc import Callable

RETRY_AFTER_SECONDS_MAX = 300.0
"""The longest wait that a server can ask for: a wrong header must not silence a machine."""

DOUBLINGS_MAX = 30


class Backoff:
    """The delays of repeated attempts.

    With full jitter, machines that failed together do not return together.
    """

    def __init__(
        self,
        first: float,
        most: float,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """Prepare delays.

        Args:
            first: upper bound of the first delay, in seconds.
            most: upper bound of all delays, in seconds.
            uniform: returns a random number between two bounds.
        """
        self._first = first
        self._most = self._limit = most
        self._uniform = uniform
        self.attempts = 0

    def next(self, retry_after: float | None = None) -> float:
        """Return the delay before the next attempt, in seconds.

        `retry_after` is what the server asked for; the random delay is added to it.
        """
        bound = min(self._limit, self._first * 2 ** min(self.attempts, DOUBLINGS_MAX))
        self.attempts += 1
        asked = min(max(0.0, retry_after or 0.0), RETRY_AFTER_SECONDS_MAX)
        return asked + self._uniform(0.0, bound)

    def limit(self, most: float) -> None:
        """Bound further delays by `most` seconds, from the first delay to the first limit."""
        self._limit = max(self._first, min(self._most, most))

    def reset(self) -> None:
        """Begin with the first delay again: an attempt has succeeded."""
        self.attempts = 0
