"""Bulk upsert of providers: only the differences are written, in small units.

Most of a report is unchanged, which a comparison with the index finds without any database access.
Only the rest goes through the transactor, one unit after another, each in a spare turn: other
requests run in between, and none waits for more than one unit.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ids import ProviderId
from moorage.core.ledger import bulk, vocabulary
from moorage.core.ledger.bulk import BulkResult, ProviderSpec, Upserted
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.search import Catalog
from moorage.core.limits import BULK_PROVIDERS_MAX
from moorage.core.service_time import When
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import LedgerUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.fair_turns import Pieces
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.store.access.audit import AuditRow

UNIT_PROVIDERS = 32
"""Providers that one transaction changes, about 3 ms of work; a tree is never split."""


@dataclass(slots=True)
class TreesUpsert(LedgerUseCase[list[Upserted]]):
    """Upsert some trees of providers, each tree as a whole or not at all. Answer: all outcomes."""

    trees: list[list[ProviderSpec]]
    movable: set[ProviderId]
    create_vocabulary: bool
    actor: Actor
    counts: Counter[BulkResult] = field(default_factory=Counter)
    """Number of providers by outcome."""

    def keys(self) -> Keys:
        """Name providers, parents, names, trees of moved providers, custom classes and traits."""
        keys = LedgerKeys()
        for spec in self._specs():
            keys.providers.add(spec.uuid)
            keys.tags.add(spec.uuid)
            if spec.name is not None:
                keys.names.add(spec.name)
            if isinstance(spec.parent, str):
                keys.providers.add(spec.parent)
            keys.classes.update(vocabulary.customs(spec.inventories or ()))
            keys.traits.update(vocabulary.customs(spec.traits or ()))
            if spec.uuid in self.movable:
                keys.trees.add(spec.uuid)
                if isinstance(spec.parent, str):
                    keys.trees.add(spec.parent)
        return Keys(keys, fleet=FleetKeys(roots={spec.uuid for spec in self._specs()}))

    def decide(self, world: World, when: When) -> Changes:
        """Return the changes of every tree that was not refused, and an answer for each provider.

        The trees are decided one after another, each based on the state after the previous one.
        """
        changes = LedgerChanges()
        answers: list[Upserted] = []
        for tree in self.trees:
            at = Instant(when.stamp + changes.instants)
            made, answered = bulk.upsert_tree(
                world.ledger, at, tree, self.movable, self.create_vocabulary
            )
            changes.update(made)
            answers += answered
        self.counts = Counter(each.outcome for each in answers)
        return self.decided(changes, answers)

    def audit(self, now: Instant) -> list[AuditRow]:
        """Return one row with the number of each outcome, if anything is changed."""
        if not (self.counts[BulkResult.CREATED] or self.counts[BulkResult.UPDATED]):
            return []
        after = {kind.value: self.counts[kind] for kind in BulkResult}
        target = f"{self.counts.total()} providers"
        return [audit_entry(now, self.actor, "providers.bulk", target, after=after)]

    def _specs(self) -> Iterable[ProviderSpec]:
        return (spec for tree in self.trees for spec in tree)


async def providers_upsert(
    index: CatalogIndex,
    transactor: Transactor,
    pieces: Pieces,
    actor: Actor,
    specs: list[ProviderSpec],
    create_vocabulary: bool,
) -> list[Upserted]:
    """Upsert providers; return the outcome of each, in the order of `specs`.

    Each tree is changed as a whole or not at all, independently of the others. If the database
    fails in between, the remaining providers are refused with UNAVAILABLE or OVERLOADED. Every
    transaction that changes something writes its own audit row, so none is lost by a failure.

    Raises `Error`: LIMIT_EXCEEDED, INVALID for a provider that is described twice, UNAVAILABLE and
    OVERLOADED if nothing was done at all.
    """
    _check(specs)
    await index.current()
    answers: dict[ProviderId, Upserted] = {}
    async for spec in pieces.each(specs):
        record = index.catalog.record(spec.uuid)
        if record and bulk.is_met(spec, record.provider, record.inventories, record.tags):
            generation = record.provider.generation
            answers[spec.uuid] = Upserted(spec.uuid, BulkResult.UNCHANGED, generation)
    rest = [spec for spec in specs if spec.uuid not in answers]

    def root_of(uuid: ProviderId) -> ProviderId | None:
        record = index.catalog.record(uuid)
        return record.provider.root if record else None

    for unit in units(bulk.trees(rest, root_of)):
        try:
            async with pieces.unit:
                await pieces.rest()
                movable = _movable(index.catalog, unit)
                done = await transactor.submit(TreesUpsert(unit, movable, create_vocabulary, actor))
        except Error as error:
            if not answers:
                raise
            left = [spec.uuid for spec in rest if spec.uuid not in answers]
            done = [Upserted(uuid, BulkResult.REFUSED, None, error) for uuid in left]
        answers.update((each.uuid, each) for each in done)
        if len(answers) == len(specs):
            break
    return [answers[spec.uuid] for spec in specs]


def check_count(providers: int) -> None:
    """Raise LIMIT_EXCEEDED if a request has too many providers."""
    if providers > BULK_PROVIDERS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"A request may describe at most {BULK_PROVIDERS_MAX} providers: send several"
            f" requests.",
        )


def _check(specs: list[ProviderSpec]) -> None:
    check_count(len(specs))
    seen: set[ProviderId] = set()
    for spec in specs:
        if spec.uuid in seen:
            raise Error(Code.INVALID, f"Provider '{spec.uuid}' is described twice.")
        seen.add(spec.uuid)


def units(trees: Iterable[list[ProviderSpec]]) -> Iterable[list[list[ProviderSpec]]]:
    """Combine trees into units of up to `UNIT_PROVIDERS`; a larger tree is a unit by itself."""
    unit: list[list[ProviderSpec]] = []
    size = 0
    for tree in trees:
        if unit and size + len(tree) > UNIT_PROVIDERS:
            yield unit
            unit, size = [], 0
        unit.append(tree)
        size += len(tree)
    if unit:
        yield unit


def _movable(catalog: Catalog, unit: list[list[ProviderSpec]]) -> set[ProviderId]:
    """Return the providers that will get another parent, according to the index."""
    found = set()
    for spec in (spec for tree in unit for spec in tree):
        record = catalog.record(spec.uuid)
        if record and bulk.moves(spec, record.provider):
            found.add(spec.uuid)
    return found
