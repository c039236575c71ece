"""Series of windows by the local time of a zone: daily and weekly, with bounds and exceptions.

Both ends of a window are local times, so a night from 22:00 to 06:00 ends at 06:00 also when the
clock is changed in it. A local time that the clock skips means, as in RFC 5545 (3.3.5), the time
with the offset before the gap; one that it shows twice means the first of both. The windows are
computed once, when a booking is made: a later change of a zone's rules moves none of them.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from moorage.core.admission.booking_model import Window
from moorage.core.errors import Code, Error
from moorage.core.limits import SERIES_DAYS_MAX, WINDOWS_MAX, ZONE_LENGTH_MAX
from moorage.service.values import instant_of
from moorage.wire.pools.bookings import Repeat

WEEKDAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")

_WEEK = 7


def windows_of(start: datetime, end: datetime, repeat: Repeat | None) -> tuple[Window, ...]:
    """Return the windows of a booking, whose first one has these ends, ascending.

    Raises `Error`: INVALID.
    """
    if repeat is None:
        return (Window(instant_of("start", start), instant_of("end", end)),)
    zone = zone_of(repeat.zone)
    _check(repeat)
    begin, finish = _local(start, zone), _local(end, zone)
    spare = {_day("skip", text) for text in repeat.skip}
    found = []
    for shift in _shifts(repeat, begin.date()):
        if begin.date() + shift not in spare:
            found.append(_window(begin, finish, shift, zone))
    if not found:
        raise Error(Code.INVALID, "The series has no window: check its days, its end and skip.")
    return tuple(found)


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its name. Raises `Error`: INVALID."""
    if name == "UTC":  # it needs no database
        return UTC
    if len(name) > ZONE_LENGTH_MAX:  # it is looked for as a file, part by part
        raise Error(Code.INVALID, f"zone must have at most {ZONE_LENGTH_MAX} characters.")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    if not available_timezones():
        raise Error(
            Code.INVALID,
            "This server knows no time zone but UTC, because it has no time zone database: install"
            " the package tzdata, of the system or of Python.",
        )
    raise Error(
        Code.INVALID, f"There is no time zone {name!r}: use a name such as Europe/Berlin, or UTC."
    )


def _check(repeat: Repeat) -> None:
    if (repeat.until is None) == (repeat.count is None):
        raise Error(Code.INVALID, "A series ends with either `until` or `count`: give one of them.")
    if repeat.count is not None and not 1 <= repeat.count <= WINDOWS_MAX:
        raise Error(Code.INVALID, f"count must be from 1 to {WINDOWS_MAX}.")
    if not 1 <= repeat.interval <= WINDOWS_MAX:
        raise Error(Code.INVALID, f"interval must be from 1 to {WINDOWS_MAX}.")
    if len(repeat.skip) > WINDOWS_MAX:
        raise Error(Code.INVALID, f"skip may have at most {WINDOWS_MAX} days.")
    if len(repeat.days) > _WEEK:
        raise Error(Code.INVALID, f"days may have at most {_WEEK} entries.")
    if repeat.days and repeat.every != "week":
        raise Error(Code.INVALID, "days are for a weekly series: omit them, or use every week.")


def _shifts(repeat: Repeat, first: date) -> Iterator[timedelta]:
    """Yield by how many days each window follows the first one, skipped ones included."""
    last = None if repeat.until is None else _day("until", repeat.until)
    wanted = {WEEKDAYS.index(day) for day in repeat.days} or {first.weekday()}
    made = 0
    for number in range(SERIES_DAYS_MAX):
        shift = timedelta(days=number)
        try:
            day = first + shift
        except OverflowError:
            return
        if (last is not None and day > last) or made == repeat.count:
            return
        weeks = (number + first.weekday()) // _WEEK
        daily = repeat.every == "day" and number % repeat.interval == 0
        weekly = repeat.every == "week" and weeks % repeat.interval == 0
        if daily or (weekly and day.weekday() in wanted):
            made += 1
            if made > WINDOWS_MAX:
                raise Error(
                    Code.INVALID, f"A series has at most {WINDOWS_MAX} windows: end it earlier."
                )
            yield shift
    raise Error(Code.INVALID, f"A series must end within {SERIES_DAYS_MAX} days.")


def _local(time: datetime, zone: tzinfo) -> datetime:
    """Return a time as the clocks of a zone show it, without the zone."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    try:
        return aware.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise Error(Code.INVALID, "start and end must be in the years 1 to 9999.") from None


def _window(begin: datetime, finish: datetime, shift: timedelta, zone: tzinfo) -> Window:
    """Return the window that follows the first one, whose local times these are, by some days."""
    try:
        start = (begin + shift).replace(tzinfo=zone).astimezone(UTC)
        end = (finish + shift).replace(tzinfo=zone).astimezone(UTC)
        if end <= start and begin < finish:
            # The clock skips the start, but not the end: it lasts as long as on other days.
            end = start + (finish - begin)
    except OverflowError:
        raise Error(Code.INVALID, "start and end must be in the years 1 to 9999.") from None
    return Window(instant_of("start", start), instant_of("end", end))


def _day(what: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise Error(Code.INVALID, f"{what}: {text!r} is not a day such as 2026-12-31.") from None


def skipping(repeat: Repeat, days: Sequence[str]) -> list[str]:
    """Return the days without a window of a series, with more of them."""
    for text in days:
        _day("skip", text)
    return sorted({*repeat.skip, *days})
