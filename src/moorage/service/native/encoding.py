"""How values of the service are told in the dataclasses of `wire`."""

from datetime import UTC, datetime, timedelta

from moorage.core.clock import SECOND, Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(instant: Instant) -> datetime:
    """Return an instant, exactly."""
    return _EPOCH + timedelta(microseconds=instant)


def time_or_none(instant: Instant | None) -> datetime | None:
    """Return an instant, exactly; None: never."""
    return None if instant is None else time_of(instant)


def seconds_of(duration: int | None) -> float | None:
    """Return a duration of the core, microseconds, in seconds; None: there is none."""
    return None if duration is None else duration / SECOND
