"""The cases of bookings: each writes an audit row, in the transaction of its change."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
from msgspec import structs

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.calendar import bookings
from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Need
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId
from moorage.core.service_time import When
from moorage.service.admission.recurrence import skipping, windows_of
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ids import lease_id_new
from moorage.service.values import microseconds, microseconds_or_none
from moorage.wire.pools.bookings import BookedUnits, BookingChange, BookingWanted, Repeat


class Rule(msgspec.Struct, frozen=True):
    """What the windows of a booking were made of: its form in `Booking.rule`."""

    start: str
    end: str
    repeat: Repeat | None = None


_rule = msgspec.json.Decoder(Rule)


class BookingView(msgspec.Struct, frozen=True):
    """A booking as of a time."""

    booking: Booking
    when: When

    @property
    def repeat(self) -> Repeat | None:
        """How it repeats; None: it does not."""
        return _rule.decode(self.booking.rule).repeat if self.booking.rule else None


@dataclass(slots=True)
class BookingCase(AuditedUseCase[BookingView]):
    """A change of one booking."""

    by: Booker
    actor: Actor
    booking: BookingId

    def keys(self) -> Keys:
        called = frozenset({self.booking})
        return Keys(admission=AdmissionKeys(bookings={self.booking}, called=called))

    def conclude(self, world: World, when: When) -> BookingView:
        return BookingView(world.admission.bookings[self.booking], when)

    def leave(self, action: str, world: World, changes: Any, when: When) -> None:
        """Set the audit row of a decision, unless it changes nothing."""
        self.rows = []
        if changes.bookings:
            before = world.admission.bookings.get(self.booking)
            after = _shown(changes.bookings[self.booking])
            shown = None if before is None else _shown(before)
            row = audit_entry(when.wall, self.actor, action, self.booking, shown, after)
            self.rows = [row]


@dataclass(slots=True)
class BookingCreate(BookingCase):
    """Book units. `owner` has the booking."""

    owner: str
    wanted: BookingWanted
    made: Booking = field(init=False, repr=False)

    def __post_init__(self) -> None:
        wanted = self.wanted
        self.made = Booking(
            id=self.booking,
            owner=self.owner,
            key=wanted.key,
            digest=_digest(wanted),
            needs=needs_of(wanted.needs, closure=wanted.closure),
            windows=windows_of(wanted.start, wanted.end, wanted.repeat),
            closure=wanted.closure,
            lead=microseconds("lead", wanted.lead),
            no_show=microseconds_or_none("no_show", wanted.no_show),
            note=wanted.note,
            rule=_rule_text(wanted.start, wanted.end, wanted.repeat),
            forced=wanted.force,
            generation=1,
            created_at=Instant(0),
            updated_at=Instant(0),
        )

    def keys(self) -> Keys:
        pools = {need.pool for need in self.made.needs}
        asked = {(self.owner, self.made.key)}
        return Keys(admission=AdmissionKeys(calendars=pools, booked=asked))

    def decide(self, world: World, when: When) -> Changes:
        made = structs.replace(self.made, created_at=when.wall, updated_at=when.wall)
        changes, found = bookings.book(world.admission, when.moment.at, made, self.by)
        self.leave("booking.create", world, changes, when)
        self.booking = found
        return Changes(admission=changes)


@dataclass(slots=True)
class BookingAlter(BookingCase):
    """Change a booking."""

    wanted: BookingChange
    pools: frozenset[str] = frozenset()
    """Those that it needs from now on."""

    def keys(self) -> Keys:
        made = AdmissionKeys(bookings={self.booking}, called=frozenset({self.booking}))
        made.calendars |= self.pools
        return Keys(admission=made)

    def decide(self, world: World, when: When) -> Changes:
        facts, wanted = world.admission, self.wanted
        before = bookings.booking_of(facts, self.booking, self.by)
        if wanted.generation not in (None, before.generation):
            raise Error(
                Code.BOOKING_GENERATION,
                f"Booking '{self.booking}' has generation {before.generation}, not"
                f" {wanted.generation}. Read it again.",
            )
        after = structs.replace(
            before,
            needs=before.needs
            if wanted.needs is None
            else needs_of(wanted.needs, closure=before.closure),
            note=before.note if wanted.note is None else wanted.note,
            forced=before.forced or wanted.force,
            updated_at=when.wall,
        )
        if wanted.start is not None or wanted.end is not None or wanted.skip:
            after = _moved(after, wanted)
        changes, _ = bookings.change(facts, when.moment.at, after, self.by)
        self.leave("booking.change", world, changes, when)
        return Changes(admission=changes)


@dataclass(slots=True)
class BookingCancel(BookingCase):
    """Cancel a booking."""

    def decide(self, world: World, when: When) -> Changes:
        changes, _ = bookings.cancel(world.admission, when.moment, when.wall, self.booking, self.by)
        self.leave("booking.cancel", world, changes, when)
        return Changes(admission=changes)


def booking_id_new() -> BookingId:
    """Return the id of a new booking: ids increase with time."""
    return BookingId(lease_id_new())


def needs_of(wanted: list[BookedUnits], *, closure: bool) -> tuple[Need, ...]:
    """Return needs in the core's form. Raises `Error`: INVALID."""
    bookings.check_number(wanted)
    for one in wanted:
        if one.units is None and not closure:
            raise Error(Code.INVALID, "units null means all, which only a closure may have.")
        if one.units is not None and one.units < 1:
            raise Error(Code.INVALID, "units must be 1 or more.")
    return tuple(
        sorted((Need(one.pool, one.units or 0) for one in wanted), key=lambda need: need.pool)
    )


def _moved(booking: Booking, wanted: BookingChange) -> Booking:
    rule = _rule.decode(booking.rule)
    start = wanted.start or _time(rule.start)
    end = wanted.end or _time(rule.end)
    repeat = rule.repeat
    if wanted.skip:
        if repeat is None:
            raise Error(Code.INVALID, "skip is for a series: this booking has one window.")
        repeat = msgspec.convert(
            {**msgspec.to_builtins(repeat), "skip": skipping(repeat, wanted.skip)}, Repeat
        )
    return structs.replace(
        booking, windows=windows_of(start, end, repeat), rule=_rule_text(start, end, repeat)
    )


def _rule_text(start: datetime, end: datetime, repeat: Repeat | None) -> str:
    return msgspec.json.encode(Rule(start.isoformat(), end.isoformat(), repeat)).decode()


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _digest(wanted: BookingWanted) -> str:
    return hashlib.sha256(msgspec.json.encode(wanted, order="deterministic")).hexdigest()


def _shown(booking: Booking) -> dict[str, Any]:
    return {
        "owner": booking.owner,
        "needs": {need.pool: need.units for need in booking.needs},
        "rule": msgspec.json.decode(booking.rule) if booking.rule else None,
        "closure": booking.closure,
        "forced": booking.forced,
        "note": booking.note,
        "cancelled": booking.cancelled_at is not None,
    }
