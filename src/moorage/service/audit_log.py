"""Writes audit rows to the log, too: there, write access to the database cannot remove them.

The logger `moorage.audit` writes them regardless of the setting `log_level`.
"""

import logging
from collections.abc import Iterable
from typing import Any

from msgspec import json

from moorage.store.access.audit import AuditRow

log = logging.getLogger("moorage.audit")


def write(rows: Iterable[AuditRow]) -> None:
    """Log committed rows, each as one JSON object."""
    for row in rows:
        log.info("%s", json.encode(_members(row)).decode())


def _members(row: AuditRow) -> dict[str, Any]:
    """Return a row's members without null ones, and without the time, which the log line has."""
    members: dict[str, Any] = {
        "id": row.id,
        "who": row.who,
        "token_id": row.token_id,
        "role": row.role,
        "action": row.action,
        "target": row.target,
        "before": None if row.before is None else json.decode(row.before),
        "after": None if row.after is None else json.decode(row.after),
    }
    return {name: value for name, value in members.items() if value is not None}
