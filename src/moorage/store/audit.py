"""Audit rows: who did what to Moorage itself. They never change; old ones are forgotten."""

from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Write


class AuditRow(NamedTuple):
    """One act. `before` and `after` are JSON, None where there is nothing to tell."""

    at: Instant
    id: str
    who: str
    token_id: str | None
    role: str
    action: str
    target: str
    before: str | None
    after: str | None


def audit_insert(row: AuditRow) -> Plan[None]:
    """Add a row."""
    yield [Write("audit_insert", [row])]


def audit_window(at: Instant, row_id: str, rows_max: int) -> Plan[list[AuditRow]]:
    """Load the rows before (at, id), newest first, at most `rows_max` of them."""
    (rows,) = yield [Query("audit_window", (at, row_id, rows_max))]
    return [AuditRow(*row) for row in rows]


def audit_forget(before: Instant, rows_max: int) -> Plan[int]:
    """Forget the oldest rows of before a time, at most `rows_max` of them; return how many.

    Call again, in another transaction, while it is `rows_max`.
    """
    (rows,) = yield [Query("audit_delete", (before, rows_max))]
    return len(rows)
