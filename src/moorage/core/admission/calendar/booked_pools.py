"""What bookings permit, in one pass of `admit`: to whom units may go, and until when.

A ticket of a booking gets units of it in its windows, ahead of all others, whatever else is booked:
that its units are free then was decided when the booking was accepted.

Any other ticket fits if what is spoken for (`profile.py`) leaves its units until its hold ends. If
bookings forbid that, it is passed over and sets nothing aside, because it may wait for days; but
the first such ticket of a pool gets the first time at which it fits, and no ticket behind it may
delay that. So short leases fill the time before a booking, and long ones do not starve. A ticket
that only waits for leases to end sets its units aside, as ever.

Time alone permits a grant when a window starts, for tickets of its booking, when one ends, when the
units of one in which nobody came are given back, and when a ticket that has units set aside cannot
start before a window any more: those behind it may then use the time.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Literal

from msgspec import structs

from moorage.core.admission.booking_model import Booking, Window, of_pool
from moorage.core.admission.calendar.profile import FOREVER, Profile, rest_max
from moorage.core.admission.draft import Draft
from moorage.core.admission.model import FREE, Lease, Pool
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.admission.requests import hold_of
from moorage.core.admission.units import units_by_pool
from moorage.core.clock import Instant
from moorage.core.ids import BookingId

Verdict = Literal["fits", "lacks", "planned", "barred", "over"]
"""Whether bookings let a ticket start. lacks: its units are free once leases end; barred: it is
passed over; planned: so it is, but none behind it may delay it; over: its booking is over."""


class BookedPools:
    """The pools of a batch that have bookings."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._facts = draft.facts
        self._at = draft.moment.at
        self._wall = draft.moment.at - draft.facts.timeline.skew
        """The wall clock, for what is written in calendars."""
        self._bookings = dict(draft.facts.bookings)
        """As this pass has changed them."""
        self._ends: dict[str, Instant | None] = {}
        """By pool, what `_until` has found."""
        self._profiles: dict[str, Profile] = {}
        self._answered: dict[BookingId, int] = {}
        """How many tickets of a booking this pass has granted."""
        self._planned: set[str] = set()
        """Pools in which a ticket has got a later time."""

    def give_back(self) -> None:
        """Give back units for which nobody has come, and let pools know when they are booked."""
        for key, one in self._facts.bookings.items():
            missed = [window.start for window in one.coming if self._is_missed(one, window)]
            if missed and not self._facts.calls.get(key):
                self._put(structs.replace(one, given_back=(*one.given_back, *missed)))
                # In its other pools, too, tickets may start now: another batch looks at them.
                others = {need.pool for need in one.needs} - self._facts.pools.keys()
                self._draft.changes.unfinished |= others
        for name in self._facts.holding:
            pool = self._facts.pools.get(name)
            if pool is not None and (until := self._until(name)) != pool.booked_until:
                self._draft.changes.pools[name] = structs.replace(pool, booked_until=until)

    def _until(self, name: str) -> Instant | None:
        """Return when the last booking of a pool ends; None: it has none any more.

        The wall clock may have gone back to one that was over.
        """
        if name in self._ends:
            return self._ends[name]
        ends = [one.ends_at for one in of_pool(self._bookings.values(), name)]
        pool = self._facts.pools.get(name)
        if pool is not None and pool.booked_until is not None:
            ends.append(pool.booked_until)
        found = max((end for end in ends if end > self._wall), default=None)
        self._ends[name] = found
        return found

    def judge(self, ticket: Lease, *, plans: bool = True) -> Verdict:
        """Return whether bookings let a ticket start now. It must not be forced.

        `plans`: let the first ticket that they hold up have a later time.
        """
        if ticket.booking is not None:
            return self._of_booking(ticket, ticket.booking)
        needs = self._needs(ticket)
        if all(self._lasts(name, n) >= self._wanted(name, ticket) for name, n in needs.items()):
            return "fits"
        bookings_let = all(
            self._profile(name).booked_until(n) - self._at >= self._wanted(name, ticket)
            for name, n in needs.items()
        )
        if bookings_let and any(self._lasts(name, n) <= 0 for name, n in needs.items()):
            return "lacks"
        return "planned" if plans and self._plan(ticket, needs) else "barred"

    def leaves_at(self, ticket: Lease) -> Instant | None:
        """Return when bookings end that a ticket has its units set aside; None: they do not.

        From then on its hold would last into a window, or it may wait for an alternative that it
        prefers. No event tells, if others hold its units.
        """
        if ticket.booking is not None or ticket.forced:
            return None
        found = [end for end in (self._barred_at(ticket), self._chooses_at(ticket)) if end]
        return Instant(min(found)) if found else None

    def _barred_at(self, ticket: Lease) -> int | None:
        needs = self._needs(ticket)
        for until in (Profile.fits_until, Profile.booked_until):  # it fits, or lacks units
            ends = [
                end - self._wanted(name, ticket) + 1
                for name, units in needs.items()
                if (end := until(self._profile(name), units)) < FOREVER
            ]
            if not ends or min(ends) > self._at:
                return min(ends, default=None)
        return None

    def _chooses_at(self, ticket: Lease) -> int | None:
        """Return when bookings may let a ticket wait for an alternative that they bar now."""
        barred = takewhile(lambda one: one != ticket.needs, ticket.alternatives)
        names = {need.pool for needs in barred for need in needs if self._has(need.pool)}
        ends = [self._profile(name).changes_at() for name in names]
        return min((end for end in ends if end is not None), default=None)

    def permits(self, ticket: Lease, name: str, units: int, left: int) -> bool:
        """May this many of the free units that are left be granted for as long as it needs them?"""
        if not units or not self._has(name):
            return True
        there = left - self.kept(name, ticket.booking)
        return units <= there and self._lasts(name, units) >= self._wanted(name, ticket)

    def ends(self, ticket: Lease) -> Instant | None:
        """Return when a lease must end that a ticket becomes now; None: as its hold says."""
        if ticket.booking is not None:
            booking = self._bookings.get(ticket.booking)
            window = None if booking is None else booking.window_at(self._wall)
            return None if window is None else Instant(window.end + self._facts.timeline.skew)
        if ticket.borrow is None or ticket.forced:
            return None
        ends = [
            self._profile(name).fits_until(units) - self._rest(name)
            for name, units in self._needs(ticket).items()
        ]
        until = min(ends, default=FOREVER)
        return Instant(until) if until < FOREVER - self._rest_max(ticket) else None

    def granted(self, lease: Lease) -> None:
        """Count a grant of this pass, and note what it has of a booking, or borrows."""
        if lease.borrow is not None and lease.booking is None and not lease.forced:
            self._borrowed(lease)
        for name, units in units_by_pool(lease.needs).items():
            if self._has(name):
                self._profile(name).add(units, lease.hold_until, lease.booking or "")
        if lease.booking is None:
            return
        self._answered[lease.booking] = self._answered.get(lease.booking, 0) + 1
        booking = self._bookings.get(lease.booking)
        window = None if booking is None else booking.window_at(self._wall)
        if booking is not None and window is not None and booking.taken_at != window.start:
            self._put(structs.replace(booking, taken_at=window.start))

    def kept(self, name: str, booking: BookingId | None) -> int:
        """Return the units of a pool that bookings keep now from a ticket; none from one of them.

        If there are too few for all bookings, none waits for what another keeps.
        """
        return self._profile(name).kept() if self._has(name) and booking is None else 0

    def untouched(self, name: str) -> int:
        """Return the units that bookings keep now; none if a ticket waits for some of them.

        That ticket is not compared with other bookings, so it may get any unit that is left.
        """
        if not self._has(name):
            return 0
        profile = self._profile(name)
        for key, one in profile.by_id.items():
            if self._is_called(BookingId(key)) and one.window_at(self._wall) is not None:
                return 0
        return profile.kept()

    def sooner(self, pool: Pool, wake_at: Instant | None) -> Instant | None:
        """Return when time alone changes something in a pool: then, or when a booking does."""
        found = [wake_at] if wake_at is not None else []
        if pool.booked_until is not None:
            found.append(Instant(pool.booked_until + self._facts.timeline.skew))
        if self._has(pool.name):
            for one in self._profile(pool.name).by_id.values():
                found += self._turns(one)
        return min(found, default=None)

    def _turns(self, booking: Booking) -> Iterator[Instant]:
        booking = self._bookings[booking.id]
        skew, called = self._facts.timeline.skew, self._is_called(booking.id)
        for window in booking.coming:
            if window.end <= self._wall:
                continue
            times = [window.end + skew, self._missed_at(booking, window.start)]
            if called:
                times.append(window.start + skew)
            yield from (Instant(time) for time in times if time is not None and time > self._at)
            if window.start > self._wall:
                return

    def _is_called(self, booking: BookingId) -> bool:
        """Does a ticket wait for units of it, after the grants of this pass?"""
        return self._facts.calls.get(booking, 0) > self._answered.get(booking, 0)

    def _is_missed(self, booking: Booking, window: Window) -> bool:
        due = self._missed_at(booking, window.start)
        return due is not None and due <= self._at and self._wall < window.end

    def _missed_at(self, booking: Booking, start: Instant) -> Instant | None:
        """Return when a window counts as missed (service time); None: never, or it was taken.

        After an outage its owner has the whole time again.
        """
        if booking.no_show is None or booking.closure or booking.taken_at == start:
            return None
        begun = start + self._facts.timeline.skew
        outage = self._draft.moment.outage_ended_at
        return Instant(max(begun, min(outage, self._at)) + booking.no_show)

    def _of_booking(self, ticket: Lease, key: BookingId) -> Verdict:
        booking, until = self._bookings.get(key), ticket.booked_until
        if booking is None and until is not None and until > self._at:
            return "barred"  # the wall clock has gone back, and its pool does not know of it yet
        coming = () if booking is None else booking.coming
        if booking is None or not coming or coming[-1].end <= self._wall:
            return "over"
        if booking.window_at(self._wall) is None:
            return "barred"
        for name, units in units_by_pool(ticket.needs).items():
            profile = self._profile(name)
            if profile.held_by(key) + units > booking.units_in(name, profile.limit):
                return "barred"
        return "fits"

    def starts(self, ticket: Lease) -> int | None:
        """Return from when on bookings let a ticket start, if leases end by their holds.

        None: never. Of a ticket with a booking: the start of its present or next window.
        """
        if ticket.booking is not None:
            booking = self._bookings.get(ticket.booking)
            coming = () if booking is None else booking.coming
            skew = self._facts.timeline.skew
            starts = (max(self._at, one.start + skew) for one in coming if one.end > self._wall)
            return next(starts, None)
        needs = self._needs(ticket)
        start = self._first_fit(ticket, needs)
        return start if start < FOREVER else None

    def due(self, ticket: Lease) -> tuple[str, int]:
        """Return the pool whose units are spoken for first, and from when on."""
        needs = self._needs(ticket)
        ends = ((self._profile(name).fits_until(units), name) for name, units in needs.items())
        until, name = min(ends)
        return name, until

    def _plan(self, ticket: Lease, needs: dict[str, int]) -> bool:
        """Keep units from when they fit, for the first ticket of its pools; return whether."""
        if not self._planned.isdisjoint(needs):
            return False
        # One that leases without an end hold up for ever must not keep those behind it from a plan.
        if not all(self._profile(name).fits_at_last(units) for name, units in needs.items()):
            return False
        self._planned.update(needs)
        start = self._first_fit(ticket, needs)
        for name, units in needs.items():
            self._profile(name).plan(units, start, start + self._wanted(name, ticket))
        return True

    def _first_fit(self, ticket: Lease, needs: dict[str, int]) -> int:
        start, before = int(self._at), -1
        while start != before and start < FOREVER:
            before = start
            for name, units in needs.items():
                start = self._profile(name).first_fit(units, self._wanted(name, ticket), start)
        return start

    def _borrowed(self, lease: Lease) -> None:
        """Note in a lease which booking has shortened its hold."""
        until = lease.hold_until
        asked = None if lease.hold is None else self._at + lease.hold
        if until is None or (asked is not None and until >= asked):
            return
        for name in units_by_pool(lease.needs):
            if self._has(name):
                key = self._profile(name).next_booking(until)
                if key is not None:
                    self._draft.put(structs.replace(lease, yields_to=BookingId(key)))
                    return

    def _put(self, booking: Booking) -> None:
        self._bookings[booking.id] = self._draft.changes.bookings[booking.id] = booking

    def _needs(self, ticket: Lease) -> dict[str, int]:
        """Return the units that a ticket needs of pools with bookings.

        Without slots in other states than free: no booking can use those, and who takes them, for
        example to clean them, makes them free.
        """
        free = [need for need in ticket.needs if need.state == FREE]
        return {name: n for name, n in units_by_pool(free).items() if self._has(name)}

    def _has(self, name: str) -> bool:
        return name in self._facts.holding and self._until(name) is not None

    def _lasts(self, name: str, units: int) -> int:
        """Return for how long this many more units fit from now on."""
        return self._profile(name).fits_until(units) - self._at

    def _wanted(self, name: str, ticket: Lease) -> int:
        """Return for how long a ticket must have units at least, with their cooldown after it."""
        proxy = self._draft.pool(name).spec.proxy_ttl if ticket.owner == LEASE_PROXY else None
        spans = [one for one in (self._hold(ticket), ticket.borrow, proxy) if one is not None]
        return min(spans) + self._rest(name) if spans else FOREVER - self._at

    def _hold(self, ticket: Lease) -> int | None:
        """Return the hold that the lease of a ticket gets; of alternatives, with these needs."""
        if ticket.choice is None or not ticket.choice.hold_open:
            return ticket.hold
        return hold_of([self._draft.pool(need.pool) for need in ticket.needs], None)

    def _rest(self, name: str) -> int:
        return rest_max(self._draft.pool(name).spec)

    def _rest_max(self, ticket: Lease) -> int:
        return max((self._rest(need.pool) for need in ticket.needs), default=0)

    def _profile(self, name: str) -> Profile:
        found = self._profiles.get(name)
        if found is None:
            pool = self._facts.pools[name]
            bookings = of_pool(self._bookings.values(), name)
            found = self._profiles[name] = Profile(self._facts, pool, self._at, bookings)
        return found
