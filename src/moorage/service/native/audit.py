"""Audit rows in the native API."""

from typing import Any

from msgspec import json

from moorage.core.clock import Instant
from moorage.service.access.audit import AuditRow
from moorage.service.native.changes import pool_spec_of
from moorage.service.native.encoding import time_of
from moorage.wire.audit import AuditEntry

TIMES = ("until", "suspect_since", "waits_until")
"""Members that are times, which rows have as microseconds."""

OF_SPECS = ("pool.put", "pool.delete")
"""Actions whose rows contain a pool's specification."""


def shown(row: AuditRow) -> AuditEntry:
    """Convert a row to its wire form."""
    return AuditEntry(
        at=time_of(row.at),
        id=row.id,
        who=row.who,
        token_id=row.token_id,
        role=row.role,
        action=row.action,
        target=row.target,
        before=_shown(row.action, row.before),
        after=_shown(row.action, row.after),
    )


def _shown(action: str, kept: str | None) -> Any:
    value = None if kept is None else json.decode(kept)
    if not isinstance(value, dict):
        return value
    if action in OF_SPECS:
        return pool_spec_of(value)
    return {
        name: time_of(Instant(one)) if name in TIMES and isinstance(one, int) else one
        for name, one in value.items()
    }
