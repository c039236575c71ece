"""How values of the service are told in the dataclasses of `wire`."""

from datetime import UTC, datetime, timedelta

from moorage.core.clock import Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(instant: Instant) -> datetime:
    """Return an instant, exactly."""
    return _EPOCH + timedelta(microseconds=instant)
