"""Saves the ledger's changes as rows, by set statements.

Providers and consumers are guarded by the generation that was loaded. Rows are written in the order
of their keys. A renamed class must be alone in its batch: every stored inventory and allocation of
the class is renamed, including those that are not in the facts.
"""

from collections.abc import Iterator, KeysView
from dataclasses import dataclass
from typing import ClassVar

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.model import Allocations, Consumer, CustomName, Inventory, Provider
from moorage.store.api import Row, Statement, Write
from moorage.store.encoding import encode
from moorage.store.ledger.changes import change_rows
from moorage.store.ledger.rows import consumer_row, provider_row, tags_row

_NOWHERE: KeysView[ProviderId] = Allocations().keys()


@dataclass(slots=True)
class LoadedValues:
    """The loaded values, before any decision of the batch."""

    providers: dict[ProviderId, Provider]
    inventories: dict[ProviderId, dict[str, Inventory]]
    """Not guarded, and not copied: it may already contain after-images, which are absolute."""
    consumers: dict[ConsumerId, Consumer]
    classes: frozenset[str]
    traits: frozenset[str]


def before_of(facts: Facts) -> LoadedValues:
    """Keep the loaded values. They are immutable, so copies of the dicts are enough."""
    return LoadedValues(
        dict(facts.providers),
        facts.inventories,
        dict(facts.consumers),
        frozenset(facts.classes),
        frozenset(facts.traits),
    )


