"""Generates ids."""

import secrets
import time
from uuid import UUID

from moorage.core.ids import LeaseId

RANDOM_BITS = 74
AUDIT_ID_BYTES = 6
_MASK_A, _MASK_B = (1 << 12) - 1, (1 << 62) - 1
_VERSION, _VARIANT = 0x7 << 76, 0b10 << 62


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
