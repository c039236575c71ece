"""Times, durations and texts of the native API: converts them, and checks those of requests.

The core checks all other limits. Functions that read a request raise `Error`: INVALID.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import is_normal
from moorage.core.limits import DURATION_SECONDS_MAX, IDENTIFIER_LENGTH_MAX, WAIT_SECONDS_MAX
from moorage.core.texts import check_plain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(instant: Instant) -> datetime:
    """Convert an instant exactly."""
    return _EPOCH + timedelta(microseconds=instant)


def instant_of(what: str, time: datetime) -> Instant:
    """Convert a time exactly; one without a zone is UTC. Raises `Error`: INVALID."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    try:
        aware.astimezone(UTC)  # as it is shown later
    except OverflowError:
        raise Error(Code.INVALID, f"{what} must be in the years 1 to 9999 in UTC.") from None
    return Instant((aware - _EPOCH) // timedelta(microseconds=1))


def time_or_none(instant: Instant | None) -> datetime | None:
    """As `time_of`; None stays None."""
    return None if instant is None else time_of(instant)


def times_or_none(instants: Iterable[Instant | None]) -> list[datetime | None]:
    """As `time_or_none`, for several."""
    return [
        None if instant is None else _EPOCH + timedelta(microseconds=instant)
        for instant in instants
    ]


def seconds_of(duration: int | None) -> float | None:
    """Convert a duration from microseconds to seconds; None stays None."""
    return None if duration is None else duration / SECOND


def check_text(what: str, text: str, most: int, least: int = 0) -> str:
    """Return a text after checking its length."""
    if not least <= len(text) <= most:
        raise Error(Code.INVALID, f"{what} must have {least} to {most} characters.")
    return text


def name_of(what: str, text: str) -> str:
    """Return the name of a project or user after checking it."""
    check_plain(what, text)
    return check_text(what, text, IDENTIFIER_LENGTH_MAX, 1)


def check_wait(seconds: float) -> float:
    """Return the wait in seconds after checking it."""
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise Error(
            Code.INVALID, f"wait must be from 0 to {WAIT_SECONDS_MAX:g} s, not {seconds:g} s."
        )
    return seconds


def microseconds(what: str, seconds: float) -> int:
    """Convert a duration from seconds to microseconds, after checking it."""
    if not 0 <= seconds <= DURATION_SECONDS_MAX:
        raise Error(
            Code.INVALID, f"{what} must be from 0 to {DURATION_SECONDS_MAX} s, not {seconds:g} s."
        )
    return round(seconds * SECOND)


def microseconds_or_none(what: str, seconds: float | None) -> int | None:
    """As `microseconds`; None stays None."""
    return None if seconds is None else microseconds(what, seconds)


def end_of(
    what: str, until: datetime | None, lasts: float | None
) -> tuple[Instant | None, int | None]:
    """Return when something ends by itself: a time, or microseconds from now, or neither."""
    if until is not None and lasts is not None:
        raise Error(Code.INVALID, f"{what} ends at `until` or `lasts` for a while, not both.")
    end = None if until is None else instant_of("until", until)
    return end, microseconds_or_none("lasts", lasts)


def uuid_of(text: str, what: str) -> str:
    """Return a UUID in lower case; it must have its dashes."""
    if is_normal(text):
        return text
    lower = text.lower()
    if not is_normal(lower):
        raise Error(Code.INVALID, f"{what} must be a UUID with dashes.")
    return lower
