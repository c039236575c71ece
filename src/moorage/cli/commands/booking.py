"""`moorage booking` and `moorage offers`: keeps units for a time, and says when some are free."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, get_args
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import NONE, DurationType, NoneOr, duration_text
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import (
    USAGE,
    Failure,
    say,
    say_or_json,
    show_file,
    show_json,
    show_table,
)
from moorage.cli.support.tables import NOTHING, Cell, Column, Row, show_rows
from moorage.cli.support.views.cells import clock_cell, id_cells, state_cell
from moorage.cli.support.views.lease_text import time_text
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.bookings import Bookings
from moorage.core.counting import counted
from moorage.wire.durations import seconds_of
from moorage.wire.pools.bookings import (
    LEAD_SECONDS,
    NO_SHOW_SECONDS,
    BookedUnits,
    Booking,
    BookingChange,
    BookingWanted,
    Every,
    Repeat,
    Weekday,
)

COLUMNS = (
    Column("id"),
    Column("owner", dropped=2, least=10),
    Column("needs", least=12),
    Column("next"),
    Column("until", dropped=1),
    Column("windows", dropped=3, right=True),
    Column("state"),
    Column("note", dropped=5, least=12, last=True),
)

_ID = click.argument("booking", metavar="ID")
_NEEDS = click.argument("needs", metavar="POOL[=UNITS]...", nargs=-1, required=True)
_ZONE = click.option(
    "--zone", default="UTC", help="Time zone of times without one, and of a series; default UTC."
)
_FOR = click.option("--for", "lasts", type=DurationType(), help="How long it lasts.")


class _Time(click.ParamType[datetime | float]):
    """An option that is a time, or a duration from now."""

    name = "time or duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | float:
        """Return a time as it was written, perhaps without a zone, or seconds."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return] # a value that was converted before
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass
        try:
            return seconds_of(value)
        except ValueError as error:
            self.fail(f"{error}, nor a time such as 2026-12-31T14:00", param, ctx)


@click.group("booking")
def group() -> None:
    """Book units of pools for a time; list and cancel bookings."""


