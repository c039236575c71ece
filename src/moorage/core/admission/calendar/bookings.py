"""Bookings: who may book which units, and when; their changes and ends.

**The rule.** A booking is accepted if and only if what is spoken for (`profile.py`), together with
it, never exceeds the limit of a pool in its windows. Leases count until their holds end, and a
lease without an end for ever; tickets that wait do not count. A closure, by which an operator takes
units out of use, need not wait for leases, only for other bookings: what has started goes on, and
nothing starts that would last into it. An operator may force either; then the pool has too few
units in some window, and its bookings are served in the order of their tickets.

A lower limit, a forced lease or a lost slot can have the same effect later: nothing is revoked. An
adaptive limit may be lower than what is booked: bookings count on what an operator has set.
Source: docs/decisions/0065-bookings.md.
"""

from collections.abc import Iterable, Iterator, Sized

from msgspec import Struct, structs

from moorage.core.admission import bounds
from moorage.core.admission.booking_model import CANCELLED, Booking, Window, of_pool
from moorage.core.admission.calendar.profile import FOREVER, Profile, kept_spans
from moorage.core.admission.draft import Draft
from moorage.core.admission.facts import Changes, Facts
from moorage.core.admission.model import Lease, Need, Pool, first_end
from moorage.core.admission.owners import project_of
from moorage.core.admission.requests import LeaseRequest, check_duration, check_key, pools_of
from moorage.core.admission.sharing import fair_share
from moorage.core.admission.units import limit_asked, units_by_pool
from moorage.core.clock import DAY, HOUR, Instant
from moorage.core.counting import counted, span
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId
from moorage.core.limits import (
    BOOKED_AHEAD_MAX_DAYS,
    BOOKED_WINDOWS_MAX,
    BOOKER_SHARE,
    BOOKINGS_MAX,
    DETAIL_LENGTH_MAX,
    DURATION_SECONDS_MAX,
    MAX_INT,
    NEEDS_MAX,
    OFFERS_DAYS_MAX,
    OFFERS_MAX,
    WINDOWS_MAX,
)
from moorage.core.service_time import Moment
from moorage.core.texts import check_plain

Made = tuple[Changes, BookingId]
"""The changes of a decision about a booking, and its id."""


class Booker(Struct, frozen=True):
    """The caller of a decision about a booking."""

    owner: str
    roles: frozenset[str] = frozenset()

    @property
    def operates(self) -> bool:
        """May it change the bookings of others, close units, and force?"""
        return bounds.EXEMPT in self.roles


def book(facts: Facts, at: Instant, wanted: Booking, by: Booker) -> Made:
    """Accept a booking; a repeated key and digest returns the existing one, cancelled or not.

    Args:
        facts: with its pools, their calendars, and `Keys.booked` with its owner and key.
        at: now, in service time.
        wanted: the booking; its id and its times of creation are new.
        by: who books.

    Raises KEY_REUSED, INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT, ASKER_REFUSED, LIMIT_EXCEEDED,
    BOOKED.
    """
    known = next(
        (b for b in facts.bookings.values() if (b.owner, b.key) == (wanted.owner, wanted.key)), None
    )
    if known is not None and known.digest != wanted.digest:
        raise Error(
            Code.KEY_REUSED,
            f"Key '{wanted.key}' was used for another booking: a new one needs a new key.",
        )
    if known is not None:
        return Changes(), known.id
    return _accepted(facts, at, wanted, by), wanted.id