@dataclass(slots=True)
class LedgerPart:
    """The ledger's part of a batch, for `store/batch.py`."""

    before: LoadedValues
    changes: Changes
    """The merged changes of all decisions."""
    needs_revision: ClassVar[bool] = False

    @property
    def is_published(self) -> bool:
        """Return whether anything is changed: followers are notified of every change."""
        return bool(self.changes)

    def writes(self) -> list[Statement]:
        """Return the statements that save the rows."""
        changes = self.changes
        writes: list[Statement] = []
        if changes.classes or changes.traits or changes.renamed_classes:
            writes += _word_writes(self.before, changes)
        if changes.providers or changes.inventories:
            writes += _provider_writes(self.before, changes)
        if changes.tags:
            writes += _tag_writes(changes)
        if changes.consumers:
            writes += _consumer_writes(self.before, changes)
        return writes

    def stamp(self, epoch: int, revision: int) -> None:
        """Do nothing: no row of the ledger contains the revision."""

    def late_writes(self) -> list[Statement]:
        """Return no statements."""
        return []

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield (kind, key, body) of every change."""
        return change_rows(self.changes)


def _word_writes(before: LoadedValues, changes: Changes) -> list[Write]:
    """Deletes come first: a name may be deleted and created again within one batch."""
    renamed: list[Row] = [(new, old) for old, new in sorted(changes.renamed_classes.items())]
    classes, traits = sorted(changes.classes.items()), sorted(changes.traits.items())
    old_classes = [(name,) for name, word in classes if word is None or name in before.classes]
    old_traits = [(name,) for name, word in traits if word is None or name in before.traits]
    writes = [
        Write("allocation_rename_class", renamed),
        Write("inventory_rename_class", renamed),
        Write("resource_class_delete", old_classes),
        Write("resource_class_insert", [_word_row(word) for _, word in classes if word]),
        Write("trait_delete", old_traits),
        Write("trait_insert", [_word_row(word) for _, word in traits if word]),
    ]
    return [write for write in writes if write.rows]


def _word_row(word: CustomName) -> Row:
    return (word.name, word.created_at, word.updated_at)


def _provider_writes(before: LoadedValues, changes: Changes) -> list[Write]:
    offered = _offered(before, changes)
    gone: list[Row] = []
    moved: list[Row] = []
    touched: list[Row] = []
    used: list[Row] = []
    new: list[Row] = []
    renamed: list[Row] = []
    for uuid, after in sorted(changes.providers.items()):
        old = before.providers.get(uuid)
        if after is None:
            gone += [(uuid, old.generation)] if old is not None else []
            offered.pop(uuid, None)
        elif old is None:
            new.append((*provider_row(after), offered.pop(uuid, "{}"), uuid))
        elif not _stays(old, after):
            moved.append((*provider_row(after), uuid, old.generation))
            renamed += [(uuid,)] if old.name != after.name else []
        elif uuid in offered:
            row = (after.generation, after.updated_at, offered.pop(uuid), uuid, old.generation)
            used.append(row)
        else:
            touched.append((after.generation, after.updated_at, uuid, old.generation))
    # Not all, to drop those without rows: most batches need one of them.
    writes = []
    if gone:
        writes.append(Write("provider_delete", gone, guarded=True))
        writes.append(Write("tags_delete_by_provider", [(row[0],) for row in gone]))
    if len(renamed) > 1:  # two providers that swap names would violate the unique index half-way
        writes.append(Write("provider_name_free", renamed))
    if moved:
        writes.append(Write("provider_update", moved, guarded=True))
    if touched:
        writes.append(Write("provider_touch", touched, guarded=True))
    if used:
        writes.append(Write("provider_use", used, guarded=True))
    if new:
        writes.append(Write("provider_insert", new))
    if offered:
        writes.append(
            Write("inventories_write", [(offered[uuid], uuid) for uuid in sorted(offered)])
        )
    return writes


def _offered(before: LoadedValues, changes: Changes) -> dict[ProviderId, str]:
    """Return all inventories, encoded, of each provider that has a changed inventory."""
    offered: dict[ProviderId, dict[str, Inventory]] = {}
    for (uuid, name), inventory in changes.inventories.items():
        held = offered.get(uuid)
        if held is None:
            held = offered[uuid] = dict(before.inventories.get(uuid, ()))
        if inventory is None:
            held.pop(name, None)
        else:
            held[name] = inventory
    return {uuid: encode(held) for uuid, held in offered.items()}


def _stays(old: Provider, new: Provider) -> bool:
    return (old.name, old.parent, old.root, old.created_at, old.agent, old.withheld) == (
        new.name,
        new.parent,
        new.root,
        new.created_at,
        new.agent,
        new.withheld,
    )


def _tag_writes(changes: Changes) -> list[Write]:
    gone = {uuid for uuid, provider in changes.providers.items() if provider is None}
    rows = [tags_row(uuid, changes.tags[uuid]) for uuid in sorted(changes.tags) if uuid not in gone]
    return [Write("tags_upsert", rows)] if rows else []


def _consumer_writes(before: LoadedValues, changes: Changes) -> list[Write]:
    gone: list[Row] = []
    updated: list[Row] = []
    new: list[Row] = []
    left: list[Row] = []
    came: list[Row] = []
    for uuid, after in sorted(changes.consumers.items()):
        old = before.consumers.get(uuid)
        if after is None:
            gone += [(uuid, old.generation)] if old is not None else []
        elif old is None:
            new.append((*consumer_row(after), uuid))
        else:
            updated.append((*consumer_row(after), uuid, old.generation))
        had = old.allocations.keys() if old is not None else _NOWHERE
        has = after.allocations.keys() if after is not None else _NOWHERE
        # A consumer that left and came back in this batch has a new place.
        new_places = {provider for provider in has if (provider, uuid) in changes.places}
        if had:
            left += [
                (provider, uuid)
                for provider in had
                if provider in new_places or provider not in has
            ]
        came += [(provider, uuid, changes.places[provider, uuid]) for provider in new_places]
    writes = []
    if gone:
        writes.append(Write("consumer_delete", gone, guarded=True))
    if updated:
        writes.append(Write("consumer_update", updated, guarded=True))
    if new:
        writes.append(Write("consumer_insert", new))
    if left:
        writes.append(Write("holder_delete", sorted(left), guarded=True))
    if came:
        writes.append(Write("holder_insert", sorted(came)))
    return writes
