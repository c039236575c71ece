"""The change rows: what each revision changed, as after-images that others can follow.

A follower starts with `snapshot_load` and goes on with `changes_load`; `compact` forgets the rows
that no follower needs any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import json

from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Consumer, Inventory, Provider, Tags, Vocable
from moorage.store import admission_rows
from moorage.store.admission_save import wipe_writes
from moorage.store.api import Plan, Query, Row, Write
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

_DECODERS = {kind: json.Decoder(value) for kind, (_, value) in _KINDS.items()}


@dataclass(slots=True)
class Tail:
    """What happened after some revision, as of one moment."""

    epoch: int
    revision: int
    """The newest revision; a later call is needed if `batches` does not reach it."""
    compacted: int
    """Whoever stands at an older revision than this has missed changes and must load anew."""
    batches: list[tuple[int, Changes]]


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


def changes_load(after_revision: int, revisions_max: int = 1_000) -> Plan[Tail]:
    """Load the batches after a revision, oldest first, at most `revisions_max` of them.

    Admission's changes are left out: a batch of nothing else has no changes here.
    """
    (rows,) = yield [
        Query("changes_load", (after_revision, after_revision + revisions_max, key_set(_KINDS)))
    ]
    batches: dict[int, Changes] = {}
    for _, _, _, revision, kind, key, body in rows:
        if revision is not None:
            batch = batches.setdefault(revision, Changes())
            if kind in _KINDS:
                _change_read(batch, kind, key, body)
    epoch, newest, compacted = rows[0][:3]
    return Tail(epoch, newest, compacted, list(batches.items()))


def snapshot_load() -> Plan[tuple[int, int, Changes]]:
    """Load (epoch, revision, everything the index holds); consumers are not part of it."""
    clock, providers, tags, classes, traits = yield [
        Query("clock_load"),
        Query("providers_snapshot"),
        Query("tags_snapshot"),
        Query("resource_classes_snapshot"),
        Query("traits_snapshot"),
    ]
    epoch, revision, _ = clock[0]
    changes = Changes(
        tags={row[0]: tags_from_row(row) for row in tags},
        classes={row[0]: Vocable(*row) for row in classes},
        traits={row[0]: Vocable(*row) for row in traits},
    )
    for row in providers:
        provider, inventories = provider_from_row(row)
        changes.providers[provider.uuid] = provider
        for name, inventory in inventories.items():
            changes.inventories[provider.uuid, name] = inventory
    return epoch, revision, changes


def compaction_mark_load(keep_since: Instant, keep_rows: int) -> Plan[int]:
    """Return the newest revision whose change rows nobody needs; 0 if all are needed.

    Rows are kept that are not older than `keep_since`, and the newest `keep_rows`. It walks over
    the rows that are kept: run it aside.
    """
    old, ranked = yield [
        Query("change_before", (keep_since,)),
        Query("change_at_rank", (keep_rows,)),
    ]
    return min(_mark(old), _mark(ranked))


def _mark(rows: list[Row]) -> int:
    return int(rows[0][0]) - 1 if rows else 0


def compact(mark: int, revisions_max: int = 25) -> Plan[int]:
    """Forget change rows up to revision `mark`, the oldest `revisions_max` revisions of them.

    Returns the mark that has been reached; call again, in another transaction, until it is `mark`.
    Whoever comes while another process is at it leaves it to that one.
    """
    ((mine,),), ((_, _, compacted),) = yield [Query("compaction_lock"), Query("clock_load")]
    if not mine:
        return mark
    reached = min(mark, compacted + revisions_max)
    if reached <= compacted:
        return int(compacted)
    yield [Write("changes_delete", [(reached,)]), Write("clock_compact", [(reached,)])]
    return int(reached)


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
    revision = int((yield [*locks, *tables, Query("clock_raise")])[-1][0][0])
    yield [Write("clock_compact", [(revision,)])]
    return revision
