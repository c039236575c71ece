"""Bookings in the naive model: whom they keep units from, and who gets them.

What is spoken for at a moment is added up as the auditor does (`tests/simulation/admission`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.core.admission.machine.tickets import Needs, Ticket
from tests.simulation.admission.bookings import NEVER, Load, Wants, first, says

if TYPE_CHECKING:
    from tests.core.admission.machine.model import Model


@dataclass
class Booking:
    """A booking; times are service time, by which the wall clock goes here, too."""

    owner: str
    needs: dict[str, int]
    windows: list[tuple[int, int]]
    lead: int = 0
    no_show: int | None = None
    closure: bool = False
    taken: int | None = None
    """The start of the last window in which a lease got units of it."""
    given_back: set[int] = field(default_factory=set)
    cancelled: bool = False

    @property
    def coming(self) -> list[tuple[int, int]]:
        """Its windows, without those that were given back."""
        return [] if self.cancelled else [x for x in self.windows if x[0] not in self.given_back]

    def window(self, now: int) -> tuple[int, int] | None:
        """Return the window that is open."""
        return next((x for x in self.coming if x[0] <= now < x[1]), None)

    def is_over(self, now: int) -> bool:
        """Does its owner get nothing of it any more?"""
        return all(end <= now for _, end in self.coming)


class Calendar:
    """All bookings of a model."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.bookings: dict[str, Booking] = {}
        self.plans: dict[str, tuple[int, int, int]] = {}
        """By pool, when the first ticket that bookings hold up is to have how many units."""

    def keeping(self, pool: str) -> dict[str, Booking]:
        """Return the bookings of a pool that are not over."""
        return {
            key: one
            for key, one in self.bookings.items()
            if not one.cancelled and pool in one.needs and one.windows[-1][1] > self.model.now
        }

    def load(self, name: str, without: Ticket | None = None, booking: str = "") -> Load:
        """Return what is spoken for in a pool, without a ticket and without a booking."""
        pool, now = self.model.pools[name], self.model.now
        load = Load(pool.limit, now, pool.cooldown)
        for key, one in self.keeping(name).items():
            rest = 0 if one.closure else pool.cooldown
            spans = [(start - one.lead, end + rest) for start, end in one.coming if end > now]
            if key != booking:
                load.kept[key] = (one.needs[name] or pool.limit, spans)
        for t in self.model.tickets:
            if t.state == "g" and name in t.needs and t is not without:
                load.hold(ends_of(t), t.needs[name], t.booking)
        load.held += [(until, units, "") for until, units in pool.rests if until > now]
        if name in self.plans:
            load.plans.append(self.plans[name])
        return load

    def wants(self, ticket: Ticket, needs: Needs) -> Wants:
        """Return what a ticket needs of booked pools, and for how long at least."""
        spans = [span for span in (ticket.hold, ticket.borrow) if span is not None]
        found = []
        for name, units in needs.items():
            if self.keeping(name):
                load = self.load(name)
                lasts = min(spans) + load.rest if spans else NEVER - load.at
                found.append((load, units, lasts))
        return found

    def verdict(self, ticket: Ticket, needs: Needs) -> str:
        """Return fits, lacks (units, until leases end), held (by bookings) or closed."""
        if ticket.booking is None:
            return says(self.wants(ticket, needs))
        booking = self.bookings[ticket.booking]
        if booking.window(self.model.now) is None:
            return "closed"
        for name, units in needs.items():
            used = sum(
                t.needs.get(name, 0)
                for t in self.model.tickets
                if t.state == "g" and t.booking == ticket.booking
            )
            if used + units > booking.needs.get(name, 0):
                return "closed"
        return "fits"

    def plan(self, ticket: Ticket, needs: Needs) -> None:
        """Let a ticket that bookings hold up have its units later, if it is the first there."""
        wants = self.wants(ticket, needs)
        names = [name for name in needs if self.keeping(name)]
        start = first(wants)
        if start < NEVER and self.plans.keys().isdisjoint(names):
            for name, (_, units, lasts) in zip(names, wants, strict=True):
                self.plans[name] = (start, start + lasts, units)

    def kept(self, name: str, ticket: Ticket) -> int:
        """Return the units that bookings keep now from a ticket without one."""
        if ticket.booking is not None or not self.keeping(name):
            return 0
        return self.load(name).kept_at(self.model.now)

    def starts(self, ticket: Ticket) -> None:
        """Let a lease that starts now end in time, and note that its owner came."""
        if ticket.booking is not None:
            booking = self.bookings[ticket.booking]
            window = booking.window(self.model.now)
            if window is not None:
                booking.taken = window[0]
                ticket.hold_until = min(window[1], ticket.hold_until or NEVER)
        elif ticket.borrow is not None and not ticket.forced:
            for load, units, _ in self.wants(ticket, ticket.needs):
                until = load.lasts(units)
                if until < NEVER:
                    ticket.hold_until = min(until - load.rest, ticket.hold_until or NEVER)

    def give_back(self) -> None:
        """Give back the units of windows in which nobody came, unless somebody waits for some."""
        now = self.model.now
        waited_for = {t.booking for t in self.model.tickets if t.state == "w"}
        for key, one in self.bookings.items():
            if one.no_show is None or one.closure or key in waited_for:
                continue
            for start, end in one.coming:
                begun = max(start, min(self.model.outage_ended, now))
                if begun + one.no_show <= now < end and one.taken != start:
                    one.given_back.add(start)

    def accepts(self, booking: Booking) -> bool:
        """May this be booked? A closure need not wait for leases, only for other bookings."""
        for name, units in booking.needs.items():
            load = self.load(name)
            rest = 0 if booking.closure else load.rest
            for start, end in booking.windows:
                since, until = max(start - booking.lead, load.at), end + rest
                for time in {since, *(x for x in load.times() if since <= x < until)}:
                    spoken = load.kept_at(time) if booking.closure else load.spoken(time)
                    if spoken + (units or load.limit) > load.limit:
                        return False
        return True

    def extends(self, lease: Ticket, until: int | None) -> bool:
        """May a lease last until then (None: for ever) with regard to what others have booked?"""
        was, ends = ends_of(lease), NEVER if until is None else until
        if lease.state != "g" or was == NEVER:
            return True
        for name, units in lease.needs.items():
            load = self.load(name, lease, lease.booking or "")
            since = max(was, load.at)
            for time in {since, *(x for x in load.times() if x >= since)}:
                full = load.kept_at(time) > 0 and load.spoken(time) + units > load.limit
                if full and max(was, time - load.rest) < ends:
                    return False
        return True

    def are_any(self, pools: Iterable[str]) -> bool:
        """Has one of these pools bookings?"""
        return any(map(self.keeping, pools))


def ends_of(lease: Ticket) -> int:
    """Return when a lease ends at the latest: by its hold, or because it is to stop."""
    return min((x for x in (lease.hold_until, lease.stop_until) if x is not None), default=NEVER)
