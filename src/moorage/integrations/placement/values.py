"""Values of the original's columns, as a driver gives them: any of them may be odd."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from moorage.integrations.placement.oddities import Oddities

INTEGER_MAX = 2_147_483_647
NAME_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 255
RATIO_MAX = 3.40282e38
INCOMPLETE = "00000000-0000-0000-0000-000000000000"
"""The project and user of consumers whose own are unknown; Placement's default."""

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""In place of a time that is missing."""

_NORMAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_LIKE = re.compile(
    r"(urn:)?(uuid:)?\{?[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}\}?"
)
"""Python would take more for a UUID, such as a sign and digits of any script."""

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")
_TYPE = re.compile(r"[A-Z0-9_]+")


def uuid_of(value: Any, oddities: Oddities, what: str) -> str | None:
    """Return a UUID in lower case with dashes; None: it is none."""
    text = text_of(value)
    if text is None or _NORMAL.fullmatch(text):
        return text
    if _UUID_LIKE.fullmatch(text.strip()) is None:
        return None
    oddities.note("uuid_respelled", f"{what} {text}")
    return str(UUID(text.strip()))


def text_of(value: Any, length_max: int = TEXT_LENGTH_MAX) -> str | None:
    """Return a text; None: it is none, is too long, or has a character that no store keeps."""
    try:
        if isinstance(value, bytes):
            value = value.decode()
        if not isinstance(value, str) or "\0" in value or len(value) > length_max:
            return None
        value.encode()
    except UnicodeError:
        return None
    return value


def name_of(value: Any) -> str | None:
    """Return the name of a provider; None: it has no valid one."""
    return text_of(value, NAME_LENGTH_MAX) or None


def is_custom(name: str) -> bool:
    """Return whether it is the name of a custom resource class or trait."""
    return len(name) <= TEXT_LENGTH_MAX and _CUSTOM.fullmatch(name) is not None


def type_of(value: Any) -> str | None:
    """Return the name of a consumer type; None: it has no valid one."""
    text = text_of(value)
    return text if text is not None and _TYPE.fullmatch(text) else None


def integer_of(value: Any, least: int) -> int | None:
    """Return an integer in its bounds; None: it is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if least <= value <= INTEGER_MAX else None


def ratio_of(value: Any) -> float | None:
    """Return a ratio as the driver gives it; None: it is none."""
    if not isinstance(value, (int, float)) or not -RATIO_MAX <= value <= RATIO_MAX:
        return None  # also what is not a number at all: it is in no order
    return float(value)


def instant_of(value: Any) -> datetime | None:
    """Return a time in UTC, which is how the original writes all of them; None: there is none."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None  # such as the zero date of MySQL
    if not isinstance(value, datetime):
        return None
    try:
        found = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return None  # in UTC, it is before the year 1 or after 9999
    return found if found >= BEGINNING else None


def times_of(
    created: Any, updated: Any, row: Any, oddities: Oddities, what: str
) -> tuple[datetime, datetime]:
    """Return when a row was created and changed.

    Lists are in the order of creation. Where the original keeps whole seconds, the
    microseconds keep the order of its rows within one second. `row` is the id of the row.
    """
    at, changed = instant_of(created), instant_of(updated)
    if at is None:
        oddities.note("time_missing", what)
        at = changed or BEGINNING
    if at.microsecond == 0 and isinstance(row, int):
        at += timedelta(microseconds=row % 1_000_000)
    return at, max(at, changed or at)
