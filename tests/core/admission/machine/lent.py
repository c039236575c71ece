"""The lines of a cohort in the naive model: first all within their limits, then who borrows.

What may be granted and borrowed is found by trying, as the auditor does (`tests/simulation`).
"""

from typing import TYPE_CHECKING

from tests.core.admission.machine.tickets import Needs, Ticket
from tests.simulation.admission.cohorts import Cohort

if TYPE_CHECKING:
    from tests.core.admission.machine.model import Model

Borrower = tuple[Ticket, Needs, int]
"""A ticket that would borrow, what it would be granted, and what of its own pool is set aside."""


def cohort_of(model: "Model") -> Cohort:
    """Return the units of the pools of the model that are in the cohort."""
    pools = {name: pool for name, pool in model.pools.items() if pool.in_cohort}
    paused = {name for name, pool in pools.items() if pool.paused}
    free = {name: model.free(name) for name in pools}
    unused = {name: max(0, units) for name, units in free.items()}
    return Cohort(pools, paused, unused, {name: max(0, -units) for name, units in free.items()})


class Lines:
    """One pass over the lines of the cohort."""

    def __init__(self, model: "Model", polled: str | None) -> None:
        self.model = model
        self.polled = polled
        self.cohort = cohort_of(model)
        self.borrowers: dict[str, list[Borrower]] = {}

    def run(self) -> None:
        """Grant every ticket that may start."""
        for ticket in sorted(self.model.tickets, key=lambda t: t.place):
            if ticket.state == "w" and ticket.needs.keys() <= self.cohort.specs.keys():
                self.within(ticket)
        for name, line in self.borrowers.items():  # what is above a limit is not its pool's to keep
            for n, (ticket, needs, aside) in enumerate(line):
                if needs[name] > self.model.pools[name].limit:
                    self.cohort.unused[name] += aside
                    line[n] = (ticket, needs, 0)
        while any(self.borrowers.values()):
            heads = {name: line[0][0] for name, line in self.borrowers.items() if line}
            name = min(heads, key=lambda one: (-heads[one].priority, heads[one].arrival))
            self.beyond(name, *self.borrowers[name].pop(0))

    def within(self, ticket: Ticket) -> None:
        """Grant a ticket what its pool has itself, or set that aside for it."""
        model, (name,) = self.model, ticket.needs
        options = [x for x in ticket.options if not model.barred(ticket.owner, x)]
        if not options or model.is_silent(ticket, self.polled) or not model.paced(name):
            return
        own = self.cohort.own(name)
        fitting = [needs for needs in options if needs[name] <= own]
        if fitting and not model.is_unasked(ticket, self.polled):
            model.choose(ticket, fitting)
            model.start(ticket)
            self.cohort.take(name, ticket.needs[name])
            return
        aside = 0 if model.leaves(ticket, self.polled) else min(own, options[0][name])
        self.cohort.take(name, aside)
        self.borrowers.setdefault(name, []).append((ticket, options[0], aside))

    def beyond(self, name: str, ticket: Ticket, needs: Needs, aside: int) -> None:
        """Grant a ticket what others lend, or set that aside: none behind it borrows then."""
        model = self.model
        if model.barred(ticket.owner, needs):
            return  # its owner has got the rest of its quota meanwhile
        missing, there = needs[name] - aside, self.cohort.own(name) + self.cohort.more(name)
        asked = not model.is_unasked(ticket, self.polled)
        if missing <= there and model.paced(name) and asked:
            self.cohort.take(name, missing)
            ticket.needs = needs
            model.start(ticket)
        elif not model.leaves(ticket, self.polled):
            self.cohort.take(name, min(there, missing))
            self.borrowers[name] = []
