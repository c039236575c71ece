"""The change log: what each revision changed, as after-images.

A follower starts with `snapshot_read` and continues with `changes_load`;
`changelog_compaction.py` deletes the rows that no follower needs any more.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import (
    NO_TAGS,
    CustomName,
    Described,
    Import,
    Tags,
)
from moorage.store import formats, import_mark
from moorage.store.admission import changes as admission_changes
from moorage.store.admission.save import wipe_writes
from moorage.store.api import Outdated, Plan, Query, Row, Stream, Write
from moorage.store.encoding import key_set
from moorage.store.fleet import changes as fleet_changes
from moorage.store.fleet.save import wipe_writes as fleet_wipe_writes
from moorage.store.ledger import changes as ledger_changes
from moorage.store.ledger import reshapes
from moorage.store.ledger.rows import provider_from_row, tags_from_row

KINDS = (
    *ledger_changes.KINDS,
    *admission_changes.KINDS,
    *fleet_changes.KINDS,
    import_mark.KIND,
    reshapes.KIND,
)
"""The kinds of change rows; the kind determines the type of the body."""

FOLLOWED_KINDS = (
    *ledger_changes.CATALOG_KINDS,
    *admission_changes.FOLLOWED_KINDS,
    *fleet_changes.FOLLOWED_KINDS,
)
"""The kinds that a process follows: the catalog's for the index, the others for the followers."""

ROWS_MAX = 500
"""Change rows that one query reads: a few milliseconds of decoding."""

WHOLE = 1 << 40
"""As n: after the last change of a revision."""


class Batch(NamedTuple):
    """The changes of one revision, and when it was written."""

    revision: int
    ledger: Changes
    at: Instant
    others: list[tuple[str, str, str | None]]
    """(kind, key, body) of changes of the other rooms.

    The `changes.py` of each room decodes them, apart from the ledger's: a damaged row must not stop
    the index.
    """

    def extend(self, rest: "Batch") -> None:
        """Add the rest of the same revision."""
        self.ledger.update(rest.ledger)
        self.others.extend(rest.others)


@dataclass(slots=True)
class Tail:
    """The changes after some place, as of one moment."""

    epoch: int
    revision: int
    """The newest revision; call again if `batches` does not reach it."""
    compacted: int
    """A follower at an older revision than this has missed changes and must reload everything."""
    batches: list[Batch]
    place: tuple[int, int] | None
    """(revision, n) of the last row, if there may be more: the last batch may continue after it."""
    at: Instant | None = None
    """When the revision before these changes was written; None if its rows were deleted."""
    importing: Import | None = None
    """The import that is under way."""


class Snapshot(NamedTuple):
    """The contents of the catalog besides providers, as of a revision."""

    epoch: int
    revision: int
    at: Instant | None
    """When the revision was written; None: unknown."""
    classes: dict[str, CustomName]
    traits: dict[str, CustomName]


def changes_insert(rows: Iterable[tuple[str, str, str | None]], now: Instant) -> Write:
    """Return the statement that stores (kind, key, body) of each change as the new revision."""
    return Write("change_insert", [(n, now, *row) for n, row in enumerate(rows)])


def changes_load(
    after_revision: int,
    n: int = WHOLE,
    *,
    rows_max: int = ROWS_MAX,
    kinds: Collection[str] = tuple(ledger_changes.KINDS),
) -> Plan[Tail]:
    """Load the changes after (revision, n), oldest first, at most `rows_max` rows.

    Only `kinds` are loaded; a batch that changed only other kinds appears without changes. Raises
    Outdated: a newer release has written changes that this one cannot read.
    """
    (rows,) = yield [Query("changes_load", (after_revision, n, _others(tuple(kinds)), rows_max))]
    batches: list[Batch] = []
    epoch, newest, compacted, minimum, mark, began, revision, *_ = rows[0]
    formats.check(minimum, "the database")
    importing = None if mark is None else import_mark.mark_from(mark)
    if revision is None:
        return Tail(epoch, newest, compacted, batches, None, began, importing)
    for *_, revision, _, at, kind, key, body in rows:
        if not batches or batches[-1].revision != revision:
            batches.append(Batch(revision, Changes(), at, []))
        if kind not in KINDS:
            raise unknown(kind)
        if kind in kinds:
            if kind in ledger_changes.KINDS:
                ledger_changes.change_read(batches[-1].ledger, kind, key, body)
            else:
                batches[-1].others.append((kind, key, body))
    place = rows[-1][6:8] if len(rows) == rows_max else None
    return Tail(epoch, newest, compacted, batches, place, began, importing)


