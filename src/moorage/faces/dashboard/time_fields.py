"""Fields of a page's address that are durations or times, as people write them."""

from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from moorage.core.limits import DURATION_SECONDS_MAX
from moorage.faces.dashboard.routing import PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.durations import seconds_of


def seconds_asked(request: PageRequest, name: str) -> float | None:
    """Return the duration in a field, in seconds; None: it is empty. Raises RefusedError: 400."""
    text = request.query.get(name, "").strip()
    if not text:
        return None
    try:
        return _bounded(seconds_of(text))
    except ValueError:
        raise _unreadable(name, text, "a duration such as 90s, 20m or 1h30m") from None


def time_asked(request: PageRequest, name: str) -> str | None:
    """Return the time in a field, in the format of the native API; None: it is empty.

    A duration is that long ago; a time without a zone is UTC. Raises RefusedError: 400.
    """
    text = request.query.get(name, "").strip()
    if not text:
        return None
    try:
        ago = _bounded(seconds_of(text))
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            wanted = "a time such as 2026-01-31 or 2026-01-31T04:31, or a duration such as 1h"
            raise _unreadable(name, text, wanted) from None
    else:
        at = request.now - timedelta(seconds=ago)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat()


def _bounded(seconds: float) -> float:
    if seconds > DURATION_SECONDS_MAX:
        raise ValueError
    return seconds


def _unreadable(name: str, text: str, wanted: str) -> RefusedError:
    return RefusedError(
        HTTPStatus.BAD_REQUEST, "invalid", f"{name}: expected {wanted}, got '{text}'."
    )
