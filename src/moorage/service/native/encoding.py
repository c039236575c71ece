"""Encodes times and durations for the dataclasses of `wire`."""

from datetime import UTC, datetime, timedelta

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error

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


def seconds_of(duration: int | None) -> float | None:
    """Convert a duration from microseconds to seconds; None stays None."""
    return None if duration is None else duration / SECOND
