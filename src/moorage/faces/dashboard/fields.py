"""Fields of addresses and forms: numbers, durations and times, as people write them."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from moorage.core.limits import DURATION_SECONDS_MAX
from moorage.faces.dashboard.routing import PageRequest
from moorage.faces.native_api import RefusedError
from moorage.wire.durations import seconds_of, time_or_seconds

WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def unreadable(message: str) -> RefusedError:
    """Return the refusal of a field that cannot be read: 400."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "invalid", message)


def whole(what: str, text: str) -> int:
    """Return the whole number in a field. Raises RefusedError: 400."""
    if WHOLE.fullmatch(text.strip()) is None:
        raise unreadable(f"{what} must be a whole number.")
    return int(text)


def seconds_in(fields: Mapping[str, str], name: str) -> float | None:
    """Return the duration in a field, in seconds; None: it is empty. Raises RefusedError: 400."""
    text = fields.get(name, "").strip()
    try:
        return _bounded(name, seconds_of(text)) if text else None
    except ValueError as error:
        raise unreadable(f"{name}: {error}.") from None


def time_asked(request: PageRequest, name: str) -> str | None:
    """Return the time in a field of the address, for the native API; None: it is empty.

    A duration is that long ago, `23:00` is the last 23:00; times without a zone are UTC. Raises
    RefusedError: 400.
    """
    found = _time_or_seconds(request.query, name, request.now, ahead=False)
    if isinstance(found, float):
        found = request.now - timedelta(seconds=found)
    return None if found is None else found.isoformat()


def ending(request: PageRequest, name: str) -> Mapping[str, object]:
    """Return when something ends by itself, as members of a request: `lasts`, `until`, or none.

    The field of the form has a duration from now, a time (of no zone: UTC; `4:30` is the next
    4:30), or nothing. Raises RefusedError: 400.
    """
    found = _time_or_seconds(request.form, name, request.now, ahead=True)
    if found is None:
        return {}
    return {"lasts": found} if isinstance(found, float) else {"until": found.isoformat()}


def _time_or_seconds(
    fields: Mapping[str, str], name: str, now: datetime, *, ahead: bool
) -> datetime | float | None:
    text = fields.get(name, "").strip()
    try:
        found = time_or_seconds(text, now, ahead=ahead) if text else None
    except ValueError as error:
        raise unreadable(f"{name}: {error}.") from None
    return _bounded(name, found) if isinstance(found, float) else found


def _bounded(name: str, seconds: float) -> float:
    if seconds > DURATION_SECONDS_MAX:
        raise unreadable(f"{name} must be at most {DURATION_SECONDS_MAX} s.")
    return seconds
