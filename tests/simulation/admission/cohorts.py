"""I27: pools of a cohort lend what they do not use, and never more; lenders go first.

As the rest of the auditor, this computes nothing with the package: how much may be granted or
borrowed is found by trying. Source: docs/decisions/0068-fair-share-and-cohorts.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from moorage.core.admission.model import Lease, PoolSpec
from tests.simulation.admission.books import Books, claim, units_in

if TYPE_CHECKING:
    from tests.simulation.admission.line import Scan


@dataclass
class Cohort:
    """The units of some pools that lend each other what they do not use."""

    specs: dict[str, PoolSpec]
    paused: set[str]
    unused: dict[str, int]
    borrowed: dict[str, int]

    def lends(self, name: str) -> int:
        """Return what others may have of the unused units of a pool."""
        most = self.specs[name].lending
        return self.unused[name] if most is None else min(self.unused[name], most)

    def covers(self, without: Iterable[str] = ()) -> bool:
        """Is all that is borrowed lent by somebody, if these pools lend nothing?"""
        lent = sum(self.lends(name) for name in self.specs if name not in without)
        return sum(self.borrowed.values()) <= lent

    def own(self, name: str) -> int:
        """Return how many more units a pool may have within its limit: found by trying."""
        before, units = self.unused[name], 0
        kept = before - self.lends(name)
        for more in range(1, before + 1):
            self.unused[name] = before - more
            if more <= kept or self.covers():
                units = more
        self.unused[name] = before
        return units

    def more(self, name: str) -> int:
        """Return how many units a pool may borrow: found by trying."""
        before, units = self.borrowed[name], 0
        closed = {name, *self.paused}
        while self.borrowed[name] < self.specs[name].borrowing:
            self.borrowed[name] += 1
            if not self.covers(closed):
                break
            units += 1
        self.borrowed[name] = before
        return units

    def take(self, name: str, units: int) -> None:
        """Count units as used, those within the limit first."""
        own = min(units, self.unused[name])
        self.unused[name] -= own
        self.borrowed[name] += units - own


def cohorts_of(books: Books, at: int, holding: list[Lease]) -> list[Cohort]:
    """Return all cohorts, while these leases have units."""
    found: dict[str, Cohort] = {}
    for name, pool in books.pools.items():
        if pool.spec.cohort is None:
            continue
        cohort = found.setdefault(pool.spec.cohort, Cohort({}, set(), {}, {}))
        left = books.limit(name) - units_in(holding, name) - pool.resting(at)
        cohort.specs[name] = pool.spec
        cohort.unused[name], cohort.borrowed[name] = max(0, left), max(0, -left)
        if pool.paused:
            cohort.paused.add(name)
    return list(found.values())


def within(books: Books, at: int, granted: list[Lease]) -> None:
    """No grant has exceeded what a pool may borrow, what is lent, or the sum of all limits."""
    for cohort in cohorts_of(books, at, books.granted()):
        fresh = {need.pool for lease in granted for need in lease.needs} & cohort.specs.keys()
        limits = sum(spec.limit or 0 for spec in cohort.specs.values())
        used = limits - sum(cohort.unused.values()) + sum(cohort.borrowed.values())
        for name in fresh:
            borrowed, most = cohort.borrowed[name], cohort.specs[name].borrowing
            if borrowed:
                claim(borrowed <= most, "I27", name, "has borrowed", borrowed, "of", most)
                claim(used <= limits, "I27", cohort.specs.keys(), "have", used, "of", limits)
                claim(cohort.covers(), "I27", name, "has borrowed what nobody lends", cohort)


@dataclass
class Lines:
    """One pass over the lines of a cohort: first all within their limits, then who borrows."""

    scan: "Scan"
    cohort: Cohort
    doubtful: bool = False
    borrowers: dict[str, list[tuple[Lease, int]]] = field(default_factory=dict)
    """By pool, tickets that would borrow, and what of their own pool is set aside for them."""
    shut: set[str] = field(default_factory=set)
    """Pools in whose lines a ticket with allocations waits: none behind it borrows."""
    closed: set[str] = field(default_factory=set)
    """Pools whose next ticket can borrow no more, so none behind it does."""

    def run(self, tickets: list[Lease]) -> None:
        """Judge the tickets of the cohort's pools, given in order."""
        for ticket in tickets:
            self._within(ticket)
        for name, line in self.borrowers.items():
            for n, (ticket, aside) in enumerate(line):
                if ticket.needs[0].units > (self.cohort.specs[name].limit or 0):
                    self.cohort.unused[name] += aside
                    line[n] = (ticket, 0)
        while any(self.borrowers.values()):
            lines = {name: line for name, line in self.borrowers.items() if line}
            name = min(lines, key=lambda one: _asked(lines[one][0][0]))
            self._beyond(*lines[name].pop(0))

    def _within(self, ticket: Lease) -> None:
        scan, granted = self.scan, ticket.id in self.scan.granted
        if scan.is_silent(ticket):
            claim(not granted, "I8", "was granted while nobody asked for it", ticket.id)
            return
        if ticket.alternatives:  # from before its pool joined
            self.doubtful = True
            if granted:
                self._take(ticket, ticket.needs[0].units)
            return
        (need,) = ticket.needs
        barred = scan.barred(ticket, ticket.needs)
        claim(not granted or barred is None, *(barred or ()), ticket.id)
        paced = scan.books.pools[need.pool].paced(scan.at)
        claim(not granted or paced is not False, "I12", ticket.id, "was granted too soon")
        if barred is not None or paced is False:
            return
        own = self.cohort.own(need.pool)
        if granted and own >= need.units:
            self._take(ticket, need.units)
            return
        if granted:
            claim(ticket.allocations is None, "I27", ticket.id, "borrows, and has allocations")
            self._lines_up(ticket, 0 if scan.is_left(ticket) else own)
        elif paced is None or int(ticket.allocations or 0) > scan.ledger_free:
            self.doubtful = True
        else:
            self._waits(ticket, own)

    def _waits(self, ticket: Lease, own: int) -> None:
        """Judge a ticket that was not granted."""
        scan, (need,) = self.scan, ticket.needs
        if own >= need.units and scan.may_now(ticket) and not self.doubtful:
            scan.must.setdefault(ticket.id, {need.pool})
        left = scan.is_left(ticket)  # nothing is set aside for it
        if own >= need.units:
            self.cohort.take(need.pool, 0 if left else need.units)
        elif not left or ticket.allocations is None:
            if ticket.allocations is not None:
                self.shut.add(need.pool)
            self._lines_up(ticket, 0 if left else own)

    def _lines_up(self, ticket: Lease, own: int) -> None:
        (need,) = ticket.needs
        self.cohort.take(need.pool, own)
        if need.pool not in self.shut:
            self.borrowers.setdefault(need.pool, []).append((ticket, own))
        else:
            claim(ticket.id not in self.scan.granted, "I27", ticket.id, "borrows before its turn")

    def _beyond(self, ticket: Lease, aside: int) -> None:
        """Judge a ticket that would borrow."""
        scan, (need,) = self.scan, ticket.needs
        name, granted = need.pool, ticket.id in self.scan.granted
        missing, there = need.units - aside, self.cohort.own(name) + self.cohort.more(name)
        barred = scan.barred(ticket, ticket.needs)
        paced = scan.books.pools[name].paced(scan.at)
        if granted:
            claim(name not in self.closed, "I27", ticket.id, "borrows before its turn")
            claim(barred is None, *(barred or ()), ticket.id)
            claim(paced is not False, "I12", ticket.id, "was granted too soon")
            claim(missing <= there, "I27", ticket.id, "borrows", missing, "of", there)
            self._take(ticket, missing)
            return
        if name in self.closed:
            return
        if barred is not None or (paced is None and missing <= there):
            self.doubtful = True  # its owner has got the rest of its quota meanwhile
            return
        if missing <= there and paced and scan.may_now(ticket) and not self.doubtful:
            scan.must.setdefault(ticket.id, {name})
        if not scan.is_left(ticket):
            self.cohort.take(name, min(there, missing))
            self.closed.add(name)

    def _take(self, ticket: Lease, units: int) -> None:
        (need,) = ticket.needs
        self.cohort.take(need.pool, units)
        self.scan.count(ticket)


def _asked(ticket: Lease) -> tuple[int, int]:
    return -ticket.priority, ticket.arrival
