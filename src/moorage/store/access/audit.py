"""Audit rows: who did what to Moorage itself. They never change; old ones are deleted."""

from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Write

END = Instant((1 << 63) - 1)
"""Later than every row."""


class AuditRow(NamedTuple):
    """One action. `before` and `after` are JSON, or None if there is no such state."""

    at: Instant
    id: str
    """Empty in a decision, which is pure; set before the row is written."""
    who: str
    token_id: str | None
    role: str
    action: str
    target: str
    before: str | None
    after: str | None


def audit_insert(row: AuditRow) -> Plan[None]:
    """Add a row, which must have an id."""
    if not row.id:
        raise ValueError(f"the audit row of {row.action} has no id")
    yield [Write("audit_insert", [row])]


def audit_window(
    at: Instant, row_id: str, rows_max: int, target: str | None = None
) -> Plan[list[AuditRow]]:
    """Load the rows before (at, id), newest first, at most `rows_max` of them.

    `target`: only what was done to it.
    """
    if target is None:
        (rows,) = yield [Query("audit_window", (at, row_id, rows_max))]
    else:
        (rows,) = yield [Query("audit_window_of_target", (at, row_id, rows_max, target))]
    return [AuditRow(*row) for row in rows]


def audit_forget(now: Instant, kept: int, rows_max: int) -> Plan[int]:
    """Delete rows that are older than `kept` microseconds, oldest first; return how many.

    The age is measured from now or from the newest row, whichever is earlier, so that a clock that
    jumps ahead deletes nothing. Deletes at most `rows_max` rows: while the result is `rows_max`,
    call it again in another transaction.
    """
    before = yield from audit_beginning(now, kept)
    if before is None:
        return 0
    (rows,) = yield [Query("audit_delete", (before, rows_max))]
    return len(rows)


def audit_beginning(now: Instant, kept: int) -> Plan[Instant | None]:
    """Return the time before which rows are forgotten, see `audit_forget`; None: there are none."""
    (newest,) = yield [Query("audit_window", (END, "", 1))]
    return Instant(min(now, newest[0][0]) - kept) if newest else None
