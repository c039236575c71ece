"""How many units of a pool are spoken for at each moment from now on: leases, and bookings.

**The rule.** A grant at t with a hold h fits if and only if its units are at most the least, over
t to t + h, of the pool's limit minus what others have then: leases until their holds end, and what
bookings keep. A lease without an end counts for ever. After its end its units may have to rest, so
a lease counts for the longest cooldown of its pool more.

**What a booking keeps.** Its units from `start - lead` to `end`, less those that leases of this
booking have at that moment: these count as leases.

Times are service time here; those of bookings are mapped from the wall clock by the present skew,
so bookings follow the calendar, and leases last as long as they were granted for. An outage moves
neither. Source: docs/decisions/0065-bookings.md.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from moorage.core.admission.booking_model import Booking, Window, of_pool
from moorage.core.admission.facts import Facts
from moorage.core.admission.model import Pool, PoolSpec
from moorage.core.admission.units import limit_of, rests
from moorage.core.clock import Instant

FOREVER = Instant(1 << 62)
"""Later than any time."""


class Profile:
    """The units of one pool that are spoken for, from now on, as a step function of time."""

    def __init__(
        self,
        facts: Facts,
        pool: Pool,
        at: Instant,
        bookings: Iterable[Booking] | None = None,
        limit: int | None = None,
    ) -> None:
        """Read it from the facts, which say what the pool's leases hold.

        `bookings` of the pool; None: those in the facts. `limit` None: the one in force.
        """
        self.limit = limit_of(facts, pool) if limit is None else limit
        self._at = at
        self.rest = rest_max(pool.spec)
        """How long its units may have to rest after a lease."""
        if bookings is None:
            bookings = of_pool(facts.bookings.values(), pool.name)
        self._bookings: dict[str, Booking] = {one.id: one for one in bookings}
        self._units = {key: one.units_in(pool.name, self.limit) for key, one in self.by_id.items()}
        self._skew = facts.timeline.skew
        self._held: dict[str, list[tuple[int, int]]] = {}
        """By booking, "" for leases of none: until when leases have units, rests included."""
        for (until, booking), units in facts.holding.get(pool.name, {}).items():
            if units:
                self._hold(units, until, booking)
        resting = [(rest.until, rest.units) for rest in rests(facts, pool, at)]
        self._held.setdefault("", []).extend(resting)
        self._steps: tuple[list[int], list[int]] | None = None
        self._fits: dict[tuple[int, str], int] = {}
        self._bars: dict[tuple[int, str], int] = {}
        wall = at - self._skew
        self._keeping = [key for key, one in self._bookings.items() if one.keeps_at(wall)]
        self._windows: list[tuple[int, int, int]] = []
        """Units that are planned for tickets which wait: start, end, units."""

    @property
    def by_id(self) -> dict[str, Booking]:
        """The live bookings of the pool."""
        return self._bookings

    def add(self, units: int, until: Instant | None, booking: str = "") -> None:
        """Count a lease that is granted now."""
        self._hold(units, until, booking)
        self._forget()

    def plan(self, units: int, start: int, end: int) -> None:
        """Keep units for a ticket that starts later: nobody behind it may delay it."""
        self._windows.append((start, end, units))
        self._forget()

    def kept(self) -> int:
        """Return the units that bookings keep now."""
        at = self._at
        return sum(max(0, self._units[key] - self._held_at(key, at)) for key in self._keeping)

    def held_by(self, booking: str) -> int:
        """Return the units that leases of a booking have now, or that rest after one."""
        return self._held_at(booking, self._at)

    def fits_until(self, units: int, booking: str = "") -> Instant:
        """Return until when this many more units fit from now on; now: not at all.

        `booking`: the units of this one count as free.
        """
        known = self._fits.get((units, booking))
        if known is None:
            most = self.limit - units
            times, loads = self._step(booking)
            over = (at for at, load in zip(times, loads, strict=True) if load > most)
            known = self._fits[units, booking] = next(over, FOREVER)
        return Instant(known)

    def changes_at(self) -> int | None:
        """Return the next time from which on other units are spoken for; None: there is none."""
        return next((time for time in self._step("")[0] if time > self._at), None)

    def fits_at_last(self, units: int) -> bool:
        """Do units fit once all bookings, and all leases that have an end, are over?"""
        return self._step("")[1][-1] <= self.limit - units

    def first_fit(self, units: int, lasts: int, not_before: int = 0) -> int:
        """Return the first time at which units fit for this long; `FOREVER`: there is none."""
        most, start = self.limit - units, max(self._at, not_before)
        times, loads = self._step("")
        for n in range(max(0, bisect_right(times, start) - 1), len(times)):
            if loads[n] > most:
                start = times[n + 1] if n + 1 < len(times) else FOREVER
            elif n + 1 < len(times) and times[n + 1] - start >= lasts:
                break
        return start

    def free_windows(self, units: int, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the longest intervals within start and end during which units fit."""
        most = self.limit - units
        times, loads = self._step("")
        since: int | None = None
        for n, load in enumerate(loads):
            begins = max(start, times[n])
            ends = min(end, times[n + 1] if n + 1 < len(times) else end)
            if ends <= begins:
                continue
            if load > most:
                if since is not None and begins > since:
                    yield since, begins
                since = None
            elif since is None:
                since = begins
        if since is not None and end > since:
            yield since, end

    def needed(self, units: int, since: int, booking: str = "") -> Instant:
        """Return when other bookings need these units, from a time on; `FOREVER`: never.

        What leases alone have above a lowered limit does not count: no booking needs that.
        """
        most, found = self.limit - units, FOREVER
        times, loads = self._step(booking)
        for start, end, kept in self._booked(booking):
            begins = max(since, start)
            if not kept or end <= begins:
                continue
            first = max(0, bisect_right(times, begins) - 1)
            for at, load in zip(times[first:], loads[first:], strict=True):
                if at < end and load > most:
                    found = min(found, Instant(max(at, begins)))
                if at >= end or load > most:
                    break
        return found

    def booked_until(self, units: int, booking: str = "") -> Instant:
        """Return as `fits_until`, but as if bookings alone had units, and no lease did."""
        known = self._bars.get((units, booking))
        if known is None:  # no grant changes it, so all tickets of a pass share it
            most = self.limit - units
            times, loads = _summed(self._at, self._booked(booking, alone=True))
            over = (at for at, load in zip(times, loads, strict=True) if load > most)
            known = self._bars[units, booking] = next(over, FOREVER)
        return Instant(known)

    def conflict(self, booking: Booking, units: int, *, bookings_only: bool) -> Window | None:
        """Return the first window of a new booking in which its units are not free; None: none.

        `bookings_only`: as if no lease had any units, nor rested.
        """
        spoken = [] if bookings_only else [*self._spoken(booking.id, units)]
        times, loads = _summed(self._at, [*spoken, *self._booked(booking.id)])
        rest = 0 if booking.closure else self.rest
        for window in booking.coming:
            start, end = window.start - booking.lead + self._skew, window.end + rest + self._skew
            first = max(0, bisect_right(times, start) - 1)
            for at, load in zip(times[first:], loads[first:], strict=True):
                if at >= end:
                    break
                if load + units > self.limit:
                    return window
        return None

    def next_booking(self, until: int) -> str | None:
        """Return the booking that keeps units from a time on, or is the next to do so."""
        found = [
            (start, key)
            for key, one in self._bookings.items()
            for start, end in self._mapped(one)
            if end > until
        ]
        return min(found)[1] if found else None

    def _hold(self, units: int, until: Instant | None, booking: str) -> None:
        # A booking that is over keeps nothing: its leases are as any others.
        key = booking if booking in self._bookings else ""
        ends = FOREVER if until is None else until + self.rest
        self._held.setdefault(key, []).append((ends, units))

    def _forget(self) -> None:
        self._steps = None
        self._fits.clear()

    def _held_at(self, booking: str, at: int) -> int:
        return sum(units for until, units in self._held.get(booking, ()) if until > at)

    def _step(self, booking: str) -> tuple[list[int], list[int]]:
        if booking:
            return _summed(self._at, [*self._spoken(), *self._booked(booking)])
        if self._steps is None:
            self._steps = _summed(self._at, [*self._spoken(), *self._booked("")])
        return self._steps

    def _spoken(self, without: str = "", units: int = 0) -> Iterator[tuple[int, int, int]]:
        """Yield what leases hold, and what is planned, as (start, end, units).

        `without`: of the leases of this booking, only what they have above these units.
        """
        for key, held in self._held.items():
            if without and key == without:
                above = sum(one for _, one in held) - units
                yield self._at, max((until for until, _ in held), default=0), max(0, above)
                continue
            for until, one in held:
                yield self._at, until, one
        yield from self._windows

    def _booked(self, without: str, *, alone: bool = False) -> Iterator[tuple[int, int, int]]:
        """Yield what bookings keep; `alone`: as if no lease of theirs had any of it."""
        for key, one in self._bookings.items():
            if key == without:
                continue
            held = [] if alone else sorted(self._held.get(key, ()))
            over, there = 0, sum(units for _, units in held)
            for start, end in self._mapped(one):
                while over < len(held) and held[over][0] <= start:  # also in all later windows
                    there -= held[over][1]
                    over += 1
                since, left = start, there
                for until, units in held[over:]:
                    if since >= end:
                        break
                    yield since, min(until, end), max(0, self._units[key] - left)
                    since = min(until, end)
                    left -= units
                yield since, end, self._units[key]

    def _mapped(self, booking: Booking) -> Iterator[tuple[int, int]]:
        """Yield when a booking keeps its units, from now on, in service time."""
        rest = 0 if booking.closure else self.rest
        for start, end in kept_spans(booking, self._at - self._skew, rest):
            yield max(self._at, start + self._skew), end + self._skew


def kept_spans(booking: Booking, wall: int, rest: int = 0) -> list[tuple[int, int]]:
    """Return when a booking keeps its units from now on, by the wall clock, ascending and apart.

    `rest`: how long its units may have to rest after a window that is still to end.
    """
    found: list[tuple[int, int]] = []
    for window in booking.coming:
        if window.end <= wall:
            continue
        start, end = window.start - booking.lead, window.end + rest
        if found and found[-1][1] >= start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def rest_max(spec: PoolSpec) -> int:
    """Return the longest cooldown of a unit after any end."""
    return max(spec.cooldown, spec.lock_delay)


def _summed(at: int, spans: Iterable[tuple[int, int, int]]) -> tuple[list[int], list[int]]:
    """Return the times from which on a sum of spans is another, from now on, and the sums."""
    deltas: dict[int, int] = {at: 0}
    for start, end, units in spans:
        if units and end > start:
            deltas[start] = deltas.get(start, 0) + units
            if end < FOREVER:
                deltas[end] = deltas.get(end, 0) - units
    times = sorted(deltas)
    loads, load = [], 0
    for time in times:
        load += deltas[time]
        loads.append(load)
    return times, loads
