"""Which tickets may be granted, and which must be: the rule of the line, implemented again.

Scan by (priority, place, arrival), or the last arrival first. A ticket that fits everywhere is
granted; otherwise its needs are reserved in each of its pools, as far as units are free, and later
tickets see only the rest. A ticket for more than the present limit, for a paused pool or above a
quota is passed over; so is one that only the ledger prevents. Where the jitter makes pacing
uncertain, the actual grant decides. A ticket with alternatives is granted one that fits, and
otherwise reserves the first one that is not passed over. What bookings permit is in `bookings.py`,
the lines of pools that lend each other units in `cohorts.py`.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from moorage.core.admission.model import Lease, Need
from moorage.core.ids import LeaseId
from tests.simulation.admission import cohorts
from tests.simulation.admission.bookings import Calendar, Turns
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
    calendar: Calendar
    rooms: dict[str, Room] = field(default_factory=dict)
    must: dict[LeaseId, set[str]] = field(default_factory=dict)
    ledger_free: int = 0
    turns: Turns = field(init=False)
    doubtful: set[str] = field(default_factory=set)
    verdicts: dict[Needs, str] = field(default_factory=dict)
    """What bookings say to the present ticket; nothing: it may start."""

    def run(self, tickets: list[Lease]) -> None:
        """Judge tickets, given in any order; `books` do not yet include their grants."""
        holding = self.books.granted()
        self.turns = Turns(self.calendar, holding)
        for name, pool in self.books.pools.items():
            limit = self.books.limit(name)
            free = limit - units_in(holding, name) - pool.resting(self.at)
            held: dict[str, int] = {}
            for lease in holding:
                held[lease.owner] = held.get(lease.owner, 0) + units_in([lease], name)
            limit += pool.spec.borrowing
            self.rooms[name] = Room(self._free(name, free), pool.spec.quota, held, limit)
        self.ledger_free = self.books.capacity - self.books.in_ledger()
        line = sorted(tickets, key=place_of)
        for cohort in cohorts.cohorts_of(self.books, self.at, holding):
            lines = cohorts.Lines(self, cohort)
            lines.run([one for one in line if one.needs[0].pool in cohort.specs])
        for ticket in line:
            if self.books.pools[ticket.needs[0].pool].spec.cohort is None:
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
        if self.is_silent(ticket):
            claim(not granted, "I8", "was granted while nobody asked for it", ticket.id)
            return
        options = ticket.alternatives or (ticket.needs,)
        usable = [needs for needs in options if self.barred(ticket, needs) is None]
        self.verdicts = {}
        if ticket.booking is not None or any(map(self.turns.booked, options)):
            self.verdicts = {needs: self.turns.verdict(ticket, needs) for needs in usable}
        if granted:
            self._granted(ticket, usable)
        elif usable and not self._held_up(ticket, usable):
            let = [needs for needs in usable if self._says(needs) in ("fits", "lacks")]
            self._kept(ticket, let)

    def _says(self, needs: Needs) -> str:
        return self.verdicts.get(needs, "fits")

    def _held_up(self, ticket: Lease, usable: list[Needs]) -> bool:
        """Do bookings hold up a ticket in all that it may have? Then it reserves nothing."""
        if not self.verdicts:
            return False
        names = {need.pool for needs in usable for need in needs}
        jumps = self.calendar.jumps  # then it is not known by which clock bookings were read
        if jumps or (ticket.booking is None and not names.isdisjoint(self.turns.unsure)):
            self.doubtful |= names
            return True
        if any(self._says(needs) in ("fits", "lacks") for needs in usable):
            return False
        if self._says(usable[0]) == "held":
            self.turns.hold_up(ticket, usable[0])
        return True

    def _granted(self, ticket: Lease, usable: list[Needs]) -> None:
        barred = self.barred(ticket, ticket.needs)
        claim(barred is None, *(barred or ()), ticket.id)
        says = self._says(ticket.needs)
        claim(says == "fits", "I29", ticket.id, "was granted, and bookings say:", says)
        own = ticket.booking is not None
        short = [n.pool for n in ticket.needs if self._left(n, own) < n.units]
        paced = [self.books.pools[need.pool].paced(self.at) for need in ticket.needs]
        claim(not short, "I1, I8", ticket.id, "was granted before its turn in", short)
        claim(False not in paced, "I12", ticket.id, "was granted too soon after the last")
        claim(self.may_now(ticket), "I8", ticket.id, "was granted without its poll")
        fits = int(ticket.allocations or 0) <= self.ledger_free
        claim(fits, "I1", ticket.id, "does not fit in the ledger")
        if len(usable) > 1:
            self._chosen(ticket, usable)
        for need in ticket.needs:
            self.rooms[need.pool].free[self._state(need)] -= need.units
        self.count(ticket)

    def _chosen(self, ticket: Lease, usable: list[Needs]) -> None:
        """I8: of the alternatives that certainly fit, the first or the least loaded is granted."""
        if not self._fits(ticket, ticket.needs):
            return  # its pacing is uncertain
        fitting = [
            needs
            for needs in usable
            if needs == ticket.needs
            or (self._fits(ticket, needs) and self.doubtful.isdisjoint(need.pool for need in needs))
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
        now, fitting = self.may_now(ticket), [n for n in usable if self._fits(ticket, n)]
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
        if self.is_left(ticket):
            return
        # What fits, but was not granted, lacks what is set aside for others: all that is doubtful.
        kept = usable[:1] if now or not fitting else fitting
        if len(kept) > 1:
            self.doubtful |= {need.pool for needs in kept for need in needs}
            return
        for need in kept[0]:
            room, state = self.rooms[need.pool], self._state(need)
            aside = min(max(0, self._left(need, ticket.booking is not None)), need.units)
            room.free[state] = room.free.get(state, 0) - aside

    def _fits(self, ticket: Lease, needs: Needs) -> bool:
        """Return whether these needs certainly fit now."""
        own = ticket.booking is not None
        return self._says(needs) == "fits" and all(
            self._left(need, own) >= need.units and self.books.pools[need.pool].paced(self.at)
            for need in needs
        )

    def barred(self, ticket: Lease, needs: Needs) -> tuple[str, str] | None:
        for need in needs:
            room = self.rooms[need.pool]
            if self.books.pools[need.pool].paused:
                return "I8", "needs a pool that is paused"
            lent = self.books.pools[need.pool].spec.borrowing if ticket.allocations else 0
            if need.units > room.limit - lent:
                return "I1", "wants more than the limit"
            if room.quota is not None and room.held.get(ticket.owner, 0) + need.units > room.quota:
                return "I18", "is above the quota of its owner"
        return None

    def is_silent(self, ticket: Lease) -> bool:
        if not ticket.pull or ticket.id in self.polled:
            return False
        silence = PULL_SILENCE if _is_polled(ticket) else 0
        return self.alive - self._waited_until(ticket) > silence

    def may_now(self, ticket: Lease) -> bool:
        return not ticket.pull or ticket.id in self.polled or not _is_polled(ticket)

    def _waited_until(self, ticket: Lease) -> int:
        """Return the alive time until which a request waits for a pull ticket."""
        return (self.books.live[ticket.id].seen.heard_until or 0) - ticket.patience

    def _state(self, need: Need) -> str | None:
        return None if self.books.pools[need.pool].spec.limit is not None else need.state

    def is_left(self, ticket: Lease) -> bool:
        """Was it polled, but nobody waits for it afterwards?"""
        asked = ticket.pull and not _is_polled(ticket)
        return asked and self._waited_until(ticket) <= self.alive

    def _left(self, need: Need, own: bool) -> int:
        """Return what is left for a ticket; `own`: it has a booking, so nothing is kept from it."""
        left = self.rooms[need.pool].free.get(self._state(need), 0)
        return left - (0 if own or need.state != "free" else self.turns.kept(need.pool))

    def count(self, ticket: Lease) -> None:
        """Count a grant, apart from the units."""
        self.turns.take(ticket)
        for need in ticket.needs:
            room = self.rooms[need.pool]
            room.held[ticket.owner] = room.held.get(ticket.owner, 0) + need.units
            self.books.pools[need.pool].pay(self.at, need.units)
        self.ledger_free -= int(ticket.allocations or 0)


def _is_polled(ticket: Lease) -> bool:
    """Is it granted when it is polled, as those of Boskos, not while a request waits?"""
    return ticket.owner.startswith("boskos:")
