"""From changes to rows: one statement per table, then the revision and the change rows."""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Consumer, Provider
from moorage.store.api import Plan, Query, Row, Statement, Write
from moorage.store.log import change_rows
from moorage.store.rows import consumer_row, inventory_row, provider_row, tags_row


@dataclass(slots=True)
class Before:
    """What was loaded of the guarded tables, before any decision of the batch."""

    providers: dict[ProviderId, Provider]
    consumers: dict[ConsumerId, Consumer]
    classes: frozenset[str]
    traits: frozenset[str]


def before_of(facts: Facts) -> Before:
    """Remember what was loaded. The values are immutable, so the dicts are enough."""
    return Before(
        dict(facts.providers),
        dict(facts.consumers),
        frozenset(facts.classes),
        frozenset(facts.traits),
    )


def changes_save(before: Before, changes: Changes, now: Instant) -> Plan[int]:
    """Write the merged changes of a batch; return its revision.

    Without any change nothing is written and the current revision is returned.
    Providers and consumers are guarded by the generation that was loaded. Rows are written in one
    order, by key. A renamed class must be alone in its batch: every stored inventory and
    allocation of the class is renamed, known to the facts or not.
    """
    if not changes:
        ((_, revision, _),) = (yield [Query("clock_load")])[0]
        return int(revision)
    statements: list[Statement] = [
        *_word_writes(before, changes),
        *_provider_writes(before, changes),
        *_holding_writes(changes),
        *_consumer_writes(before, changes),
        # As late as possible: from here to the commit everybody else who commits waits.
        Query("clock_raise"),
        Write(
            "change_insert",
            [(n, now, kind, key, body) for n, (kind, key, body) in enumerate(change_rows(changes))],
        ),
    ]
    *_, raised, _ = yield statements
    return int(raised[0][0])


def _some(writes: Iterable[Write]) -> list[Write]:
    return [write for write in writes if write.rows]


def _word_writes(before: Before, changes: Changes) -> list[Write]:
    """A word that went and came back within the batch goes first; a new one must be new."""
    renamed = [(new, old) for old, new in sorted(changes.renamed_classes.items())]
    classes, traits = sorted(changes.classes.items()), sorted(changes.traits.items())
    return _some(
        [
            Write("allocation_rename_class", renamed),
            Write("inventory_rename_class", renamed),
            Write(
                "resource_class_delete",
                [(name,) for name, word in classes if word is None or name in before.classes],
            ),
            Write(
                "resource_class_insert",
                [(name, word.created_at, word.updated_at) for name, word in classes if word],
            ),
            Write(
                "trait_delete",
                [(name,) for name, word in traits if word is None or name in before.traits],
            ),
            Write(
                "trait_insert",
                [(name, word.created_at, word.updated_at) for name, word in traits if word],
            ),
        ]
    )


def _provider_writes(before: Before, changes: Changes) -> list[Write]:
    gone: list[Row] = []
    moved: list[Row] = []
    touched: list[Row] = []
    new: list[Row] = []
    renamed: list[Row] = []
    for uuid, after in sorted(changes.providers.items()):
        old = before.providers.get(uuid)
        if after is None:
            gone += [(uuid, old.generation)] if old is not None else []
        elif old is None:
            new.append((uuid, *provider_row(after)))
        elif _stays(old, after):
            touched.append((after.generation, after.updated_at, uuid, old.generation))
        else:
            moved.append((*provider_row(after), uuid, old.generation))
            renamed += [(uuid,)] if old.name != after.name else []
    uuids = [(row[0],) for row in gone]
    return _some(
        [
            Write("provider_delete", gone, guarded=True),
            Write("inventory_delete_by_provider", uuids),
            Write("tags_delete_by_provider", uuids),
            # Two that exchange names would meet in the unique index half-way.
            Write("provider_name_free", renamed if len(renamed) > 1 else []),
            Write("provider_update", moved, guarded=True),
            Write("provider_touch", touched, guarded=True),
            Write("provider_insert", new),
        ]
    )


def _stays(old: Provider, new: Provider) -> bool:
    return (old.name, old.parent, old.root, old.created_at) == (
        new.name,
        new.parent,
        new.root,
        new.created_at,
    )


def _holding_writes(changes: Changes) -> list[Write]:
    gone = {uuid for uuid, provider in changes.providers.items() if provider is None}
    inventories = sorted(changes.inventories.items(), key=lambda item: item[0])
    return _some(
        [
            Write("inventory_delete", [key for key, inventory in inventories if inventory is None]),
            Write(
                "inventory_upsert",
                [
                    inventory_row(*key, inventory)
                    for key, inventory in inventories
                    if inventory is not None and key[0] not in gone
                ],
            ),
            Write(
                "tags_upsert",
                [
                    tags_row(uuid, changes.tags[uuid])
                    for uuid in sorted(changes.tags)
                    if uuid not in gone
                ],
            ),
        ]
    )


def _consumer_writes(before: Before, changes: Changes) -> list[Write]:
    gone: list[Row] = []
    updated: list[Row] = []
    new: list[Row] = []
    released: list[Row] = []
    held: list[Row] = []
    for uuid, after in sorted(changes.consumers.items()):
        old = before.consumers.get(uuid)
        if after is None:
            gone += [(uuid, old.generation)] if old is not None else []
        elif old is None:
            new.append((*consumer_row(after), uuid))
        else:
            updated.append((*consumer_row(after), uuid, old.generation))
        had, has = _amounts(old), _amounts(after)
        released += [(uuid, *key) for key in sorted(had.keys() - has.keys())]
        held += [(uuid, *key, has[key]) for key in sorted(has) if had.get(key) != has[key]]
    return _some(
        [
            Write("consumer_delete", gone, guarded=True),
            Write("consumer_update", updated, guarded=True),
            Write("consumer_insert", new),
            Write("allocation_delete", released, guarded=True),
            Write("allocation_upsert", held),
        ]
    )


def _amounts(consumer: Consumer | None) -> dict[tuple[ProviderId, str], int]:
    if consumer is None:
        return {}
    return {
        (provider, name): amount
        for provider, amounts in consumer.allocations.items()
        for name, amount in amounts.items()
    }
