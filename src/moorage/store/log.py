"""The change rows: what each revision changed, as after-images that others can follow.

A follower starts with `snapshot_read` and goes on with `changes_load`; `compaction.py` forgets the
rows that no follower needs any more.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from msgspec import json

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import (
    NO_TAGS,
    Consumer,
    Described,
    Inventory,
    Provider,
    Tags,
    Vocable,
)
from moorage.store import admission_rows, formats
from moorage.store.admission_save import wipe_writes
from moorage.store.api import Outdated, Plan, Query, Row, Stream, Write
from moorage.store.rows import (
    encode,
    encode_consumer,
    key_set,
    provider_from_row,
    tags_from_row,
)

# The ledger's kinds of change rows, in the order in which a batch writes them: member of Changes,
# value. Admission's come after them.
_KINDS: dict[str, tuple[str, Any]] = {
    "renamed_class": ("renamed_classes", str),
    "resource_class": ("classes", Vocable),
    "trait": ("traits", Vocable),
    "provider": ("providers", Provider),
    "inventory": ("inventories", Inventory),
    "tags": ("tags", Tags),
    "consumer": ("consumers", Consumer),
}
KINDS = (*_KINDS, *admission_rows.KINDS)
"""The kinds of change rows; who knows a kind knows the type of its body."""

FLEET_KINDS = tuple(kind for kind in _KINDS if kind != "consumer")
"""The kinds that say something of the fleet; the others are not read by who follows that."""

ROWS_MAX = 500
"""Change rows that are read in one go: a few milliseconds of decoding."""

WHOLE = 1 << 40
"""Stands for n: after the last change of a revision."""

_DECODERS = {kind: json.Decoder(value) for kind, (_, value) in _KINDS.items()}


class Batch(NamedTuple):
    """What one revision changed, and when it was written."""

    revision: int
    changes: Changes
    at: Instant


@dataclass(slots=True)
class Tail:
    """What happened after some place, as of one moment."""

    epoch: int
    revision: int
    """The newest revision; a later call is needed if `batches` does not reach it."""
    compacted: int
    """Whoever stands at an older revision than this has missed changes and must load anew."""
    batches: list[Batch]
    place: tuple[int, int] | None
    """(revision, n) of the last row, if there may be more: the last batch may go on after it."""
    at: Instant | None = None
    """When the revision was written after which this begins; None: it is not kept."""


class Snapshot(NamedTuple):
    """What the index holds beside providers, as of a revision."""

    epoch: int
    revision: int
    at: Instant | None
    """When the revision was written; None: unknown."""
    classes: dict[str, Vocable]
    traits: dict[str, Vocable]


def change_rows(changes: Changes) -> Iterator[tuple[str, str, str | None]]:
    """Yield (kind, key, body) of every change, in one order; a body of None: it is gone."""
    for kind, (member, _) in _KINDS.items():
        values: dict[Any, Any] = getattr(changes, member)
        for key in sorted(values):
            text = f"{key[0]}/{key[1]}" if kind == "inventory" else key
            written = encode_consumer if kind == "consumer" else encode
            yield kind, text, None if values[key] is None else written(values[key])


def _change_read(changes: Changes, kind: str, key: str, body: str | None) -> None:
    values: dict[Any, Any] = getattr(changes, _KINDS[kind][0])
    value = None if body is None else _DECODERS[kind].decode(body)
    values[tuple(key.split("/", 1)) if kind == "inventory" else key] = value


def changes_load(
    after_revision: int,
    n: int = WHOLE,
    *,
    rows_max: int = ROWS_MAX,
    kinds: Collection[str] = tuple(_KINDS),
) -> Plan[Tail]:
    """Load what was changed after (revision, n), oldest first, at most `rows_max` rows of it.

    Other kinds are left out: a batch of nothing else has no changes here. Raises Outdated: a newer
    release has written changes that cannot be read here.
    """
    (rows,) = yield [Query("changes_load", (after_revision, n, _others(tuple(kinds)), rows_max))]
    batches: list[Batch] = []
    epoch, newest, compacted, minimum, began, revision, *_ = rows[0]
    formats.check(minimum, "the database")
    if revision is None:
        return Tail(epoch, newest, compacted, batches, None, began)
    for *_, revision, _, at, kind, key, body in rows:
        if not batches or batches[-1].revision != revision:
            batches.append(Batch(revision, Changes(), at))
        if kind in kinds:
            _change_read(batches[-1].changes, kind, key, body)
        elif kind not in KINDS:
            raise unknown(kind)
    place = rows[-1][5:7] if len(rows) == rows_max else None
    return Tail(epoch, newest, compacted, batches, place, began)


@cache
def _others(kinds: tuple[str, ...]) -> str:
    """Return the known kinds besides these: a kind that is not known is never left out."""
    return key_set(set(KINDS).difference(kinds))


def unknown(kind: str) -> Outdated:
    """Return the error of whoever meets a kind of change row that this release does not know."""
    return Outdated(
        f"a newer release has written changes of the kind {kind!r}, which this release does not "
        "know: upgrade this process"
    )


def clock_load() -> Plan[tuple[int, int]]:
    """Load (epoch, revision)."""
    (((epoch, revision, _),),) = yield [Query("clock_load")]
    return epoch, revision


def change_time_load(revision: int) -> Plan[Instant | None]:
    """Return when a revision was written; None: it is not kept, or there is none."""
    (rows,) = yield [Query("change_time", (revision,))]
    return rows[0][0] if rows else None


def snapshot_read(take: Callable[[list[Described]], None]) -> Plan[Snapshot]:
    """Hand over every provider, some at a time; return what else the index holds.

    A provider may come before the root of its tree. Run it aside: it reads everything.
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
        {row[0]: Vocable(*row) for row in classes},
        {row[0]: Vocable(*row) for row in traits},
    )


def wipe() -> Plan[int]:
    """Empty ledger and admission (tests only); tokens stay.

    Returns the new revision: followers load anew.
    """
    tables = [
        *wipe_writes(),
        Write("holders_wipe", [()]),
        Write("consumers_wipe", [()]),
        Write("tags_wipe", [()]),
        Write("providers_wipe", [()]),
        Write("resource_classes_wipe", [()]),
        Write("traits_wipe", [()]),
        Write("changes_wipe", [()]),
    ]
    locks = [Query("ledger_lock"), Query("admission_lock")]
    revision = int((yield [*locks, *tables, Query("clock_raise", (0,))])[-1][0][0])
    yield [Write("clock_compact", [(revision,)])]
    return revision