@group.command(
    epilog=example(
        "moorage booking create clusters/aws=3 --start 2026-12-01T09:00 --for 4h",
        "moorage booking create gpus --start 2026-12-01T22:00 --for 8h --every week --count 9",
        "moorage booking create gpus --closure --start 2026-12-05T06:00 --for 2h --note cooling",
    )
)
@administering
@_NEEDS
@click.option("--start", required=True, type=_Time(), help="When it starts: a time, or from now.")
@click.option("--end", type=_Time(), help="When it ends; or use --for.")
@_FOR
@_ZONE
@click.option("--every", type=click.Choice(get_args(Every)), help="Repeat it every day or week.")
@click.option("--interval", type=WholeNumber(1), default=1, help="Only every n-th day or week.")
@click.option("--days", help="Days of a weekly series, for example mo,we,fr.")
@click.option("--until", help="Last day of a series, for example 2027-06-30.")
@click.option("--count", type=WholeNumber(1), help="Windows of a series, instead of --until.")
@click.option("--skip", multiple=True, help="Day without a window; may be repeated.")
@click.option(
    "--lead",
    type=DurationType(),
    default=LEAD_SECONDS,
    help="How long before each start the units are kept already.",
)
@click.option(
    "--no-show",
    type=NoneOr(DurationType()),
    default=NO_SHOW_SECONDS,
    help="How long after a start they are kept while nobody asks for any; default 15m.",
)
@click.option("--note", default="", help="What it is for, shown with it.")
@click.option("--owner", help="Book for this owner (operators).")
@click.option("--closure", is_flag=True, help="Close the units: nobody has them (operators).")
@click.option("--force", is_flag=True, help="Book although units are not free (operators).")
@click.option("--key", help="Idempotency key; by default a new one.")
@json_option
def create(needs: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Book units of pools, once or in a series; exit code 4 if they are not free.

    POOL is one unit, POOL=UNITS several; with --closure POOL is all that the pool has. A lease uses
    the booking with `moorage run --booking ID`.
    """
    zone = _zone(given["zone"])
    start = _at(given["start"], zone)
    end = _end(start, given["end"], given["lasts"], zone)
    wanted = BookingWanted(
        needs=[_units(text, closure=given["closure"]) for text in needs],
        key=given["key"] or str(uuid4()),
        start=start,
        end=end,
        repeat=_repeat(given),
        lead=given["lead"],
        no_show=None if given["no_show"] == NONE else given["no_show"],
        note=given["note"],
        owner=given["owner"],
        closure=given["closure"],
        force=given["force"],
    )
    with at_server(Bookings) as bookings:
        made = bookings.book(wanted)
    say_or_json(as_json, made, f"booked {made.id}: {_summary(made, zone)}")


@group.command("list", epilog=example("moorage booking list", "moorage booking list --mine --ics"))
@administering
@click.option("--pool", shell_complete=completion.pools, help="Only those of this pool.")
@click.option("--owner", help="Only those of this owner.")
@click.option("--mine", is_flag=True, help="Only one's own.")
@click.option("--over", is_flag=True, help="Also those that are over or cancelled.")
@click.option("--ics", is_flag=True, help="Print a calendar file (RFC 5545), an event per window.")
@wide_option
@json_option
def list_(
    pool: str | None,
    owner: str | None,
    mine: bool,
    over: bool,
    ics: bool,
    wide: bool,
    as_json: bool,
) -> None:
    """Print bookings, the first made first."""
    if ics and (as_json or wide):
        raise Failure(USAGE, "--ics prints a calendar file: omit --json and --wide")
    with at_server(Bookings) as bookings:
        found = list(bookings.all(pool, owner, mine=mine, over=over))
    if ics:
        from moorage.wire.pools.icalendar import calendar_of

        show_file(calendar_of(found))
    elif as_json:
        show_json(found)
    else:
        cells = id_cells(one.id for one in found)
        show_rows(COLUMNS, [_row(one, cells[one.id]) for one in found], wide=wide)


@group.command(epilog=example("moorage booking show 01a22148-89d2-7b6e-a327-7cf77a69bc9d"))
@administering
@_ID
@json_option
def show(booking: str, as_json: bool) -> None:
    """Print the booking ID with its windows."""
    with at_server(Bookings) as bookings:
        found = bookings.booking(ids.booking_id(bookings, booking))
    if as_json:
        show_json(found)
        return
    shown = {
        "id": found.id,
        "owner": found.owner,
        "needs": _needs(found),
        "state": found.state,
        "lead": duration_text(found.lead),
        "no_show": duration_text(found.no_show),
        "note": found.note,
        "zone": found.repeat.zone if found.repeat is not None else NOTHING,
    }
    rows = [[name, plain_text(value)] for name, value in shown.items()]
    zone = _zone_of(found)
    rows += [
        [f"window {n}", f"{_there(one.start, zone)} to {_there(one.end, zone)} ({one.state})"]
        for n, one in enumerate(found.windows, 1)
    ]
    show_table(["property", "value"], rows)


@group.command(
    epilog=example("moorage booking change 01a22148-89d2-7b6e-a327-7cf77a69bc9d --skip 2026-12-24")
)
@administering
@_ID
@click.option("--start", type=_Time(), help="New start of its first window.")
@click.option("--end", type=_Time(), help="New end of its first window.")
@_ZONE
@click.option("--skip", multiple=True, help="Further day without a window; may be repeated.")
@click.option("--note", help="New note.")
@click.option("--force", is_flag=True, help="Change it although units are not free (operators).")
@json_option
def change(
    booking: str,
    start: datetime | float | None,
    end: datetime | float | None,
    zone: str,
    skip: tuple[str, ...],
    note: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Change the booking ID; exit code 4 if its units are not free then."""
    where = _zone(zone)
    wanted = BookingChange(
        start=None if start is None else _at(start, where),
        end=None if end is None else _at(end, where),
        skip=[*skip],
        note=note,
        force=force,
    )
    with at_server(Bookings) as bookings:
        found = bookings.change(ids.booking_id(bookings, booking), wanted)
    say_or_json(as_json, found, f"changed {found.id}: {_summary(found, where)}")


@group.command(epilog=example("moorage booking delete 01a22148-89d2-7b6e-a327-7cf77a69bc9d"))
@administering
@_ID
@irreversible("booking delete")
@json_option
def delete(booking: str, sure: Ask, as_json: bool) -> None:
    """Cancel the booking ID; leases that use it go on until they end."""
    with at_server(Bookings) as bookings:
        whole = ids.booking_id(bookings, booking, whole=True)
        sure(whole)
        found = bookings.cancel(whole)
    say_or_json(as_json, found, f"cancelled {found.id}")


@click.command(
    epilog=example("moorage offers clusters/aws=3 --for 4h", "moorage offers gpus=2 disks --for 1h")
)
@administering
@_NEEDS
@click.option("--for", "lasts", type=DurationType(), default=3600.0, help="How long; default 1h.")
@click.option("--after", type=_Time(), help="Not before this time; default: now.")
@click.option("--before", type=_Time(), help="Not after this time; default: in seven days.")
@_ZONE
@click.option("--limit", type=WholeNumber(1, 50), default=10, help="Windows at most; default 10.")
@json_option
def offers(
    needs: tuple[str, ...],
    lasts: float,
    after: datetime | float | None,
    before: datetime | float | None,
    zone: str,
    limit: int,
    as_json: bool,
) -> None:
    """Print the first windows in which units of pools are free, all of them at once."""
    where = _zone(zone)
    between = None
    if after is not None or before is not None:
        start = server_now() if after is None else _at(after, where)
        end = start + timedelta(days=7) if before is None else _at(before, where)
        between = f"{start.isoformat()}/{end.isoformat()}"
    with at_server(Bookings) as bookings:
        found = bookings.offers(needs, lasts, between, limit)
    if as_json:
        show_json(found)
    elif not found:
        say(f"no window of {duration_text(lasts)} is free then")
    else:
        show_table(
            ["from", "until", "lasts"],
            [
                [
                    _there(one.start, where),
                    _there(one.end, where),
                    duration_text(round((one.end - one.start).total_seconds())),
                ]
                for one in found
            ],
        )


def _zone(name: str) -> tzinfo:
    """Return a time zone. Raises Failure."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Failure(
            USAGE,
            f"this machine knows no time zone {name!r}: use a name such as Europe/Berlin; without a"
            " time zone database (the package tzdata) only UTC is known",
        ) from None


def _at(given: datetime | float, zone: tzinfo) -> datetime:
    """Return a time of a zone, or a duration from now, as a time with a zone."""
    if isinstance(given, datetime):
        return given if given.tzinfo is not None else given.replace(tzinfo=zone)
    return server_now() + timedelta(seconds=given)


def _end(
    start: datetime, end: datetime | float | None, lasts: float | None, zone: tzinfo
) -> datetime:
    if (end is None) == (lasts is None):
        raise Failure(USAGE, "say when it ends: set either --end or --for")
    if lasts is not None:
        return start.astimezone(UTC) + timedelta(seconds=lasts)
    assert end is not None
    return _at(end, zone)


def _repeat(given: dict[str, Any]) -> Repeat | None:
    if given["every"] is None:
        if given["until"] or given["count"] or given["days"] or given["skip"]:
            raise Failure(USAGE, "a series needs --every day or --every week")
        return None
    days = [day.strip() for day in (given["days"] or "").split(",") if day.strip()]
    for day in days:
        if day not in get_args(Weekday):
            raise Failure(USAGE, f"--days: {day!r} is none of {', '.join(get_args(Weekday))}")
    return Repeat(
        every=given["every"],
        interval=given["interval"],
        days=days,  # type: ignore[arg-type] # just checked
        zone=given["zone"],
        until=given["until"],
        count=given["count"],
        skip=[*given["skip"]],
    )


def _units(text: str, *, closure: bool) -> BookedUnits:
    pool, equals, units = text.partition("=")
    if not equals:
        return BookedUnits(pool=pool, units=None if closure else 1)
    if not units.isdigit():
        raise Failure(USAGE, f"{text!r} is not POOL or POOL=UNITS")
    return BookedUnits(pool=pool, units=int(units))


def _needs(booking: Booking) -> str:
    return ", ".join(
        f"{'all' if one.units is None else one.units} of {one.pool}" for one in booking.needs
    )


def _summary(booking: Booking, zone: tzinfo) -> str:
    windows = counted(len(booking.windows), "window")
    return f"{_needs(booking)}, {windows} from {_there(booking.start, zone)}"


def _there(at: datetime, zone: tzinfo) -> str:
    """Return a time by the clock of a zone: who has asked in a zone is answered in it."""
    return time_text(at.astimezone(zone))


def _zone_of(booking: Booking) -> tzinfo:
    """Return the zone of a series; UTC if there is none, or this machine does not know it."""
    try:
        return UTC if booking.repeat is None else _zone(booking.repeat.zone)
    except Failure:
        return UTC


def _row(booking: Booking, shown: Cell) -> Row:
    following = booking.next
    closed = "closure " if booking.closure else ""
    return [
        shown,
        booking.owner,
        _needs(booking),
        NOTHING if following is None else clock_cell(following.start),
        NOTHING if following is None else clock_cell(following.end),
        str(len(booking.windows)),
        state_cell(closed + (booking.state if following is None else following.state)),
        booking.note or NOTHING,
    ]
