"""Which tickets may be granted, and which must be: the rule of the line, implemented again.

Scan by (priority, place, arrival), or the last arrival first. A ticket that fits everywhere is
granted; otherwise its needs are reserved in each of its pools, as far as units are free, and later
tickets see only the rest. A ticket for more than the present limit, for a paused pool or above a
quota is passed over; so is one that only the ledger prevents. Where the jitter makes pacing
uncertain, the actual grant decides. A ticket with alternatives is granted one that fits, and
otherwise reserves the first one that is not passed over.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from moorage.core.admission.model import Lease, Need
from moorage.core.ids import LeaseId
from tests.simulation.admission.books import Books, claim, units_in

Needs = tuple[Need, ...]

PULL_SILENCE = 10_000_000
"""A client of Boskos that has not polled for this long does not delay others."""


def place_of(ticket: Lease) -> tuple[int, int, int]:
    """Return by what a line is ordered."""
    return (-ticket.priority, -ticket.arrival if ticket.newest else ticket.place, ticket.arrival)


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
        if self._is_silent(ticket):
            claim(not granted, "I8", "was granted while nobody asked for it", ticket.id)
            return
        options = ticket.alternatives or (ticket.needs,)
        usable = [needs for needs in options if self._barred(ticket, needs) is None]
        if granted:
            self._granted(ticket, usable)
        elif usable:
            self._kept(ticket, usable)

    def _granted(self, ticket: Lease, usable: list[Needs]) -> None:
        barred = self._barred(ticket, ticket.needs)
        claim(barred is None, *(barred or ()), ticket.id)
        short = [need.pool for need in ticket.needs if self._left(need) < need.units]
        paced = [self.books.pools[need.pool].paced(self.at) for need in ticket.needs]
        claim(not short, "I1, I8", ticket.id, "was granted before its turn in", short)
        claim(False not in paced, "I12", ticket.id, "was granted too soon after the last")
        claim(self._may_now(ticket), "I8", ticket.id, "was granted without its poll")
        fits = int(ticket.allocations or 0) <= self.ledger_free
        claim(fits, "I1", ticket.id, "does not fit in the ledger")
        if len(usable) > 1:
            self._chosen(ticket, usable)
        self._take(ticket)

    def _chosen(self, ticket: Lease, usable: list[Needs]) -> None:
        """I8: of the alternatives that certainly fit, the first or the least loaded is granted."""
        if not self._fits(ticket.needs):
            return  # its pacing is uncertain
        fitting = [
            needs
            for needs in usable
            if needs == ticket.needs
            or (self._fits(needs) and self.doubtful.isdisjoint(need.pool for need in needs))
        ]
        if ticket.choice is not None and ticket.choice.in_order:
            claim(fitting[0] == ticket.needs, "I8", ticket.id, "was not granted", fitting[0])
            return
        best = min(fitting, key=self._load)
        equal = self._load(best) == self._load(ticket.needs)
        claim(equal, "I8", ticket.id, "was granted", ticket.needs, "although less is used:", best)

    def _load(self, needs: Needs) -> list[Fraction]:
        """Return the shares of the limits that would be occupied, the greatest first."""
        shares = []
        for need in needs:
            room = self.rooms[need.pool]
            shares.append(Fraction(sum(room.held.values()) + need.units, room.limit))
        return sorted(shares, reverse=True)

    def _kept(self, ticket: Lease, usable: list[Needs]) -> None:
        """Judge a ticket that was not granted: must it have been, and what does it reserve?"""
        now, fitting = self._may_now(ticket), [needs for needs in usable if self._fits(needs)]
        if int(ticket.allocations or 0) > self.ledger_free:
            # Its needs are set aside if something else keeps it, such as what is set aside for
            # others; unless it was tried before, and the service knows that it is no use.
            pools = {need.pool for needs in usable for need in needs}
            if not fitting or not now or not self.doubtful.isdisjoint(pools):
                self.doubtful |= pools
            return
        for needs in fitting:
            pools = {need.pool for need in needs}
            if now and self.doubtful.isdisjoint(pools):
                self.must.setdefault(ticket.id, pools)
        if ticket.pull and not _is_polled(ticket) and self._waited_until(ticket) <= self.alive:
            return  # it was polled, but nobody waits for it afterwards
        # What fits, but was not granted, lacks what is set aside for others: all that is doubtful.
        kept = usable[:1] if now or not fitting else fitting
        if len(kept) > 1:
            self.doubtful |= {need.pool for needs in kept for need in needs}
            return
        for need in kept[0]:
            room, state = self.rooms[need.pool], self._state(need)
            room.free[state] = max(0, room.free.get(state, 0) - need.units)

    def _fits(self, needs: Needs) -> bool:
        """Return whether these needs certainly fit now."""
        return all(
            self._left(need) >= need.units and self.books.pools[need.pool].paced(self.at)
            for need in needs
        )

    def _barred(self, ticket: Lease, needs: Needs) -> tuple[str, str] | None:
        for need in needs:
            room = self.rooms[need.pool]
            if self.books.pools[need.pool].paused:
                return "I8", "needs a pool that is paused"
            if need.units > room.limit:
                return "I1", "wants more than the limit"
            if room.quota is not None and room.held.get(ticket.owner, 0) + need.units > room.quota:
                return "I18", "is above the quota of its owner"
        return None

    def _is_silent(self, ticket: Lease) -> bool:
        if not ticket.pull or ticket.id in self.polled:
            return False
        silence = PULL_SILENCE if _is_polled(ticket) else 0
        return self.alive - self._waited_until(ticket) > silence

    def _may_now(self, ticket: Lease) -> bool:
        return not ticket.pull or ticket.id in self.polled or not _is_polled(ticket)

    def _waited_until(self, ticket: Lease) -> int:
        """Return the alive time until which a request waits for a pull ticket."""
        return (self.books.live[ticket.id].seen.heard_until or 0) - ticket.patience

    def _state(self, need: Need) -> str | None:
        return None if self.books.pools[need.pool].spec.limit is not None else need.state

    def _left(self, need: Need) -> int:
        return self.rooms[need.pool].free.get(self._state(need), 0)

    def _take(self, ticket: Lease) -> None:
        for need in ticket.needs:
            room = self.rooms[need.pool]
            room.free[self._state(need)] -= need.units
            room.held[ticket.owner] = room.held.get(ticket.owner, 0) + need.units
            self.books.pools[need.pool].pay(self.at, need.units)
        self.ledger_free -= int(ticket.allocations or 0)


def _is_polled(ticket: Lease) -> bool:
    """Is it granted when it is polled, as those of Boskos, not while a request waits?"""
    return ticket.owner.startswith("boskos:")
