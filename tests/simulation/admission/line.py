"""Which tickets may be granted, and which must be: the rule of the line, implemented again.

Scan by priority, place, arrival. A ticket that fits everywhere is granted; otherwise its needs are
reserved in each of its pools, as far as units are free, and later tickets see only the rest. A
ticket for more than the present limit, for a paused pool or above a quota is passed over; so is one
that only the ledger prevents. Where the jitter makes pacing uncertain, the actual grant decides.
"""

from dataclasses import dataclass, field

from moorage.core.admission.model import Lease
from moorage.core.ids import LeaseId
from tests.simulation.admission.books import Books, claim, units_in

PULL_SILENCE = 10_000_000
"""A client of Boskos that has not polled for this long does not delay others."""


def place_of(ticket: Lease) -> tuple[int, int, int]:
    """Return the place of a ticket in every line."""
    return (-ticket.priority, ticket.place, ticket.arrival)


@dataclass
class Room:
    """The rest of one pool during a scan."""

    free: dict[str | None, int]
    """By the wanted state of slots; None: of units without names."""
    quota: int | None
    held: dict[str, int]
    limit: int
    set_aside: dict[str | None, int] = field(default_factory=dict)


@dataclass
class Scan:
    """One pass over the line. `must`: tickets that should have been granted and were not."""

    books: Books
    at: int
    alive: int
    granted: set[LeaseId]
    polled: frozenset[LeaseId]
    rooms: dict[str, Room] = field(default_factory=dict)
    must: dict[LeaseId, set[str]] = field(default_factory=dict)
    ledger_free: int = 0
    doubtful: set[str] = field(default_factory=set)

    def run(self, tickets: list[Lease]) -> None:
        """Judge tickets, given in any order; `books` do not yet include their grants."""
        holding = self.books.granted()
        for name, pool in self.books.pools.items():
            limit = self.books.limit(name)
            free = limit - units_in(holding, name) - pool.resting(self.at)
            held: dict[str, int] = {}
            for lease in holding:
                held[lease.owner] = held.get(lease.owner, 0) + units_in([lease], name)
            self.rooms[name] = Room(self._free(name, free), pool.spec.quota, held, limit)
        self.ledger_free = self.books.capacity - self.books.in_ledger()
        for ticket in sorted(tickets, key=place_of):
            self._judge(ticket)
        for ticket in tickets:  # the ledger has no order: a later ticket may have taken it
            if ticket.id in self.must and int(ticket.allocations or 0) > self.ledger_free:
                del self.must[ticket.id]

    def _free(self, name: str, free: int) -> dict[str | None, int]:
        pool = self.books.pools[name]
        if pool.spec.limit is not None:
            return {None: max(0, free)}
        found: dict[str | None, int] = {}
        for (where, one), slot in self.books.slots.items():
            rests = self.books.slot_rests.get((where, one), 0) > self.at
            if where == name and not slot.owner and not rests:
                found[slot.state] = found.get(slot.state, 0) + 1
        for key in self.granted:  # theirs are still to be granted
            for need in self.books.live[key].seen.needs:
                if need.pool == name:
                    found[need.state] = found.get(need.state, 0) + need.units
        return found

    def _judge(self, ticket: Lease) -> None:
        granted = ticket.id in self.granted
        passed_over = self._passed_over(ticket)
        if passed_over:
            claim(not granted, *passed_over, ticket.id)
            return
        fits = int(ticket.allocations or 0) <= self.ledger_free
        short = [need.pool for need in ticket.needs if self._left(ticket, need.pool) < need.units]
        paced = [self.books.pools[need.pool].paced(self.at) for need in ticket.needs]
        if granted:
            claim(not short, "I1, I8", ticket.id, "was granted before its turn in", short)
            claim(False not in paced, "I12", ticket.id, "was granted too soon after the last")
            claim(self._may_now(ticket), "I8", ticket.id, "was granted without its poll")
            claim(fits, "I1", ticket.id, "does not fit in the ledger")
            self._take(ticket)
            return
        if not fits:
            # Its needs are set aside if something else keeps it; unless it was tried before, and
            # the service knows that it is no use.
            if short or not all(paced) or not self._may_now(ticket):
                self.doubtful |= {need.pool for need in ticket.needs}
            return
        doubt = any(need.pool in self.doubtful for need in ticket.needs)
        if not short and all(paced) and self._may_now(ticket) and not doubt:
            self.must[ticket.id] = {need.pool for need in ticket.needs}
        if ticket.pull and not _is_polled(ticket) and self._waited_until(ticket) <= self.alive:
            return  # it was polled, but nobody waits for it afterwards
        for need in ticket.needs:
            room = self.rooms[need.pool]
            state = self._state(ticket, need.pool)
            room.free[state] = max(0, room.free.get(state, 0) - need.units)

    def _passed_over(self, ticket: Lease) -> tuple[str, str] | None:
        for need in ticket.needs:
            room = self.rooms[need.pool]
            if self.books.pools[need.pool].paused:
                return "I8", "needs a pool that is paused"
            if need.units > room.limit:
                return "I1", "wants more than the limit"
            if room.quota is not None and room.held.get(ticket.owner, 0) + need.units > room.quota:
                return "I18", "is above the quota of its owner"
        if ticket.pull and ticket.id not in self.polled:
            silence = PULL_SILENCE if _is_polled(ticket) else 0
            if self.alive - self._waited_until(ticket) > silence:
                return "I8", "was granted while nobody asked for it"
        return None

    def _may_now(self, ticket: Lease) -> bool:
        return not ticket.pull or ticket.id in self.polled or not _is_polled(ticket)

    def _waited_until(self, ticket: Lease) -> int:
        """Return the alive time until which a request waits for a pull ticket."""
        return (self.books.live[ticket.id].seen.heard_until or 0) - ticket.patience

    def _state(self, ticket: Lease, pool: str) -> str | None:
        if self.books.pools[pool].spec.limit is not None:
            return None
        return next(need.state for need in ticket.needs if need.pool == pool)

    def _left(self, ticket: Lease, pool: str) -> int:
        return self.rooms[pool].free.get(self._state(ticket, pool), 0)

    def _take(self, ticket: Lease) -> None:
        for need in ticket.needs:
            room = self.rooms[need.pool]
            room.free[self._state(ticket, need.pool)] -= need.units
            room.held[ticket.owner] = room.held.get(ticket.owner, 0) + need.units
            self.books.pools[need.pool].pay(self.at, need.units)
        self.ledger_free -= int(ticket.allocations or 0)


def _is_polled(ticket: Lease) -> bool:
    """Is it granted when it is polled, as those of Boskos, not while a request waits?"""
    return ticket.owner.startswith("boskos:")