def change(facts: Facts, at: Instant, wanted: Booking, by: Booker) -> Made:
    """Replace a booking, which keeps its id, by one that must be accepted as a new one is.

    Leases that have units of it keep them until the end that they have.
    Raises BOOKING_NOT_FOUND, HOLDER_MISMATCH and as `book`.
    """
    before = booking_of(facts, wanted.id, by)
    if before.cancelled_at is not None:
        raise not_found(wanted.id)
    if structs.replace(wanted, updated_at=before.updated_at) == before:
        return Changes(), wanted.id
    changed = structs.replace(wanted, generation=before.generation + 1)
    changes = _accepted(facts, at, changed, by)
    _leave(facts, changes, before, units_by_pool(before.needs).keys() - units_by_pool(wanted.needs))
    until = wanted.until(facts.timeline.skew)
    for ticket in _tickets(facts, wanted.id):
        changes.leases[ticket.id] = structs.replace(ticket, booked_until=until)
    return changes, wanted.id


def cancel(facts: Facts, moment: Moment, wall: Instant, booking: BookingId, by: Booker) -> Made:
    """End a booking; nothing changes if it is cancelled already.

    Its leases keep their units until the end that they have; its tickets end. `facts` contain the
    tickets.
    Raises BOOKING_NOT_FOUND, HOLDER_MISMATCH.
    """
    before = booking_of(facts, booking, by)
    if before.cancelled_at is not None:
        return Changes(), booking
    ended = structs.replace(
        before, cancelled_at=wall, updated_at=wall, generation=before.generation + 1
    )
    draft = Draft(facts, moment, wall)
    draft.changes.bookings[booking] = ended
    _leave(facts, draft.changes, before, units_by_pool(before.needs))
    for ticket in _tickets(facts, booking):
        draft.end(ticket, "revoked", CANCELLED)
    return draft.changes, booking


def _tickets(facts: Facts, booking: BookingId) -> list[Lease]:
    """Return the tickets that wait for units of a booking, as far as they are loaded."""
    return [
        one for one in facts.leases.values() if one.booking == booking and one.state == "waiting"
    ]


def _leave(facts: Facts, changes: Changes, booking: Booking, pools: Iterable[str]) -> None:
    """Let these pools know that a booking needs none of their units any more."""
    for name in pools:
        pool = facts.pools.get(name)
        if pool is not None:
            rest = [one.ends_at for one in _of(facts, name) if one.id != booking.id]
            changes.pools[name] = structs.replace(pool, booked_until=max(rest, default=None))


def booking_of(facts: Facts, booking: BookingId, by: Booker) -> Booking:
    """Return a booking that a caller may change. Raises BOOKING_NOT_FOUND, HOLDER_MISMATCH."""
    found = facts.bookings.get(booking)
    if found is None:
        raise not_found(booking)
    if found.owner != by.owner and not by.operates:
        raise Error(Code.HOLDER_MISMATCH, f"Booking '{booking}' belongs to another owner.")
    return found


def not_found(booking: str) -> Error:
    """Return the error for a booking that does not exist."""
    return Error(
        Code.BOOKING_NOT_FOUND,
        f"There is no booking '{booking}': it never existed here, it was cancelled, or it is over.",
    )


def check_number(needs: Sized) -> None:
    """Raise INVALID for too many needs: check this before their pools are loaded."""
    if not 1 <= len(needs) <= NEEDS_MAX:
        raise Error(Code.INVALID, f"A booking must have 1 to {NEEDS_MAX} needs.")


def check_use(facts: Facts, at: Instant, request: LeaseRequest) -> None:
    """Check that a request may have units of its booking: those are its owner's, or an operator's.

    Raises BOOKING_NOT_FOUND, HOLDER_MISMATCH, UNITS_ABOVE_LIMIT, INVALID.
    """
    assert request.booking is not None
    booking = facts.bookings.get(request.booking)
    wall = at - facts.timeline.skew
    if booking is None or not any(window.end > wall for window in booking.coming):
        raise not_found(request.booking)
    booking_of(facts, request.booking, Booker(request.owner, request.roles))
    if booking.closure:
        raise Error(Code.INVALID, f"Booking '{booking.id}' is a closure: nobody uses its units.")
    if request.borrow is not None:
        raise Error(Code.INVALID, "borrow is for requests without a booking: omit one of them.")
    booked = units_by_pool(booking.needs)
    for name, units in units_by_pool(request.needs).items():
        if units > booked.get(name, 0):
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The request needs {counted(units, 'unit')} of pool '{name}', but booking"
                f" '{booking.id}' has {booked.get(name, 0)}.",
            )