@cache
def _others(kinds: tuple[str, ...]) -> str:
    """Return the known kinds besides these: rows of unknown kinds are always loaded."""
    return key_set(set(KINDS).difference(kinds))


def unknown(kind: str) -> Outdated:
    """Return the error for a kind of change row that this release does not know."""
    return Outdated(
        f"a newer release has written changes of the kind {kind!r}, which this release does not "
        "know: upgrade this process"
    )


def clock_load() -> Plan[tuple[int, int]]:
    """Load (epoch, revision)."""
    (((epoch, revision, _),),) = yield [Query("clock_load")]
    return epoch, revision


def change_time_load(revision: int) -> Plan[Instant | None]:
    """Return when a revision was written; None if its rows were deleted or never existed."""
    (rows,) = yield [Query("change_time", (revision,))]
    return rows[0][0] if rows else None


class Continuation(NamedTuple):
    """What follows a revision."""

    epoch: int
    revision: int
    """The newest revision."""
    at: Instant | None
    """When the given revision was written; None: its rows were deleted, or never existed."""
    rows: int
    """The number of change rows since, counted up to a limit."""


def continuation_load(revision: int, rows_max: int) -> Plan[Continuation]:
    """Load what follows a revision; change rows are counted up to `rows_max`."""
    clock, times, counts = yield [
        Query("clock_load"),
        Query("change_time", (revision,)),
        Query("changes_count_few", (revision, rows_max)),
    ]
    epoch, newest, _ = clock[0]
    return Continuation(epoch, newest, times[0][0] if times else None, counts[0][0])


def snapshot_read(take: Callable[[list[Described]], None]) -> Plan[Snapshot]:
    """Pass every provider to `take`, some at a time; return the rest of the catalog.

    A provider may come before the root of its tree. Use `read_aside`: it reads everything.
    """
    tags: dict[ProviderId, Tags] = {}

    def tags_taken(rows: list[Row]) -> None:
        tags.update((row[0], tags_from_row(row)) for row in rows)

    def providers_taken(rows: list[Row]) -> None:
        take([(*provider_from_row(row), tags.pop(row[0], NO_TAGS)) for row in rows])

    clock, classes, traits, _, _ = yield [
        Query("clock_load"),
        Query("resource_classes_snapshot"),
        Query("traits_snapshot"),
        Stream("tags_snapshot", (), tags_taken),
        Stream("providers_snapshot", (), providers_taken),
    ]
    epoch, revision, _ = clock[0]
    return Snapshot(
        epoch,
        revision,
        (yield from change_time_load(revision)),
        {row[0]: CustomName(*row) for row in classes},
        {row[0]: CustomName(*row) for row in traits},
    )


def wipe() -> Plan[int]:
    """Empty ledger, admission and fleet (tests only); access tokens stay.

    Returns the new revision; followers then reload everything.
    """
    tables = [
        *wipe_writes(),
        *fleet_wipe_writes(),
        Write("holders_wipe", [()]),
        Write("consumers_wipe", [()]),
        Write("tags_wipe", [()]),
        Write("providers_wipe", [()]),
        Write("resource_classes_wipe", [()]),
        Write("traits_wipe", [()]),
        Write("changes_wipe", [()]),
    ]
    locks = [Query("ledger_lock"), Query("admission_lock"), import_mark.LOAD]
    *_, ((mark,),) = yield locks
    tables.append(Write("import_write", [(None, mark)]))
    revision = int((yield [*tables, Query("clock_raise", (0,))])[-1][0][0])
    yield [Write("clock_compact", [(revision,)])]
    return revision


class ChangeRow(NamedTuple):
    """One change as it was written; `body` is JSON, None if the object was deleted."""

    revision: int
    n: int
    kind: str
    key: str
    body: str | None
    at: Instant
    """When its revision was written."""


class ChangesWindow(NamedTuple):
    """Change rows in order, and the clock as of the same moment."""

    epoch: int
    revision: int
    """The newest revision."""
    compacted: int
    """Rows of this revision and older ones were deleted."""
    rows: list[ChangeRow]


def changes_window(revision: int, n: int, rows_max: int) -> Plan[ChangesWindow]:
    """Load the change rows after (revision, n), oldest first, at most `rows_max` of them.

    Raises Outdated: one of them is of a kind that this release does not know.
    """
    (rows,) = yield [Query("changes_window", (revision, n, rows_max))]
    epoch, newest, compacted = rows[0][:3]
    changes = [ChangeRow(*row[3:]) for row in rows if row[3] is not None]
    for change in changes:
        if change.kind not in KINDS:
            raise unknown(change.kind)
    return ChangesWindow(epoch, newest, compacted, changes)
