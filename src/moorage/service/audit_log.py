"""Audit rows as lines of the log, so that whoever can write to the database cannot take them back.

The logger `moorage.audit` writes them whatever the setting `log_level` says.
"""

import logging
from collections.abc import Iterable
from typing import Any

from msgspec import json

from moorage.store.access.audit import AuditRow

log = logging.getLogger("moorage.audit")


def tell(rows: Iterable[AuditRow]) -> None:
    """Let the log tell of rows that are durable now: one JSON object for each."""
    for row in rows:
        log.info("%s", json.encode(_told(row)).decode())


def _told(row: AuditRow) -> dict[str, Any]:
    """Return a row without its time, which the line has, and without what is null."""
    told: dict[str, Any] = {
        "id": row.id,
        "who": row.who,
        "token_id": row.token_id,
        "role": row.role,
        "action": row.action,
        "target": row.target,
        "before": None if row.before is None else json.decode(row.before),
        "after": None if row.after is None else json.decode(row.after),
    }
    return {name: value for name, value in told.items() if value is not None}
