"""The auditor's books: sums of the grants and ends that it saw."""

from dataclasses import dataclass, field

from moorage.core.admission.model import FencingToken, Lease, PoolSpec, Slot
from moorage.core.ids import LeaseId


class Violation(AssertionError):
    """An invariant does not hold. Its number comes first."""


def claim(true: object, invariant: str, *said: object) -> None:
    """Raise unless it is so."""
    if not true:
        raise Violation(f"{invariant}: " + " ".join(str(word) for word in said))


@dataclass
class PoolBook:
    """One pool. Times are service time; pacing is known within bounds, for its jitter is not."""

    spec: PoolSpec
    paused: bool = False
    paused_until: int | None = None
    booked: bool = False
    rests: list[tuple[int, int]] = field(default_factory=list)
    """(until, units) of freed units."""
    earliest: int = 0
    """Until when the units granted so far are paid for, if no interval was lengthened..."""
    latest: int = 0
    """... and if all of them were, as far as jitter may."""
    newest: FencingToken | None = None

    def now(self, spec: PoolSpec, paused: bool, paused_until: int | None, at: int) -> None:
        """Note the new settings. A new pacing forgives debts beyond its burst."""
        pacing = spec.pacing
        if pacing is not None and pacing != self.spec.pacing:
            self.earliest = min(self.earliest, at + pacing.burst * pacing.interval)
            self.latest = min(self.latest, at + pacing.burst * pacing.interval)
        self.spec, self.paused, self.paused_until = spec, paused, paused_until

    def resting(self, at: int) -> int:
        """Return how many freed units may not be granted yet."""
        self.rests = [(until, units) for until, units in self.rests if until > at]
        return sum(units for _, units in self.rests)

    def paced(self, at: int) -> bool | None:
        """Return whether pacing permits a grant; None: that depends on the jitter."""
        pacing = self.spec.pacing
        if pacing is None:
            return True
        ahead = (pacing.burst - 1) * pacing.interval
        if self.latest - at <= ahead:
            return True
        return None if self.earliest - at <= ahead else False

    def pay(self, at: int, units: int) -> None:
        """Note a grant that pacing has to do with."""
        pacing = self.spec.pacing
        if pacing is not None:
            self.earliest = max(at, self.earliest) + units * pacing.interval
            self.latest = max(at, self.latest) + units * (pacing.interval + pacing.jitter)

    def pay_perhaps(self, at: int, units: int) -> None:
        """Note a grant that may have come before this pacing or after it."""
        pacing, earliest = self.spec.pacing, self.earliest
        if pacing is not None:
            self.pay(at, units)
            self.earliest = earliest
            self.latest = max(self.latest, at + pacing.burst * pacing.interval)


@dataclass
class LeaseBook:
    """One ticket or lease: as last seen, and the signs of life of its holder."""

    seen: Lease
    heard_alive: int
    """When it was last granted or heard of: in alive time,"""
    heard_true: int
    """and in true time."""
    believed_until: int = 0
    """True time until which its holder may think that it holds it."""
    may_hold: set[int | None] = field(default_factory=set)
    """Ends of its hold that the service may have given it."""


@dataclass
class Books:
    """All of it."""

    pools: dict[str, PoolBook] = field(default_factory=dict)
    live: dict[LeaseId, LeaseBook] = field(default_factory=dict)
    """Tickets and leases."""
    ended: dict[LeaseId, LeaseBook] = field(default_factory=dict)
    slots: dict[tuple[str, str], Slot] = field(default_factory=dict)
    slot_tokens: dict[tuple[str, str], FencingToken] = field(default_factory=dict)
    slot_rests: dict[tuple[str, str], int] = field(default_factory=dict)
    """Until when, in service time, a slot rests that was freed."""
    capacity: int = 0

    def find(self, lease: LeaseId) -> LeaseBook | None:
        """Return the record of a lease."""
        return self.live.get(lease) or self.ended.get(lease)

    def granted(self) -> list[Lease]:
        """Return all leases that occupy something."""
        return [book.seen for book in self.live.values() if book.seen.state == "granted"]

    def waiting(self) -> list[Lease]:
        """Return all tickets."""
        return [book.seen for book in self.live.values() if book.seen.state == "waiting"]

    def limit(self, pool: str) -> int:
        """Return a pool's limit."""
        limit = self.pools[pool].spec.limit
        return sum(at[0] == pool for at in self.slots) if limit is None else limit

    def in_ledger(self) -> int:
        """Return what leases have allocated in the ledger."""
        return sum(int(lease.allocations) for lease in self.granted() if lease.allocations)


def units_in(leases: list[Lease], pool: str) -> int:
    """Return how many units of a pool these hold, or want."""
    return sum(need.units for lease in leases for need in lease.needs if need.pool == pool)
