"""Checks and converts input that the core does not check: seconds, lengths of texts, UUIDs.

The core checks all other limits. Each function raises `Error`: INVALID.
"""

import re

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import is_normal
from moorage.core.limits import DURATION_SECONDS_MAX, IDENTIFIER_LENGTH_MAX

WAIT_SECONDS_MAX = 60.0
"""The longest wait of one request."""

WORD = re.compile(rf"[A-Z0-9_]{{1,{IDENTIFIER_LENGTH_MAX}}}")
"""The form of resource classes and consumer types."""


def check_text(what: str, text: str, most: int, least: int = 0) -> str:
    """Return a text after checking its length."""
    if not least <= len(text) <= most:
        raise Error(Code.INVALID, f"{what} must have {least} to {most} characters.")
    return text


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


def uuid_of(text: str, what: str) -> str:
    """Return a UUID in lower case; it must have its dashes."""
    if is_normal(text):
        return text
    lower = text.lower()
    if not is_normal(lower):
        raise Error(Code.INVALID, f"{what} must be a UUID with dashes.")
    return lower
