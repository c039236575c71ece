"""The audit trail: one row per administrative action, kept for `audit_days`.

If an action changes rows, its audit row is written in the same transaction. If data leaves the
database (a backup), it is written before. Committed rows are also written to the log, see
`audit_log`.
"""

from typing import Any

from msgspec import Struct, json

from moorage.core.clock import SECOND, Clock, Instant
from moorage.core.limits import AUDIT_SCANNED_MAX
from moorage.service import audit_log, errors
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.feed.change_rows import pool_spec_of
from moorage.service.ids import audit_id_new
from moorage.service.pages import END, PageMarker, page_of, place_parse, rows_to_read
from moorage.service.values import instant_of, time_of
from moorage.store.access import audit as audit_store
from moorage.store.access.audit import AuditRow
from moorage.store.api import Engine
from moorage.wire.audit import AuditAsked, AuditEntry

__all__ = ["Audit", "AuditFilter", "AuditRow", "audit_row"]


def audit_row(
    at: Instant, actor: Actor, action: str, target: str, before: Any = None, after: Any = None
) -> AuditRow:
    """Return the row for one action, with a new id; for the arguments see `audit_entry`."""
    row = audit_entry(at, actor, action, target, before, after)
    return row._replace(id=audit_id_new())


class AuditFilter(Struct, frozen=True):
    """The rows that all the given values fit, see `wire.audit.AuditAsked`."""

    target: str | None = None
    who: str | None = None
    action: str | None = None
    since: Instant | None = None
    until: Instant | None = None

    @property
    def scans(self) -> bool:
        """Whether rows must be looked at that it does not admit."""
        return self.who is not None or self.action is not None

    @classmethod
    def of(cls, asked: AuditAsked) -> "AuditFilter":
        """Return the filter of a request. Raises `Error`: INVALID."""
        return cls(
            asked.target,
            asked.who,
            asked.action,
            None if asked.since is None else instant_of("since", asked.since),
            None if asked.until is None else instant_of("until", asked.until),
        )

    def admits(self, row: AuditRow) -> bool:
        """Is this one of the rows, by its actor and action?"""
        if self.who is not None and row.who != self.who:
            return False
        return self.action is None or self.action in (row.action, row.action.partition(".")[0])


ALL = AuditFilter()

SCANNED_AT_A_TIME = 500
"""Rows that one read of a filtered list looks at."""


class Audit:
    """The audit rows of one service."""

    def __init__(self, engine: Engine, transactor: Transactor, clock: Clock) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock

    async def record(self, actor: Actor, action: str, target: str, after: Any = None) -> None:
        """Write a row in its own transaction, see `audit_row`. Raises OVERLOADED, UNAVAILABLE."""
        row = audit_row(self._clock.now(), actor, action, target, after=after)
        await self._transactor.submit(RunPlan(lambda: audit_store.audit_insert(row)))
        audit_log.write([row])

    async def page(
        self, cursor: str | None, limit: int, wanted: AuditFilter = ALL
    ) -> tuple[list[AuditRow], str | None]:
        """Return rows, newest first, and the cursor of the next page; None on the last page.

        A page that is filtered by actor or action ends after `AUDIT_SCANNED_MAX` rows, even if it
        is short or empty.
        Raises `Error`: INVALID for a wrong cursor or limit, UNAVAILABLE.
        """
        rows_max = rows_to_read(limit)
        place = min(place_parse(cursor, END), END if wanted.until is None else after(wanted.until))
        size = SCANNED_AT_A_TIME if wanted.scans else rows_max
        found: list[AuditRow] = []
        scanned, ended = 0, False
        while len(found) < rows_max and not ended and scanned < AUDIT_SCANNED_MAX:
            window = audit_store.audit_window(place.at, place.id, size, wanted.target)
            with errors.translated():
                rows = await self._engine.read_aside(window)
            in_time = [row for row in rows if wanted.since is None or row.at >= wanted.since]
            found += filter(wanted.admits, in_time)
            scanned += len(rows)
            ended = len(in_time) < size
            place = place if ended else _place(rows[-1])
        page, following = page_of(found, limit, _place)
        return page, str(place) if following is None and not ended else following


def after(at: Instant) -> PageMarker:
    """Return the place after all rows of a time, from which on older ones follow."""
    return PageMarker(Instant(at + 1), "")


def _place(row: AuditRow) -> PageMarker:
    return PageMarker(row.at, row.id)


TIMES = ("until", "suspect_since", "waits_until")
"""Members that are times, which rows have as microseconds."""


OF_SPECS = ("pool.put", "pool.delete")
"""Actions whose rows contain a pool's specification."""

OF_TEMPLATES = ("pool_template.put", "pool_template.delete")
"""Actions whose rows contain such a specification and the other settings of a template."""


def entry_shown(row: AuditRow, name: str | None = None) -> AuditEntry:
    """Convert a row to its wire form; `name`: of its target now, if that is there."""
    before = _state_shown(row.action, row.before)
    if name is None and row.action == "provider.delete" and isinstance(before, dict):
        name = before.get("name")
    return AuditEntry(
        at=time_of(row.at),
        id=row.id,
        who=row.who,
        token_id=row.token_id,
        role=row.role,
        action=row.action,
        target=row.target,
        before=before,
        after=_state_shown(row.action, row.after),
        name=name,
    )


def _state_shown(action: str, kept: str | None) -> Any:
    value = None if kept is None else json.decode(kept)
    if not isinstance(value, dict):
        return value
    if action in OF_SPECS:
        return pool_spec_of(value)
    if action in OF_TEMPLATES:
        sizes = {"idle": value["idle"] / SECOND, "pools_max": value["pools_max"]}
        return pool_spec_of(value) | sizes
    return {
        name: time_of(Instant(one)) if name in TIMES and isinstance(one, int) else one
        for name, one in value.items()
    }
