"""A naive model of admission, without optimisations, that `test_machine.py` compares with.

It finds everything by scanning all tickets. Each command is one batch, as in `build.World`.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import inf

from moorage.core.clock import SECOND
from tests.core.admission.machine.booked import Calendar
from tests.core.admission.machine.lent import Lines
from tests.core.admission.machine.tickets import Needs, Pool, Ticket

MARGIN = 10 * SECOND


class Model:
    """All pools and tickets, and the time."""

    def __init__(self, now: int, slotted: str, slots: int) -> None:
        self.now = now
        self.slotted = slotted
        """The pool with slots."""
        self.slots = slots
        self.downtime = 0
        self.outage_ended = 0
        self.arrivals = 0
        self.pools: dict[str, Pool] = {}
        self.tickets: list[Ticket] = []
        self.calendar = Calendar(self)

    def held(self, pool: str, owner: str | None = None) -> int:
        """Return the occupied units of a pool, of all owners or of one."""
        return sum(
            t.needs.get(pool, 0)
            for t in self.tickets
            if t.state == "g" and owner in (None, t.owner)
        )

    def find(self, key: str) -> Ticket:
        """Return the ticket with this id."""
        return next(t for t in self.tickets if t.id == key)

    def put(self, name: str, pool: Pool) -> None:
        """Create or change a pool."""
        old = self.pools.get(name)
        if old is not None:
            pool.paused, pool.paid = old.paused, old.paid
            pool.paused_until = old.paused_until
            pool.rests = [
                (min(until, self.now + pool.cooldown), units) for until, units in old.rests
            ]
            if pool.pacing and pool.pacing != old.pacing:
                ahead = pool.pacing.burst * pool.pacing.interval
                pool.paid = min(pool.paid, self.now + ahead)
        self.pools[name] = pool

    def ask(self, ticket: Ticket, arrival: int | None = None, wait: int = 0) -> None:
        """Add a ticket to the lines, for which a request waits for `wait`."""
        if arrival is None:
            self.arrivals += 1
        ticket.arrival = self.arrivals if arrival is None else arrival
        ticket.heard = self.now - self.downtime + (wait or -ticket.waited_for)
        self.tickets.append(ticket)

    def join(self, ticket: Ticket, wait: int = 0) -> None:
        """Add the ticket of a new request, which supersedes earlier ones of its group."""
        place = None
        for other in self.tickets if ticket.group else ():
            if other.group != ticket.group or other.state not in ("w", "g"):
                continue
            asked = other.priority if other.asked is None else other.asked
            same = (other.options, asked, other.booking) == (
                ticket.options,
                ticket.priority if ticket.asked is None else ticket.asked,
                ticket.booking,
            )
            if other.state == "g":
                other.superseded = True
                if ticket.cancels and other.stop_until is None:
                    other.stop_until = self.now + other.ttl
                    other.stop_downtime = self.downtime
            else:
                self.end(other, "superseded")
                place = other if same and not ticket.forced and not other.forced else None
        ticket.newest = all(self.pools[name].newest for name in ticket.needs)
        if place is None or ticket.newest:
            self.ask(ticket, wait=wait)
            return
        self._placed(ticket, place)
        self.ask(ticket, place.arrival, wait)

    def _again(self, old: Ticket, new: Ticket, keeps: bool) -> None:
        """Ask again, at the old place or at the end of the line, unless a newer request waits."""
        new.newest = all(self.pools[name].newest for name in new.needs)
        if keeps:
            self._placed(new, old)
        self.ask(new, old.arrival if keeps else None)
        if old.superseded:
            self.end(new, "superseded")

    def _placed(self, new: Ticket, old: Ticket) -> None:
        """Give a ticket order and priority of an earlier one; note which priority it asked for."""
        new.newest = old.newest
        if new.booking is None:
            new.asked = None if new.priority == old.priority else new.priority
            new.priority = old.priority

    def move(self, ticket: Ticket, priority: int | None) -> None:
        """Give a ticket another priority; None: so high that it is the first in its lines.

        Tickets of bookings are still ahead of it.
        """
        if priority is None:
            priority = ticket.priority
            while any(
                t.place < (-priority, ticket.place[1])
                for t in self.tickets
                if t.state == "w" and t is not ticket and t.needs.keys() & ticket.needs.keys()
                if t.booking is None
            ):
                priority += 1
        if ticket.asked is None and priority != ticket.priority:
            ticket.asked = ticket.priority
        ticket.priority = priority

    def hear(self, ticket: Ticket) -> None:
        """Note a renewal or a poll; a poll extends the patience by a fifth."""
        alive = self.now - self.downtime
        if ticket.state == "g":
            ticket.heard = alive
        elif ticket.waited_for:
            ticket.heard = max(ticket.heard, alive - 1)
        elif ticket.patience is not None and alive > ticket.heard:
            ticket.heard = alive + ticket.patience // 5

    def end(self, ticket: Ticket, cause: str) -> None:
        """End a ticket or lease."""
        if ticket.state == "g":
            for name, units in ticket.needs.items():
                self.pools[name].rests.append((self.now + self.pools[name].cooldown, units))
        ticket.state = cause

    def retry(self, ticket: Ticket, new: Ticket) -> None:
        """Release a lease and ask again, with the units or the place kept if permitted."""
        keeps = self._keeps(ticket.needs)
        fine = ticket.state == "g" and ticket.stop_until is None
        fine = fine and new.booking is None and not self.calendar.are_any(ticket.needs)
        for name in ticket.needs:
            pool = self.pools[name]
            quota = pool.quota if pool.quota is not None else self.held(name)
            fine = fine and not pool.paused and self.held(name) <= pool.limit
            fine = fine and self.held(name, ticket.owner) <= quota
        if keeps and fine:
            ticket.state = "retried"
            self.ask(new)
            self._placed(new, ticket)
            new.needs, new.superseded = ticket.needs, ticket.superseded
            self.start(new)
        else:
            self.end(ticket, "retried")
            self._again(ticket, new, self._keeps(new.needs))

    def requeue(self, ticket: Ticket, new: Ticket) -> None:
        """Release a lease and wait at its old place, if retries keep it; a pull ticket is idle."""
        self.end(ticket, "retried")
        self._again(ticket, new, self._keeps(new.needs))

    def _keeps(self, pools: Iterable[str]) -> bool:
        return not any(self.pools[name].requeue for name in pools)

    def sweep(self) -> None:
        """End what is due."""
        for pool in self.pools.values():
            if pool.paused_until is not None and self.now >= pool.paused_until:
                pool.paused, pool.paused_until = False, None
        alive = self.now - self.downtime
        for t in list(self.tickets):
            if t.state == "w" and t.patience is not None and alive >= t.heard + t.patience:
                self.end(t, "unheard")
            elif t.state == "g" and t.hold_until is not None and self.now >= t.hold_until:
                self.end(t, "hold_over")
            elif t.state == "g" and t.stop_until is not None and self.now >= self.stops_at(t):
                self.end(t, "superseded")
            elif t.state == "g" and not any(self.pools[name].keep for name in t.needs):
                silent = alive - t.heard
                grace = bool(self.outage_ended) and self.now < self.outage_ended + t.ttl // 3
                if silent >= 2 * t.ttl or (silent >= t.ttl and not grace):
                    self.end(t, "ttl_over")

    def stops_at(self, ticket: Ticket) -> int:
        """Return when a holder that is asked to stop loses its lease: an outage is not its time."""
        assert ticket.stop_until is not None
        return ticket.stop_until + self.downtime - ticket.stop_downtime

    def free(self, name: str) -> int:
        """Return the units that are neither occupied nor in cooldown."""
        pool = self.pools[name]
        resting = sum(units for until, units in pool.rests if until > self.now)
        return pool.limit - self.held(name) - resting

    def paced(self, name: str) -> bool:
        """Return whether pacing permits a grant."""
        pool = self.pools[name]
        if pool.pacing is None:
            return True
        return pool.paid - self.now <= (pool.pacing.burst - 1) * pool.pacing.interval

    def start(self, ticket: Ticket) -> None:
        """Grant a ticket."""
        ticket.hold_until = None if ticket.hold is None else self.now + ticket.hold
        self.calendar.starts(ticket)
        ticket.state, ticket.granted_at = "g", self.now
        ticket.heard = self.now - self.downtime
        for name, units in ticket.needs.items():
            pool = self.pools[name]
            if pool.pacing is not None and not ticket.forced:
                pool.paid = max(pool.paid, self.now) + units * pool.pacing.interval

    def admit(self, polled: str | None = None) -> None:
        """Grant every ticket that may start: another look finds nothing more."""
        while self.scan(polled):
            polled = None

    def scan(self, polled: str | None) -> bool:
        """Grant in the order of the lines; return whether there was a grant."""
        waited = sum(t.state == "w" for t in self.tickets)
        self.calendar.give_back()
        self.calendar.plans.clear()
        for ticket in self.tickets:
            if ticket.state == "w" and ticket.forced:
                self.choose(ticket, [x for x in ticket.options if self.has_slots(x)])
                self.start(ticket)
        aside = dict.fromkeys(self.pools, 0)
        for t in sorted(self.tickets, key=lambda t: t.place):
            if t.state == "w" and not any(self.pools[name].in_cohort for name in t.needs):
                self.judge(t, aside, polled)
        lenders = {name for name, pool in self.pools.items() if pool.in_cohort}
        if any(t.state == "w" and t.needs.keys() <= lenders for t in self.tickets):
            Lines(self, polled).run()
        return sum(t.state == "w" for t in self.tickets) < waited

    def judge(self, t: Ticket, aside: dict[str, int], polled: str | None) -> None:
        """Grant the next ticket, set its units aside, or pass it over."""
        options = [needs for needs in t.options if not self.barred(t.owner, needs)]
        if not options or self.is_silent(t, polled):
            return
        said = [(needs, self.calendar.verdict(t, needs)) for needs in options]
        said = [(needs, word) for needs, word in said if word in ("fits", "lacks")] or said[:1]
        fitting = [
            needs
            for needs, word in said
            if word == "fits"
            and all(
                self.left(name, t) - aside[name] >= units and self.paced(name)
                for name, units in needs.items()
            )
        ]
        if fitting and not self.is_unasked(t, polled):
            self.choose(t, fitting)
            self.start(t)
            return
        needs, word = said[0]
        if word == "held":
            self.calendar.plan(t, needs)
        if word in ("fits", "lacks") and not self.leaves(t, polled):
            for name, units in needs.items():
                aside[name] += min(max(0, self.left(name, t) - aside[name]), units)

    def left(self, name: str, ticket: Ticket) -> int:
        """Return the free units that bookings do not keep from a ticket."""
        return self.free(name) - self.calendar.kept(name, ticket)

    def is_silent(self, ticket: Ticket, polled: str | None) -> bool:
        """Return whether it is passed over because nobody asks for it."""
        silent = self.now - self.downtime - ticket.heard
        unasked = ticket.pull and ticket.id != polled
        return unasked and silent > (0 if ticket.waited_for else MARGIN)

    def is_unasked(self, ticket: Ticket, polled: str | None) -> bool:
        """Return whether it is granted only when it is polled, and was not."""
        return ticket.pull and ticket.id != polled and not ticket.waited_for

    def leaves(self, ticket: Ticket, polled: str | None) -> bool:
        """Return whether nobody waits for it after this poll."""
        waits = self.now - self.downtime < ticket.heard
        return ticket.waited_for and ticket.id == polled and not waits

    def choose(self, ticket: Ticket, options: list[Needs]) -> None:
        """Let a ticket need the first of these, or the one that leaves its pools emptiest."""
        if not ticket.in_order:
            options = sorted(options, key=self.shares)
        ticket.needs = options[0]

    def shares(self, needs: Needs) -> list[Fraction | float]:
        """Return the shares of the limits that would be occupied, the greatest first."""
        limits = {name: self.pools[name].limit for name in needs}
        return sorted(
            (
                Fraction(self.held(name) + units, limits[name]) if limits[name] else inf
                for name, units in needs.items()
            ),
            reverse=True,
        )

    def has_slots(self, needs: Needs) -> bool:
        """Return whether the pool with slots has as many that nobody has, for a forced ticket."""
        return needs.get(self.slotted, 0) <= self.slots - self.held(self.slotted)

    def barred(self, owner: str, needs: Needs) -> bool:
        """Return whether a pool bars these needs of an owner, so that they are passed over."""
        for name, units in needs.items():
            pool = self.pools[name]
            if pool.paused or units > pool.limit + pool.borrowing:
                return True
            if pool.quota is not None and self.held(name, owner) + units > pool.quota:
                return True
        return False
