"""I29: bookings: nothing lasts into their units, their owners get them, what nobody uses goes back.

As the rest of the auditor, this computes nothing with the package. What is spoken for is added up
at each moment at which it may change: the leases until their holds end, and the cooldown after
them; and for each booking what its leases do not have. Source: docs/decisions/0065-bookings.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.core.admission.booking_model import Booking, Window
from moorage.core.admission.model import Lease, Need, Pool, PoolSpec
from moorage.core.ids import BookingId
from tests.simulation.admission import calls as do
from tests.simulation.admission.books import Books, claim, units_in

NEVER = 1 << 62
FIXED = ("owner", "key", "digest", "closure", "lead", "no_show", "forced", "created_at")


@dataclass
class Load:
    """What is spoken for in one pool. All times are service time."""

    limit: int
    at: int
    rest: int
    """How long units may rest after a lease."""
    held: list[tuple[int, int, str]] = field(default_factory=list)
    """Until when leases and cooldowns have units, how many, and of which booking."""
    kept: dict[str, tuple[int, list[tuple[int, int]]]] = field(default_factory=dict)
    """By booking: its units, and when they are kept."""
    plans: list[tuple[int, int, int]] = field(default_factory=list)
    """Units that the first ticket which bookings hold up is to have: from, until, units."""

    def hold(self, ends: int, units: int, booking: str | None) -> None:
        """Add a lease of a booking, or of none, that ends then at the latest."""
        known = booking if booking in self.kept else None
        self.held.append((ends + self.rest if ends < NEVER else NEVER, units, known or ""))

    def kept_at(self, time: int, leases: bool = True) -> int:
        """Return what bookings keep at a time and their leases do not have then."""
        total = 0
        for key, (units, spans) in self.kept.items():
            if any(start <= time < end for start, end in spans):
                used = sum(n for end, n, of in self.held if of == key and end > time)
                total += max(0, units - used * leases)
        return total

    def spoken(self, time: int) -> int:
        """Return all units that are spoken for at a time."""
        leases = sum(units for end, units, _ in self.held if end > time)
        planned = sum(units for start, end, units in self.plans if start <= time < end)
        return leases + planned + self.kept_at(time)

    def times(self) -> list[int]:
        """Return when anything may change, from now on."""
        found = {self.at, *(end for end, _, _ in self.held)}
        for _, spans in self.kept.values():
            found |= {time for span in spans for time in span}
        for start, end, _ in self.plans:
            found |= {start, end}
        return sorted(time for time in found if self.at <= time < NEVER)

    def lasts(self, units: int) -> int:
        """Return until when this many more units are free from now on."""
        over = (time for time in self.times() if self.spoken(time) + units > self.limit)
        return next(over, NEVER)

    def lasts_without_leases(self, units: int) -> int:
        """Return the same as if nobody had a lease, and nothing was planned."""
        over = (time for time in self.times() if self.kept_at(time, False) + units > self.limit)
        return next(over, NEVER)

    def fits(self, units: int, start: int, lasts: int) -> bool:
        """Are this many more units free from a time on for this long?"""
        times = {start, *(time for time in self.times() if start <= time < start + lasts)}
        return all(self.spoken(time) + units <= self.limit for time in times)


Wants = list[tuple[Load, int, int]]
"""What a ticket needs of booked pools: the pool, the units, and for how long it must have them."""


def says(wants: Wants) -> str:
    """Return what bookings say to a ticket without one: fits, lacks or held, see `verdict`."""
    if all(load.lasts(units) - load.at >= wanted for load, units, wanted in wants):
        return "fits"
    let = all(load.lasts_without_leases(n) - load.at >= wanted for load, n, wanted in wants)
    return "lacks" if let and any(load.lasts(n) <= load.at for load, n, _ in wants) else "held"


def first(wants: Wants) -> int:
    """Return the first time from which all of it is free."""
    for time in sorted({time for load, _, _ in wants for time in load.times()}):
        if all(load.fits(units, time, wanted) for load, units, wanted in wants):
            return time
    return NEVER


@dataclass
class Calendar:
    """All bookings, as they were stored last."""

    books: Books
    rows: Mapping[str, Pool]
    bookings: dict[BookingId, Booking] = field(default_factory=dict)
    taken: dict[BookingId, int] = field(default_factory=dict)
    """The start of the last window in which a lease got units of it."""
    at: int = 0
    skew: int = 0
    jumps: bool = False
    """The wall clock has jumped in this batch: what it has loaded is as of before."""
    settled: bool = True
    """A sweep has looked at all pools with bookings since the wall clock has jumped."""
    outage_ended: int = 0
    fresh: list[BookingId] = field(default_factory=list)
    """Those that this batch has made, or given other units or windows."""
    gave: set[BookingId] = field(default_factory=set)
    """Those that have given something back in this batch."""
    left: set[BookingId] = field(default_factory=set)
    """Those that were over when one of their pools was deleted: no clock brings them back."""

    @property
    def wall(self) -> int:
        """The wall clock, as windows are written."""
        return self.at - self.skew

    def now(self, at: int, skew: int, outage_ended: int, *, swept: bool) -> None:
        """Note the time of a batch."""
        self.jumps = skew != self.skew
        self.settled = (self.settled or swept) and not self.jumps
        self.at, self.skew, self.outage_ended = at, skew, outage_ended

    # Changes of bookings.

    def changed(self, changes: Mapping[BookingId, Booking], told: list[Any]) -> None:
        """Check what a batch has done to bookings: only what somebody has asked for."""
        calls = [one.call for one in told if not one.refused]
        self.fresh, self.gave = [], set()
        for key, after in changes.items():
            before = self.bookings.get(key)
            asked: list[Any] = []
            if before is None:
                asked = [one for one in calls if isinstance(one, do.Book) and is_of(after, one)]
                claim(asked, "I29", key, "was booked by nobody")
            else:
                asked = [one for one in calls if isinstance(one, do.Rebook) and one.booking == key]
                for name in FIXED:
                    same = getattr(before, name) == getattr(after, name)
                    claim(same, "I29", key, "has another", name)
                self._cancelled(before, after, calls)
            allowed = [(one.needs, one.windows) for one in asked]
            allowed += [] if before is None else [(before.needs, spans_of(before))]
            is_now = (after.needs, spans_of(after))
            claim(is_now in allowed, "I29", key, "was changed by nobody")
            if before is None or is_now != (before.needs, spans_of(before)):
                self.fresh.append(key)
            for one in asked:
                claim(one.owner in (None, after.owner), "I29", key, "was changed by", one.owner)
        self._given_back(changes)
        self.bookings.update(changes)

    def _cancelled(self, before: Booking, after: Booking, calls: list[Any]) -> None:
        if before.cancelled_at is not None:
            claim(before == after, "I29", after.id, "changes after it was cancelled")
        elif after.cancelled_at is not None:
            by = [
                one.owner for one in calls if isinstance(one, do.Unbook) if one.booking == after.id
            ]
            claim(by, "I29", after.id, "was cancelled by nobody")
            claim({*by} & {None, after.owner}, "I29", after.id, "was cancelled by", by)

    def _given_back(self, changes: Mapping[BookingId, Booking]) -> None:
        """Check what was given back: its time is over, nobody came, and nobody waits for it."""
        for key, after in changes.items():
            before = self.bookings.get(key)
            known = () if before is None else before.given_back
            claim({*known} <= {*after.given_back}, "I29", key, "has got back what it gave back")
            for start in {*after.given_back} - {*known}:
                self.gave.add(key)
                missed = self._missed_at(after, start)
                claim(missed is not None and missed <= self.at, "I29", key, "gives back too early")
                claim(self.taken.get(key) != start, "I29", key, "gives back what was taken")

    def nobody_called(self) -> None:
        """Check, after all changes of a batch, that nobody waits for what it has given back."""
        for book in self.books.live.values():
            lease = book.seen
            now = lease.state == "waiting" or lease.granted_at == self.at
            gone = lease.booking in self.gave and now
            claim(not gone, "I29", lease.booking, "gives back what", lease.id, "waits for")

    def _missed_at(self, booking: Booking, start: int) -> int | None:
        """Return when its units are given back unless somebody asks for some; None: never."""
        if booking.no_show is None or booking.closure:
            return None
        return max(start + self.skew, min(self.outage_ended, self.at)) + booking.no_show

    def swept(self, slack: int = 0) -> None:
        """Check that nothing is late after a sweep: units nobody uses, and ends of bookings."""
        at = self.at - slack
        if not self.settled:
            return
        for key, one in self._standing().items():
            called = any(ticket.booking == key for ticket in self.books.waiting())
            for window in coming(one):
                missed = self._missed_at(one, window.start)
                late = missed is not None and missed <= at and window.end > self.wall
                taken = self.taken.get(key) == window.start
                claim(not late or called or taken, "I29", key, "keeps what nobody uses")
        for name, row in self.rows.items():
            until = row.booked_until
            claim(until is None or until + self.skew > at, "I29", name, "is booked until", until)

    def _standing(self) -> dict[BookingId, Booking]:
        """Return the bookings whose pools exist, or were deleted although they were not over."""
        for key, one in self.bookings.items():
            over = one.cancelled_at is not None or one.windows[-1].end <= self.wall
            if over and any(need.pool not in self.rows for need in one.needs):
                self.left.add(key)
        return {key: one for key, one in self.bookings.items() if key not in self.left}

    def stands(self) -> None:
        """Check the ends that pools have noted; otherwise they would not know of bookings."""
        ends: dict[str, int] = {}
        if not self.settled:
            return
        standing = self._standing().values()
        for one in standing:
            if one.cancelled_at is None and one.windows[-1].end > self.wall:
                for need in one.needs:
                    ends[need.pool] = max(ends.get(need.pool, 0), one.windows[-1].end)
        for name, end in ends.items():
            row = self.rows.get(name)
            claim(row, "I29", name, "is booked and gone")
            assert row is not None
            claim(row.booked_until == end, "I29", name, "is booked until", end, row.booked_until)
            claim(row.spec.cohort is None, "I29", name, "is booked, and lends units")

        for one in standing:
            called = any(ticket.booking == one.id for ticket in self.books.waiting())
            turns = [time for span in coming(one) for time in (span.start, span.end)[not called :]]
            turn = min((time + self.skew for time in turns if time > self.wall), default=NEVER)
            for need in one.needs if turn < NEVER else ():
                wake_at = self.rows[need.pool].wake_at
                noted = wake_at is not None and wake_at <= turn
                claim(noted, "I29", need.pool, "wakes at", wake_at, "and is booked at", turn)

    # What bookings permit.

    def is_booked(self, name: str) -> bool:
        """Has a pool bookings?"""
        row = self.rows.get(name)
        return row is not None and row.booked_until is not None

    def open_window(self, key: BookingId) -> Window | None:
        """Return the window of a booking in which its owner may have its units now."""
        booking = self.bookings.get(key)
        found = () if booking is None else coming(booking)
        return next((one for one in found if one.start <= self.wall < one.end), None)

    def is_over(self, key: BookingId) -> bool:
        """Does a booking have no window any more?"""
        booking = self.bookings.get(key)
        return booking is None or all(one.end <= self.wall for one in coming(booking))

    def load(self, name: str, leases: Iterable[Lease]) -> Load:
        """Return what is spoken for in a pool, of which these leases have units."""
        spec, limit = self.books.pools[name].spec, self.books.limit(name)
        load = Load(limit, self.at, rest_max(spec))
        for key, one in self.bookings.items():
            if one.cancelled_at is None and one.windows[-1].end > self.wall:
                units = units_of(one, name, limit)
                rest = 0 if one.closure else load.rest
                spans = [
                    (span.start - one.lead + self.skew, span.end + rest + self.skew)
                    for span in coming(one)
                    if span.end > self.wall
                ]
                if units:
                    load.kept[key] = (units, spans)
        for lease in leases:
            units = units_in([lease], name)
            if units:
                load.hold(ends_of(lease), units, lease.booking)
        if spec.limit is not None:
            load.held += [(until, n, "") for until, n in self.books.pools[name].rests]
        else:
            load.held += [
                (until, 1, "")
                for (pool, slot), until in self.books.slot_rests.items()
                if pool == name and is_idle(self.books, name, slot)
            ]
        return load

    # What was decided about leases.

    def asked(self, ask: do.Ask) -> None:
        """Check that a request with a booking was one of its owner, for what it has."""
        if ask.booking is None:
            return
        booking = self.bookings.get(ask.booking)
        claim(booking is not None, "I29", ask, "uses a booking that is none")
        assert booking is not None
        claim(booking.owner == ask.owner, "I29", ask, "uses the booking of", booking.owner)
        claim(not booking.closure, "I29", ask, "uses a closure")
        for need in ask.needs:
            units = units_of(booking, need.pool, 0)
            claim(need.units <= units, "I29", ask, "wants more than", units)

    def granted(self, leases: Iterable[Lease]) -> None:
        """Note which windows were used."""
        for lease in leases:
            window = None if lease.booking is None else self.open_window(lease.booking)
            if lease.booking is not None and window is not None:
                self.taken[lease.booking] = window.start

    def ends(self, lease: Lease) -> set[int | None]:
        """Return when the hold of a lease that is granted now may end."""
        hold = None if lease.hold is None else self.at + lease.hold
        if lease.booking is not None:
            window = self.open_window(lease.booking)
            end = NEVER if window is None else window.end + self.skew
            return {min(end, hold or NEVER) if window or hold is not None else None}
        if lease.borrow is None or lease.forced or lease.hold_until is None:
            return {hold}
        least = min(self.at + lease.borrow, hold or NEVER)
        within = least <= lease.hold_until <= (hold or NEVER)
        booked = any(self.is_booked(need.pool) for need in lease.needs)
        claim(within and (booked or lease.hold_until == hold), "I29", lease.id, "borrows badly")
        return {lease.hold_until}

    def extended(self, before: Lease, after: Lease) -> None:
        """Check a hold that ends later now: until then no booking needs the units."""
        was, ends = ends_of(before), ends_of(after)
        if was == NEVER or ends <= max(was, before.hold_until or 0):
            return
        others = [one for one in self.books.granted() if one.granted_at != self.at]
        for name in {need.pool for need in after.needs if self.is_booked(need.pool)}:
            load = self.load(name, others)
            load.kept = {k: kept for k, kept in load.kept.items() if k != after.booking}
            for time in load.times():
                if was <= time < ends + load.rest:
                    full = load.kept_at(time) > 0 and load.spoken(time) > load.limit
                    claim(not full, "I29", after.id, "is extended into a booking of", name)

    def accepted(self, told: list[Any]) -> None:
        """Check, after a batch, that what it has booked fits: that all together have their units.

        Not if the batch may have taken units for other reasons.
        """
        other = (do.PoolPut, do.Force, do.Accept, do.Retry)
        done = [one.call for one in told if not one.refused]
        if any(isinstance(call, other) or getattr(call, "forced", False) for call in done):
            return
        leases = self.books.granted()
        for one in [self.bookings[key] for key in self.fresh]:
            if one.closure or one.forced:
                continue
            for need in one.needs:
                load = self.load(need.pool, leases)
                _, spans = load.kept.get(one.id, (0, []))
                for time in load.times():
                    within = any(start <= time < end for start, end in spans)
                    fits = not within or load.spoken(time) <= load.limit
                    claim(fits, "I29", one.id, "was booked, and there are too few units:", need)


def ends_of(lease: Lease) -> int:
    """Return when a lease ends at the latest: by its hold, or because it is to stop."""
    ends = (end for end in (lease.hold_until, lease.stop_until) if end is not None)
    return min(ends, default=NEVER)


def coming(booking: Booking) -> tuple[Window, ...]:
    """Return the windows of a booking that were not given back; none if it was cancelled."""
    if booking.cancelled_at is not None:
        return ()
    return tuple(one for one in booking.windows if one.start not in booking.given_back)


def spans_of(booking: Booking) -> tuple[do.Span, ...]:
    """Return the windows of a booking as a call has them."""
    return tuple((one.start, one.end) for one in booking.windows)


def is_of(booking: Booking, call: do.Book) -> bool:
    """Does a call ask for this booking?"""
    same = (booking.owner, booking.key) == (call.owner, call.key)
    return same and (booking.closure, booking.lead) == (call.closure, call.lead)


def units_of(booking: Booking, pool: str, limit: int) -> int:
    """Return how many units of a pool a booking has; 0 stands for all of a closure."""
    return sum(need.units or limit for need in booking.needs if need.pool == pool)


def rest_max(spec: PoolSpec) -> int:
    """Return how long a unit may rest after a lease."""
    return max(spec.cooldown, spec.lock_delay)


def is_idle(books: Books, pool: str, name: str) -> bool:
    """Is a slot that rests free otherwise?"""
    slot = books.slots.get((pool, name))
    return slot is not None and not slot.owner and slot.state == "free"


@dataclass
class Turns:
    """Whether bookings let tickets start, in one scan of all lines."""

    calendar: Calendar
    leases: list[Lease]
    """Those that have units; what the scan grants is added."""
    loads: dict[str, Load] = field(default_factory=dict)
    planned: set[str] = field(default_factory=set)
    """Pools whose first ticket that is held up has a time."""
    unsure: set[str] = field(default_factory=set)
    """Pools in which it is not known what is planned."""

    def load(self, name: str) -> Load:
        """Return what is spoken for in a pool so far."""
        if name not in self.loads:
            self.loads[name] = self.calendar.load(name, self.leases)
        return self.loads[name]

    def booked(self, needs: Iterable[Need]) -> list[Need]:
        """Return the needs of pools that have bookings."""
        return [need for need in needs if self.calendar.is_booked(need.pool)]

    def verdict(self, ticket: Lease, needs: tuple[Need, ...]) -> str:
        """Return fits, lacks (units, until leases end), held (by bookings) or closed."""
        if self.calendar.jumps:
            return "fits"
        if ticket.booking is not None:
            return self._own(ticket.booking, needs)
        return says(self._wants(ticket, needs))

    def _wants(self, ticket: Lease, needs: tuple[Need, ...]) -> Wants:
        loads = [(self.load(need.pool), need.units) for need in self.booked(needs)]
        return [(load, units, self.wanted(ticket, needs, load)) for load, units in loads]

    def _own(self, key: BookingId, needs: tuple[Need, ...]) -> str:
        booking = self.calendar.bookings.get(key)
        if booking is None or self.calendar.open_window(key) is None:
            return "closed"
        for need in needs:
            load = self.load(need.pool)
            used = sum(n for end, n, of in load.held if of == key and end > load.at)
            if used + need.units > units_of(booking, need.pool, load.limit):
                return "closed"
        return "fits"

    def wanted(self, ticket: Lease, needs: tuple[Need, ...], load: Load) -> int:
        """Return for how long a ticket needs its units at least, with the rest after it."""
        hold = ticket.hold
        if ticket.choice is not None and ticket.choice.hold_open:
            specs = [self.calendar.books.pools[need.pool].spec for need in needs]
            hold = min([spec.hold for spec in specs if spec.hold is not None], default=None)
        spans = [one for one in (hold, ticket.borrow) if one is not None]
        return min(spans) + load.rest if spans else NEVER - load.at

    def kept(self, name: str) -> int:
        """Return what bookings keep now from all others."""
        if self.calendar.jumps or not self.calendar.is_booked(name):
            return 0
        load, wall = self.load(name), self.calendar.wall
        total = 0
        for key, (units, _) in load.kept.items():
            one = self.calendar.bookings[BookingId(key)]
            if any(span.start - one.lead <= wall < span.end for span in coming(one)):
                used = sum(n for end, n, of in load.held if of == key and end > load.at)
                total += max(0, units - used)
        return total

    def hold_up(self, ticket: Lease, needs: tuple[Need, ...]) -> None:
        """Note a ticket that bookings hold up: the first one of a pool has a later time."""
        names = {need.pool for need in self.booked(needs)}
        if ticket.alternatives or len({need.pool for need in needs}) > 1:
            self.unsure |= names
        elif not names & (self.planned | self.unsure):
            ((load, units, lasts),) = wants = self._wants(ticket, needs)
            start = first(wants)
            if start < NEVER:  # else leases without an end hold it up for ever
                self.planned |= names
                load.plans.append((start, start + lasts, units))

    def take(self, lease: Lease) -> None:
        """Note a grant."""
        self.leases.append(lease)
        for need in lease.needs:
            if need.pool in self.loads:
                self.loads[need.pool].hold(ends_of(lease), need.units, lease.booking)
