"""Generates ids, and finds those that begin with a text."""

import secrets
import time
from uuid import UUID

from moorage.core.errors import Code, Error
from moorage.core.ids import PREFIX_LENGTH_MIN, LeaseId, is_prefix

RANDOM_BITS = 74
AUDIT_ID_BYTES = 6
_MASK_A, _MASK_B = (1 << 12) - 1, (1 << 62) - 1
_VERSION, _VARIANT = 0x7 << 76, 0b10 << 62

AFTER_DIGITS = "g"
"""A character that follows all those of an id."""

ALL_IDS = ("", AFTER_DIGITS)
"""The range of all ids, as from `ids_with`."""


def lease_id_new() -> LeaseId:
    """Return a new UUID that increases with time, so that new rows are stored close together.

    Version 7 of RFC 9562: milliseconds, then random bits.
    """
    chance = secrets.randbits(RANDOM_BITS)
    milliseconds = time.time_ns() // 1_000_000
    high = milliseconds << 80 | _VERSION | (chance >> 62 & _MASK_A) << 64
    return LeaseId(str(UUID(int=high | _VARIANT | chance & _MASK_B)))


def audit_id_new() -> str:
    """Return the id of a new audit row."""
    return secrets.token_hex(AUDIT_ID_BYTES)


def ids_with(prefix: str) -> tuple[str, str]:
    """Return the least text that an id with a prefix can be, and one above all of them.

    Raises INVALID: no id can begin so, or the prefix is too short.
    """
    first = prefix.lower()
    if not is_prefix(first):
        raise Error(
            Code.INVALID,
            f"id_prefix must be the first {PREFIX_LENGTH_MIN} characters of an id, or more.",
        )
    return first, first + AFTER_DIGITS
