"""Saves a batch: the rows of each room, the revision, and the change rows."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol

from moorage.core.clock import Instant
from moorage.core.ledger.model import Import
from moorage.core.service_time import Timeline
from moorage.store import changelog, service_clock
from moorage.store.access.audit import AuditRow
from moorage.store.api import Plan, Query, Statement, Write
from moorage.store.import_mark import MarkChanged, mark_from


class RoomChanges(Protocol):
    """The changes of one room in a batch; see `store/<room>/save.py`."""

    needs_revision: ClassVar[bool]
    """Whether `late_writes` and `change_rows` need `stamp` first."""

    @property
    def is_published(self) -> bool:
        """Whether followers are notified: then the batch raises the revision."""
        ...

    def writes(self) -> Sequence[Statement]:
        """Return the statements that need no revision."""
        ...

    def stamp(self, epoch: int, revision: int) -> None:
        """Complete the values that contain the revision."""
        ...

    def late_writes(self) -> Sequence[Statement]:
        """Return the statements that need the revision."""
        ...

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield (kind, key, body) of every change."""
        ...


def batch_save(
    parts: Sequence[RoomChanges],
    audit: Sequence[AuditRow],
    now: Instant,
    timeline: Timeline | None = None,
    *,
    mark: Import | None = None,
    minds_mark: bool = True,
) -> Plan[tuple[int, int] | None]:
    """Write the changes of a batch; return (epoch, revision), None if no follower is notified.

    Args:
        parts: in the order of the rooms' locks.
        audit: rows of the audit log.
        now: the time of the batch.
        timeline: to be saved, if the batch has locked it.
        mark: the import that is under way by what the batch knows.
        minds_mark: whether it changes something that another mark would forbid.

    Raises MarkChanged: an import has begun, ended or got another writer in the meantime.
    """
    first: list[Statement] = [Write("audit_insert", audit)] if audit else []
    if timeline is not None:
        first.append(service_clock.timeline_write(timeline))
    late = []
    published = False
    for part in parts:
        first += part.writes()
        if part.needs_revision:
            late.append(part)
        published = published or part.is_published
    if not published:
        for part in late:
            first += part.late_writes()
        yield first
        return None
    # As late as possible: from here to the commit all other commits wait.
    first.append(Query("clock_raise", (now,)))
    if not late:
        *_, raised, _ = yield [*first, _change_rows(parts, now)]
        if minds_mark:
            _check_mark(raised[0][-1], mark)
        revision, epoch = map(int, raised[0][:2])
        return epoch, revision
    *_, raised = yield first
    if minds_mark:
        _check_mark(raised[0][-1], mark)
    revision, epoch = map(int, raised[0][:2])
    for part in late:
        part.stamp(epoch, revision)
    writes: list[Statement] = []
    for part in late:
        writes += part.late_writes()
    yield [*writes, _change_rows(parts, now)]
    return epoch, revision


def _check_mark(stored: str | None, known: Import | None) -> None:
    if (None if stored is None else mark_from(stored)) != known:
        raise MarkChanged("an import has begun, has ended or has another writer")


def _change_rows(parts: Sequence[RoomChanges], now: Instant) -> Write:
    rows: list[tuple[str, str, str | None]] = []
    for part in parts:
        rows += part.change_rows()
    return changelog.changes_insert(rows, now)