def check_extension(facts: Facts, at: Instant, lease: Lease, until: Instant | None) -> None:
    """Raise BOOKED if a lease would keep units until then that others have booked.

    None: for ever. Only the time after its present end counts: it has its units until then anyway.
    """
    last = FOREVER if until is None else until
    needed = [(when, name) for when, name in _needed(facts, at, lease) if when < last]
    if needed:
        raise Error(
            Code.BOOKED,
            f"Lease '{lease.id}' may not last that long: bookings need its units of pool"
            f" '{min(needed)[1]}' before.",
        )


def needed_at(facts: Facts, at: Instant, lease: Lease) -> Instant | None:
    """Return when bookings need the units of a lease, at the earliest at its end; None: never."""
    return min((when for when, _ in _needed(facts, at, lease)), default=None)


def _needed(facts: Facts, at: Instant, lease: Lease) -> Iterator[tuple[Instant, str]]:
    """Yield when bookings need the units of a lease after its end, by pool."""
    ends = first_end(lease.hold_until, lease.stop_until)
    if lease.state != "granted" or ends is None:
        return
    booking = lease.booking or ""
    for name, units in units_by_pool(lease.needs).items():
        if name in facts.holding:
            profile = Profile(facts, facts.pools[name], at)
            profile.add(-units, ends, booking)
            when = profile.needed(units, ends, booking)
            if when < FOREVER:
                yield Instant(max(ends, when - profile.rest)), name


def offers(
    facts: Facts, at: Instant, needs: Iterable[Need], lasts: int, between: Window, most: int
) -> list[Window]:
    """Return the first windows in which units are free for as long as that, as a booking has them.

    Each is as long as it can be: a booking may begin anywhere in it that leaves `lasts`.

    Args:
        facts: with the pools and their calendars.
        at: now, in service time.
        needs: the units.
        lasts: for how long, at least.
        between: from when until when, by the wall clock.
        most: windows.

    Raises INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT.
    """
    needs, skew = tuple(needs), facts.timeline.skew
    check_duration("duration", lasts)
    if not 1 <= most <= OFFERS_MAX:
        raise Error(Code.INVALID, f"limit must be from 1 to {OFFERS_MAX}.")
    if not 0 < between.end - between.start <= OFFERS_DAYS_MAX * DAY:
        raise Error(
            Code.INVALID, f"between must be two times in order, at most {OFFERS_DAYS_MAX} days."
        )
    _check_needs(facts, needs, closure=False)
    found = [(max(at, between.start + skew), between.end + skew)]
    for name, units in units_by_pool(needs).items():
        pool = facts.pools[name]
        profile = Profile(facts, pool, at, limit=limit_asked(facts, pool))
        rest = profile.rest
        # A lease has to rest after its end, before the next booking.
        free = [
            (start, end - rest if end < between.end + skew else end)
            for start, end in profile.free_windows(units, *_hull(found))
        ]
        found = _common(found, free)
    windows = (Window(Instant(s - skew), Instant(e - skew)) for s, e in found if e - s >= lasts)
    return [window for window, _ in zip(windows, range(most), strict=False)]


def _hull(found: list[tuple[int, int]]) -> tuple[int, int]:
    return (found[0][0], found[-1][1]) if found else (0, 0)


