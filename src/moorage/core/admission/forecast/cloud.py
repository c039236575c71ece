"""What is behind a pool in a simulation: a system that throttles what exceeds its capacity.

Its capacity is hidden, and changes: a quota is raised, an incident takes half of it. Each job
asks the system once, at a random time of its life. If more units run then than the system can
carry, as large a share of those that ask is throttled as is too much. A throttled job tries on
until its usual end and fails then, as installers do. Some jobs fail for reasons of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

SCALE = 1 << 64


@dataclass(frozen=True, slots=True)
class Cloud:
    """The system. Times are microseconds from the start."""

    capacity: Sequence[tuple[int, int]]
    """(from when, units), in ascending order; before the first one, that of the first."""
    failures: float = 0.01
    """The share of the jobs that fail for reasons of their own."""
    seed: int = 0

    def units(self, at: int) -> int:
        """Return how many units it carries at a time."""
        found = self.capacity[0][1]
        for since, units in self.capacity:
            if since > at:
                break
            found = units
        return found

    def asked_after(self, job: int, duration: int) -> int:
        """Return how long after its start a job asks the system."""
        return round(self._draw("when", job) * duration)

    def throttles(self, job: int, at: int, running: int) -> bool:
        """Is a job throttled that asks while this many units run, with its own?"""
        excess = running - self.units(at)
        return excess > 0 and self._draw("whether", job) * running < excess

    def fails(self, job: int) -> bool:
        """Does a job fail for reasons of its own?"""
        return self._draw("failure", job) < self.failures

    def _draw(self, what: str, job: int) -> float:
        """Return a number from 0 to 1, the same for the same job."""
        digest = blake2b(f"{self.seed}/{what}/{job}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) / SCALE
