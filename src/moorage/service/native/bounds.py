"""What callers say of pools and leases, as far as the core cannot take it: seconds, long texts.

All other bounds are the core's. Each function raises `Error`: INVALID.
"""

import re

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import is_normal
from moorage.core.limits import DURATION_SECONDS_MAX, IDENTIFIER_LENGTH_MAX

WAIT_SECONDS_MAX = 60.0
"""Longest wait of one request."""

WORD = re.compile(rf"[A-Z0-9_]{{1,{IDENTIFIER_LENGTH_MAX}}}")
"""What resource classes and consumer types look like."""


def check_text(what: str, text: str, most: int, least: int = 0) -> str:
    """Return a text of a length that is within its bounds."""
    if not least <= len(text) <= most:
        raise Error(Code.INVALID, f"{what} must have {least} to {most} characters.")
    return text


def check_wait(seconds: float) -> float:
    """Return how long to wait, in seconds."""
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise Error(Code.INVALID, f"wait is 0 to {WAIT_SECONDS_MAX:g} seconds, not {seconds:g}.")
    return seconds


def microseconds(what: str, seconds: float) -> int:
    """Return a duration given in seconds in microseconds."""
    if not 0 <= seconds <= DURATION_SECONDS_MAX:
        raise Error(
            Code.INVALID, f"{what} must be 0 to {DURATION_SECONDS_MAX} seconds, not {seconds:g}."
        )
    return round(seconds * SECOND)


def microseconds_or_none(what: str, seconds: float | None) -> int | None:
    """Return a duration given in seconds in microseconds; None: there is none."""
    return None if seconds is None else microseconds(what, seconds)


def uuid_of(text: str, what: str) -> str:
    """Return a UUID in lower case. It must have its dashes."""
    if is_normal(text):
        return text
    lower = text.lower()
    if not is_normal(lower):
        raise Error(Code.INVALID, f"{what} must be a UUID with its dashes.")
    return lower
