"""Until when a lease is ours, by our own clock: pure arithmetic, in seconds.

The server counts a TTL from when it hears a request, we count it from when we sent that request,
and stop a margin before. So whatever happens to answers, networks and processes, we know that a
lease is lost before anybody else can be granted it.
"""

from __future__ import annotations

MARGIN_PART = 6
MARGIN_SECONDS_MAX = 30.0

WORD_SECONDS = 2.0
"""How long to wait for the server's word that a hold is over, which somebody may have moved."""


def margin_of(ttl: float) -> float:
    """Return how long before the server's TTL the client stops believing."""
    return min(ttl / MARGIN_PART, MARGIN_SECONDS_MAX)


class Term:
    """How long a granted lease is ours. All times are those of `elapsed`.

    `hold_by` is when a hold is over by the latest, unless somebody has moved it; None: there is
    none.
    """

    def __init__(self, ttl: float, sent: float, hold_by: float | None = None) -> None:
        self.ttl = ttl
        self.hold_by = hold_by
        self._sent = sent

    @property
    def deadline(self) -> float:
        """From then on it is lost, unless it is renewed before."""
        return self._sent + self.ttl - margin_of(self.ttl)

    @property
    def kill_by(self) -> float:
        """When nothing may work with it any more: what is left of the margin is for that to end."""
        return self._sent + self.ttl - margin_of(self.ttl) / 3

    @property
    def renew_at(self) -> float:
        """When to renew it the next time: also when its hold should be over, to hear whether."""
        at = self._sent + self.ttl / 3
        if self.hold_by is not None and self._sent < self.hold_by:
            return min(at, self.hold_by)
        return at

    def seconds_to_look(self, now: float) -> float:
        """Return in how long there is something to look at: it may be lost then, or over."""
        over = None if self.hold_by is None else self.hold_by + WORD_SECONDS
        times = [at for at in (self.deadline, over) if at is not None and at > now]
        return min(times, default=float("inf")) - now

    def over(self, now: float) -> bool:
        """Is its hold certainly over? Then the server has ended it, as was wished."""
        return self.hold_by is not None and now >= self.hold_by + WORD_SECONDS

    def lost(self, now: float) -> bool:
        """Is it lost? A hold that is over is no loss."""
        return now >= self.deadline and (self.hold_by is None or now < self.hold_by)

    def renewed(self, sent: float, now: float, late: bool = False) -> bool:
        """Take a renewal that was sent and answered then; False: it came too late to count.

        `late`: it counts all the same. The server does not renew what it has ended.
        """
        if not late and self.lost(now):
            return False
        self._sent = max(self._sent, sent)
        return True
