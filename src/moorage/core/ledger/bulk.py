"""Bulk changes: many providers are made to match their specs; those that match stay unchanged.

All or nothing per tree. Every step is one of the ordinary decisions; this module only runs them in
sequence, and undoes them together.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger import inventory, providers, traits_aggregates, vocabulary
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import Specs
from moorage.core.ledger.model import Inventory, Provider, Tags
from moorage.core.limits import NAME_LENGTH_MAX


class ProviderSpec(Struct, frozen=True):
    """The wanted state of one provider. A None, or UNSET for the parent, means unchanged."""

    uuid: ProviderId
    name: str | None = None
    parent: ProviderId | UnsetType | None = UNSET
    inventories: Specs | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[AggregateId] | None = None


class BulkResult(StrEnum):
    """The result for one provider of a bulk request."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class Upserted(Struct, frozen=True):
    """The answer for one provider; `generation` is None if it does not exist."""

    uuid: ProviderId
    outcome: BulkResult
    generation: int | None
    refusal: Error | None = None


class Trial:
    """Steps that are visible in the facts at once and can be undone; the first is at `now`."""

    def __init__(self, facts: Facts, now: Instant) -> None:
        self.facts = facts
        self._began = now
        self.changes = Changes()
        self._back: list[Changes] = []

    @property
    def now(self) -> Instant:
        """The instant of the next step."""
        return Instant(self._began + self.changes.instants)

    def step(self, changes: Changes) -> None:
        """Make one step."""
        self._back.append(self.facts.before(changes))
        self.facts.apply(changes)
        self.changes.update(changes)

    def take_back(self) -> None:
        """Undo all steps, the last one first."""
        while self._back:
            self.facts.apply(self._back.pop())
        self.changes = Changes()


def is_met(
    spec: ProviderSpec, provider: Provider, inventories: Mapping[str, Inventory], own: Tags
) -> bool:
    """Does the provider already match its spec?"""
    return (
        not _is_elsewhere(spec, provider)
        and (spec.inventories is None or inventory.offers(inventories, spec.inventories))
        and spec.traits in (None, own.traits)
        and spec.aggregates in (None, own.aggregates)
    )


def moves(spec: ProviderSpec, provider: Provider) -> bool:
    """Does the spec give the provider another parent?"""
    return spec.parent is not UNSET and spec.parent != provider.parent


def upsert_tree(
    facts: Facts,
    now: Instant,
    specs: list[ProviderSpec],
    movable: set[ProviderId],
    create_vocabulary: bool,
) -> tuple[Changes, list[Upserted]]:
    """Make all these providers of one tree match their specs, or change none of them.

    The changes are applied to the facts. It never raises `Error`: the answer of the refused
    provider has the refusal, those of the others in the tree have TREE_REFUSED.

    Args:
        facts: as loaded.
        now: the time of the batch.
        specs: of the providers, in any order.
        movable: providers whose whole trees, old and new, were loaded.
        create_vocabulary: create custom classes and traits that do not exist.
    """
    trial = Trial(facts, now)
    answers = []
    for spec in parents_first(specs):
        try:
            answers.append(upsert(trial, spec, movable, create_vocabulary))
        except Error as refusal:
            trial.take_back()
            return Changes(), [_refused(facts, each, spec, refusal) for each in specs]
        except BaseException:
            trial.take_back()
            raise
    return trial.changes, answers


def parents_first(specs: Iterable[ProviderSpec]) -> list[ProviderSpec]:
    """Sort providers after their parents; the order within a cycle is arbitrary."""
    waiting = {spec.uuid: spec for spec in specs}
    ordered: list[ProviderSpec] = []
    for spec in list(waiting.values()):
        if waiting.pop(spec.uuid, None) is None:
            continue
        line = [spec]
        while isinstance(above := line[-1].parent, str) and above in waiting:
            line.append(waiting.pop(above))
        ordered += reversed(line)
    return ordered


def trees(
    specs: Iterable[ProviderSpec], root_of: Callable[[ProviderId], ProviderId | None]
) -> list[list[ProviderSpec]]:
    """Group specs by present and future tree; `root_of` returns a provider's present root."""
    leaders: dict[ProviderId, ProviderId] = {}

    def leader(uuid: ProviderId) -> ProviderId:
        while (above := leaders.setdefault(uuid, uuid)) != uuid:
            leaders[uuid] = leaders[above]
            uuid = above
        return uuid

    listed = list(specs)
    for spec in listed:
        for uuid in (spec.uuid, spec.parent):
            if isinstance(uuid, str):
                leaders[leader(spec.uuid)] = leader(uuid)
                leaders[leader(uuid)] = leader(root_of(uuid) or uuid)
    found: dict[ProviderId, list[ProviderSpec]] = {}
    for spec in listed:
        found.setdefault(leader(spec.uuid), []).append(spec)
    return list(found.values())


