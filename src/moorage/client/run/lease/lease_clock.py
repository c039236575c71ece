"""Until when a lease is valid, by the client's clock: pure arithmetic, in seconds.

The server counts a TTL from when it receives a request; the client counts it from when it sent that
request, and stops a margin earlier. So, whatever happens to answers, networks and processes, the
client knows that a lease is lost before its units can be granted to another.
"""

from __future__ import annotations

RENEWALS = 3
"""How many times a holder renews its lease within a TTL; the server counts on it, after outages."""

MARGIN_PART = 6
MARGIN_SECONDS_MAX = 30.0

WORD_SECONDS = 2.0
"""How long to wait for the server to confirm that a hold is over, because it may be extended."""


def margin_of(ttl: float) -> float:
    """Return how long before the end of the server's TTL the client considers the lease lost."""
    return min(ttl / MARGIN_PART, MARGIN_SECONDS_MAX)


class LeaseTerm:
    """How long a granted lease is valid. All times are those of `elapsed`.

    `hold_by` is the latest time at which the hold is over, unless it was changed; None: no hold.
    """

    def __init__(self, ttl: float, sent: float, hold_by: float | None = None) -> None:
        self.ttl = ttl
        self.hold_by = hold_by
        self._sent = sent

    @property
    def deadline(self) -> float:
        """When it is lost, unless it is renewed before."""
        return self._sent + self.ttl - margin_of(self.ttl)

    @property
    def kill_by(self) -> float:
        """When to kill what still uses it: the rest of the margin is the time to end."""
        return self._sent + self.ttl - margin_of(self.ttl) / 3

    @property
    def renew_at(self) -> float:
        """When to renew it next; also when its hold should be over, to find out whether it is."""
        at = self._sent + self.ttl / RENEWALS
        if self.hold_by is not None and self._sent < self.hold_by:
            return min(at, self.hold_by)
        return at

    def seconds_to_look(self, now: float) -> float:
        """Return the seconds until the lease may be lost or its hold may be over."""
        over = None if self.hold_by is None else self.hold_by + WORD_SECONDS
        times = [at for at in (self.deadline, over) if at is not None and at > now]
        return min(times, default=float("inf")) - now

    def over(self, now: float) -> bool:
        """Return whether its hold is certainly over: then the server has ended it as requested."""
        return self.hold_by is not None and now >= self.hold_by + WORD_SECONDS

    def lost(self, now: float) -> bool:
        """Return whether it is lost; the end of its hold is not a loss."""
        return now >= self.deadline and (self.hold_by is None or now < self.hold_by)

    def renewed(self, sent: float, now: float, late: bool = False) -> bool:
        """Apply a renewal, given when it was sent and answered; return False if it is too late.

        `late`: a late answer counts, too, because the server never renews an ended lease.
        """
        if not late and self.lost(now):
            return False
        self._sent = max(self._sent, sent)
        return True