def _common(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return what two lists of ascending intervals have in common, in one pass over both."""
    found, n, m = [], 0, 0
    while n < len(one) and m < len(two):
        start, end = max(one[n][0], two[m][0]), min(one[n][1], two[m][1])
        if start < end:
            found.append((start, end))
        if one[n][1] < two[m][1]:
            n += 1
        else:
            m += 1
    return found


def _accepted(facts: Facts, at: Instant, wanted: Booking, by: Booker) -> Changes:
    """Check a booking against its pools, and return the changes that make it."""
    wall = at - facts.timeline.skew
    _check_words(wanted)
    pools = _check_needs(facts, wanted.needs, closure=wanted.closure)
    _check_windows(wanted, wall)
    if (wanted.closure or wanted.forced) and not by.operates:
        raise Error(Code.ASKER_REFUSED, "Only an operator may close units, or force a booking.")
    changes = Changes(bookings={wanted.id: wanted})
    for pool in pools:
        others = [one for one in _of(facts, pool.name) if one.id != wanted.id]
        live = [one for one in others if one.ends_at > wall]
        _check_number(pool, live, wanted)
        units = wanted.units_in(pool.name, limit_asked(facts, pool))
        if not by.operates:
            _check_booker(facts, pool, wanted, by, wall, live)
        profile = Profile(facts, pool, at, limit=limit_asked(facts, pool))
        window = profile.conflict(wanted, units, bookings_only=wanted.closure)
        if window is not None and not wanted.forced:
            raise _booked(pool, wanted, units, window, wall)
        until = max([wanted.ends_at, *(one.ends_at for one in others)])
        changes.pools[pool.name] = structs.replace(pool, booked_until=until)
    return changes


def _of(facts: Facts, pool: str) -> list[Booking]:
    return of_pool(facts.bookings.values(), pool)


def _check_words(wanted: Booking) -> None:
    check_key(wanted.owner, wanted.key)
    if len(wanted.note) > DETAIL_LENGTH_MAX:
        raise Error(Code.INVALID, f"note must have at most {DETAIL_LENGTH_MAX} characters.")
    check_plain("note", wanted.note)
    check_duration("lead", wanted.lead, 0)
    if wanted.no_show is not None:
        check_duration("no_show", wanted.no_show)


def _check_needs(facts: Facts, needs: tuple[Need, ...], *, closure: bool) -> list[Pool]:
    """Return the pools of valid needs."""
    check_number(needs)
    if len({need.pool for need in needs}) < len(needs):
        raise Error(Code.INVALID, "needs may name each pool only once: add up its units.")
    for need in needs:
        if not (0 if closure else 1) <= need.units <= MAX_INT:
            raise Error(Code.INVALID, f"units must be from 1 to {MAX_INT}.")
        if need.wanted:
            raise Error(Code.INVALID, "A booking is for units, not for labels: omit labels.")
    pools = pools_of(facts, needs)
    if len(pools) > 1:
        fair_share.check_alone(pools)
    units = units_by_pool(needs)
    for pool in pools:
        if pool.spec.cohort is not None:
            raise Error(
                Code.INVALID,
                f"Pool '{pool.name}' is in a cohort, whose pools lend each other units: they cannot"
                " be booked.",
            )
        most = limit_asked(facts, pool)
        if units[pool.name] > most and pool.spec.per_member is None:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The booking needs {counted(units[pool.name], 'unit')} of pool '{pool.name}', but"
                f" the pool has only {most}.",
            )
        quota = pool.spec.quota
        if quota is not None and not closure and units[pool.name] > quota:
            raise Error(
                Code.UNITS_ABOVE_LIMIT,
                f"The booking needs {counted(units[pool.name], 'unit')} of pool '{pool.name}', but"
                f" one owner may have only {quota}.",
            )
    return pools


def _check_windows(wanted: Booking, wall: int) -> None:
    windows = wanted.windows
    if not 1 <= len(windows) <= WINDOWS_MAX:
        raise Error(Code.INVALID, f"A booking must have 1 to {WINDOWS_MAX} windows.")
    for one, following in zip(windows, [*windows[1:], None], strict=True):
        if one.end <= one.start:
            raise Error(Code.INVALID, "A booking must end after its start.")
        if one.end - one.start > DURATION_SECONDS_MAX * 1_000_000:
            raise Error(Code.INVALID, "A window of a booking must not last longer than 366 days.")
        if following is not None and following.start < one.end:
            raise Error(Code.INVALID, "The windows of a booking must not overlap: shorten them.")
    if windows[-1].end <= wall:
        raise Error(Code.INVALID, "A booking must end in the future.")
    if windows[-1].end - wall > BOOKED_AHEAD_MAX_DAYS * DAY:
        raise Error(
            Code.INVALID, f"A booking must end within {BOOKED_AHEAD_MAX_DAYS} days from now."
        )


def _check_number(pool: Pool, others: list[Booking], wanted: Booking) -> None:
    windows = len(wanted.windows) + sum(len(one.windows) for one in others)
    if len(others) >= BOOKINGS_MAX or windows > BOOKED_WINDOWS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"Pool '{pool.name}' may have {BOOKINGS_MAX} bookings that are not over, with"
            f" {BOOKED_WINDOWS_MAX} windows together. Cancel some, or wait until they are over.",
        )


def _check_booker(
    facts: Facts, pool: Pool, wanted: Booking, by: Booker, wall: int, others: list[Booking]
) -> None:
    """Raise ASKER_REFUSED or LIMIT_EXCEEDED unless a pool lets a caller book."""
    spec = pool.spec
    if spec.book_ahead is None or spec.book_hours is None:
        raise Error(
            Code.ASKER_REFUSED,
            f"Only operators may book units of pool '{pool.name}'. An operator can set its"
            " book_ahead and book_hours.",
        )
    bounds.check_may_ask(pool, wanted.owner, by.roles)
    if wanted.ends_at - wall > spec.book_ahead:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"A booking of pool '{pool.name}' must end within {spec.book_ahead / HOUR:g} hours from"
            " now (book_ahead).",
        )
    _check_share(pool, wanted, others)
    own = [wanted, *(one for one in others if one.owner == wanted.owner)]
    limit = limit_asked(facts, pool)
    # Also `lead` is paid for: nobody else has the units in this time.
    spent = sum(
        one.units_in(pool.name, limit) * (end - max(wall, start))
        for one in own
        for start, end in kept_spans(one, wall)
    )
    if spent > spec.book_hours * HOUR:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"'{wanted.owner}' would have booked {spent / HOUR:g} unit-hours of pool '{pool.name}',"
            f" and may book {spec.book_hours} (book_hours).",
        )


def _check_share(pool: Pool, wanted: Booking, others: list[Booking]) -> None:
    """Raise LIMIT_EXCEEDED if a project, or an owner without one, would have too many bookings.

    Short ones cost few unit-hours, so these alone would let one caller have all of a pool.
    """
    who = project_of(wanted.owner) or wanted.owner
    own = [wanted, *(one for one in others if (project_of(one.owner) or one.owner) == who)]
    bookings, windows = BOOKINGS_MAX // BOOKER_SHARE, BOOKED_WINDOWS_MAX // BOOKER_SHARE
    if len(own) > bookings or sum(len(one.windows) for one in own) > windows:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"'{who}' may have {bookings} bookings of pool '{pool.name}' that are not over, with"
            f" {windows} windows together. Cancel some, or wait until they are over.",
        )


def _booked(pool: Pool, wanted: Booking, units: int, window: Window, wall: int) -> Error:
    begins = f"starts in {span(window.start - wall)}" if window.start > wall else "starts now"
    n = wanted.windows.index(window) + 1
    which = f"window {n} of {len(wanted.windows)}, which" if len(wanted.windows) > 1 else "which"
    leases = "" if wanted.closure else " leases or"
    return Error(
        Code.BOOKED,
        f"Pool '{pool.name}' does not have {counted(units, 'unit')} free for the whole booking,"
        f" {which} {begins}:{leases} other bookings have them. A lease without"
        " an end counts as endless; `moorage offers` shows windows that are free.",
    )