def upsert(
    trial: Trial,
    spec: ProviderSpec,
    movable: set[ProviderId],
    create_vocabulary: bool,
) -> Upserted:
    """Make one provider match its spec; the caller takes the trial back if it raises `Error`."""
    facts, uuid = trial.facts, spec.uuid
    before = facts.providers.get(uuid)
    if before is None:
        _create(trial, spec)
    elif is_met(spec, before, facts.inventories_of(uuid), facts.tags_of(uuid)):
        return Upserted(uuid, BulkResult.UNCHANGED, before.generation)
    elif _is_elsewhere(spec, before):
        _relocate(trial, spec, before, movable)
    if create_vocabulary:
        _teach(trial, spec)
    _furnish(trial, spec)
    outcome = BulkResult.CREATED if before is None else BulkResult.UPDATED
    return Upserted(uuid, outcome, facts.providers[uuid].generation)


def _create(trial: Trial, spec: ProviderSpec) -> None:
    if spec.name is None:
        raise Error(Code.INVALID, f"Provider {spec.uuid} does not exist; a new one needs a name.")
    parent = None if spec.parent is UNSET else spec.parent
    trial.step(providers.create(trial.facts, trial.now, spec.uuid, _name(spec.name), parent)[0])


def _relocate(trial: Trial, spec: ProviderSpec, before: Provider, movable: set[ProviderId]) -> None:
    move = moves(spec, before)
    if move and spec.uuid not in movable:
        raise Error(
            Code.PROVIDER_GENERATION,
            f"Provider {spec.uuid} was created or moved by another client in the meantime; try"
            f" again.",
        )
    name = before.name if spec.name is None else _name(spec.name)
    parent = None if spec.parent is UNSET else spec.parent
    facts, now = trial.facts, trial.now
    trial.step(providers.update(facts, now, spec.uuid, name, move, parent, free=True)[0])


def _name(name: str) -> str:
    if len(name) > NAME_LENGTH_MAX:
        raise Error(Code.INVALID, f"A name must have at most {NAME_LENGTH_MAX} characters.")
    return name


def _teach(trial: Trial, spec: ProviderSpec) -> None:
    for name in spec.inventories or ():
        if not trial.facts.has_class(name):
            trial.step(vocabulary.class_ensure(trial.facts, trial.now, name)[0])
    # Traits of the provider exist, even if not loaded: a report keeps the traits of others.
    for name in sorted((spec.traits or frozenset()) - trial.facts.tags_of(spec.uuid).traits):
        if not trial.facts.has_trait(name):
            trial.step(vocabulary.trait_ensure(trial.facts, trial.now, name)[0])


def _furnish(trial: Trial, spec: ProviderSpec) -> None:
    facts, now, uuid = trial.facts, trial.now, spec.uuid
    specs = spec.inventories
    if specs is not None and not inventory.offers(facts.inventories_of(uuid), specs):
        for name, figures in specs.items():
            inventory.check_figures(uuid, name, figures)
        generation = facts.providers[uuid].generation
        trial.step(inventory.replace_all(facts, now, uuid, generation, specs, True)[0])
    if spec.traits is not None and spec.traits != facts.tags_of(uuid).traits:
        generation = facts.providers[uuid].generation
        trial.step(traits_aggregates.replace_traits(facts, now, uuid, generation, spec.traits)[0])
    if spec.aggregates is not None and spec.aggregates != facts.tags_of(uuid).aggregates:
        generation = facts.providers[uuid].generation
        trial.step(
            traits_aggregates.replace_aggregates(facts, now, uuid, spec.aggregates, generation)[0]
        )


def _is_elsewhere(spec: ProviderSpec, provider: Provider) -> bool:
    return spec.name not in (None, provider.name) or moves(spec, provider)


def _refused(facts: Facts, each: ProviderSpec, spec: ProviderSpec, refusal: Error) -> Upserted:
    known = facts.providers.get(each.uuid)
    if each.uuid != spec.uuid:
        refusal = Error(Code.TREE_REFUSED, f"Provider {spec.uuid} of the same tree was refused.")
    return Upserted(each.uuid, BulkResult.REFUSED, known.generation if known else None, refusal)
