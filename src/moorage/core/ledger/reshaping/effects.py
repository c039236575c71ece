"""What a plan does, as values: the same effects have the same digest.

Effects contain neither generations nor what other consumers use, so that claims elsewhere do not
change the digest.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from math import floor

import msgspec
from msgspec import Struct

from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Allocations
from moorage.core.ledger.reshaping.final_state import FinalState, over
from moorage.core.ledger.reshaping.shape import drained_now, standing_of
from moorage.core.ledger.reshaping.wanted import Key, Standing, Wanted, held_at, spec_of


class ProviderCreated(Struct, frozen=True, tag="provider_created"):
    """A provider comes; its inventories, traits and aggregates are effects of their own."""

    provider: ProviderId
    name: str
    parent: ProviderId | None


class ProviderRenamed(Struct, frozen=True, tag="provider_renamed"):
    """A provider gets another name."""

    provider: ProviderId
    before: str
    after: str


class ProviderMoved(Struct, frozen=True, tag="provider_moved"):
    """A provider gets another parent; its subtree moves along. None: it is a root."""

    provider: ProviderId
    before: ProviderId | None
    after: ProviderId | None


class InventorySet(Struct, frozen=True, tag="inventory_set"):
    """An inventory changes. `before` None: it is new; `after` None: it is removed."""

    provider: ProviderId
    resource_class: str
    before: InventorySpec | None
    after: InventorySpec | None


class TraitsSet(Struct, frozen=True, tag="traits_set"):
    """The traits of a provider change; sorted."""

    provider: ProviderId
    before: tuple[str, ...]
    after: tuple[str, ...]


class AggregatesSet(Struct, frozen=True, tag="aggregates_set"):
    """The aggregates of a provider change; sorted."""

    provider: ProviderId
    before: tuple[AggregateId, ...]
    after: tuple[AggregateId, ...]


class ProviderDrained(Struct, frozen=True, tag="provider_drained"):
    """An operator's drain of a provider itself changes; the reasons. None: it is not drained."""

    provider: ProviderId
    before: str | None
    after: str | None


class AllocationsSet(Struct, frozen=True, tag="allocations_set"):
    """The allocations of a consumer change; only the places that change are listed."""

    consumer: ConsumerId
    before: Allocations
    after: Allocations


class ProviderDeleted(Struct, frozen=True, tag="provider_deleted"):
    """A provider goes; its inventories, traits and aggregates are effects of their own."""

    provider: ProviderId
    name: str
    parent: ProviderId | None


Effect = (
    ProviderCreated
    | ProviderRenamed
    | ProviderMoved
    | InventorySet
    | TraitsSet
    | AggregatesSet
    | ProviderDrained
    | AllocationsSet
    | ProviderDeleted
)
"""One effect; a list of them is in this order of kinds, and each kind is sorted by identifier."""


class Level(Struct, frozen=True):
    """The amounts of one place. `free`: how many more units its capacity has room for.

    `free` is rounded down, negative where more is used than fits, and ignores what agents and
    drains withhold.
    """

    total: int
    reserved: int
    used: int
    free: int


class PlaceSummary(Struct, frozen=True):
    """The amounts of a place before and after; None: there is no inventory."""

    provider: ProviderId
    resource_class: str
    before: Level | None
    after: Level | None


class Delta(Struct, frozen=True):
    """By how much a consumer's units at one place change."""

    consumer: ConsumerId
    provider: ProviderId
    resource_class: str
    amount: int


class ProviderSummary(Struct, frozen=True):
    """A provider before and after; None: it does not exist then."""

    provider: ProviderId
    before: Standing | None
    after: Standing | None


class Summary(Struct, frozen=True):
    """A plan for people.

    Attributes:
        providers: the providers that the plan names or changes, and all above them, before and
            after: what two trees are drawn from.
        places: all inventories of the providers that change, and those with other amounts.
        consumers: the changes of the consumers, sorted.
    """

    providers: tuple[ProviderSummary, ...]
    places: tuple[PlaceSummary, ...]
    consumers: tuple[Delta, ...]


def digest_of(effects: Sequence[Effect]) -> str:
    """Return the SHA-256 of the canonical JSON of effects, in hexadecimal."""
    return sha256(msgspec.json.encode(effects, order="sorted")).hexdigest()


def effects_of(state: FinalState) -> tuple[Effect, ...]:
    """Return what leads from the facts to a final state, in order."""
    return (
        *_standings(state.facts, state.wanted),
        *_figures(state.facts, state.wanted),
        *_tags(state.facts, state.wanted),
        *_drained(state.facts, state.wanted),
        *_allocations(state),
        *_deleted(state.facts, state.wanted),
    )


def _standings(facts: Facts, wanted: Wanted) -> Iterator[Effect]:
    created: list[Effect] = []
    renamed: list[Effect] = []
    moved: list[Effect] = []
    for uuid, after in sorted(wanted.providers.items()):
        before = facts.providers.get(uuid)
        if after is None:
            continue
        if before is None:
            created.append(ProviderCreated(uuid, after.name, after.parent))
            continue
        if before.name != after.name:
            renamed.append(ProviderRenamed(uuid, before.name, after.name))
        if before.parent != after.parent:
            moved.append(ProviderMoved(uuid, before.parent, after.parent))
    yield from created + renamed + moved


def _figures(facts: Facts, wanted: Wanted) -> Iterator[Effect]:
    for (uuid, name), after in sorted(wanted.figures.items()):
        held = facts.inventories_of(uuid).get(name)
        before = None if held is None else spec_of(held)
        if before != after:
            yield InventorySet(uuid, name, before, after)


def _tags(facts: Facts, wanted: Wanted) -> Iterator[Effect]:
    changed = sorted(wanted.tags.items())
    for uuid, after in changed:
        traits = facts.tags_of(uuid).traits
        if traits != after.traits:
            yield TraitsSet(uuid, tuple(sorted(traits)), tuple(sorted(after.traits)))
    for uuid, after in changed:
        aggregates = facts.tags_of(uuid).aggregates
        if aggregates != after.aggregates:
            yield AggregatesSet(uuid, tuple(sorted(aggregates)), tuple(sorted(after.aggregates)))


def _drained(facts: Facts, wanted: Wanted) -> Iterator[Effect]:
    for uuid, after in sorted(wanted.drained.items()):
        before = drained_now(facts, uuid)
        if before != after:
            yield ProviderDrained(uuid, before, after)


def _allocations(state: FinalState) -> Iterator[Effect]:
    for uuid, places in state.changed.items():
        if not places:
            continue
        before, after = Allocations(), Allocations()
        for key in places:
            _put(before, key, held_at(state.facts, uuid, key))
            _put(after, key, state.amount_at(uuid, key))
        yield AllocationsSet(uuid, before, after)


def _put(held: Allocations, key: Key, amount: int) -> None:
    if amount:
        held.setdefault(key[0], {})[key[1]] = amount


def _deleted(facts: Facts, wanted: Wanted) -> Iterator[Effect]:
    for uuid, after in sorted(wanted.providers.items()):
        if after is None and (before := facts.providers.get(uuid)):
            yield ProviderDeleted(uuid, before.name, before.parent)


def summary_of(state: FinalState, named: set[ProviderId]) -> Summary:
    """Return a final state for people, with the named providers and those that change."""
    shown = named | state.wanted.providers.keys() | state.wanted.tags.keys()
    shown |= {uuid for uuid, _ in state.places} | state.wanted.drained.keys()
    deltas = [
        Delta(uuid, *key, state.amount_at(uuid, key) - held_at(state.facts, uuid, key))
        for uuid, places in state.changed.items()
        for key in places
    ]
    return Summary(_providers(state, shown), _places(state), tuple(deltas))


def _providers(state: FinalState, shown: set[ProviderId]) -> tuple[ProviderSummary, ...]:
    found: dict[ProviderId, ProviderSummary] = {}
    waiting = sorted(shown)
    for uuid in waiting:
        before, after = standing_of(state.facts, uuid), state.forest.standing_of(uuid)
        if uuid not in found and (before or after):
            found[uuid] = ProviderSummary(uuid, before, after)
            waiting += [one.parent for one in (before, after) if one and one.parent]
    return tuple(found[uuid] for uuid in sorted(found))


def _places(state: FinalState) -> tuple[PlaceSummary, ...]:
    facts = state.facts
    changing = {uuid for uuid, _ in state.places}
    keys = {(uuid, name) for uuid in changing for name in facts.inventories_of(uuid)}
    return tuple(
        PlaceSummary(*key, _level_before(facts, key), _level_after(state, key))
        for key in sorted(keys.union(state.places))
    )


def _level_before(facts: Facts, key: Key) -> Level | None:
    held = facts.inventories_of(key[0]).get(key[1])
    return None if held is None else _level(spec_of(held), held.used)


def _level_after(state: FinalState, key: Key) -> Level | None:
    spec = state.spec_of(key)
    return None if spec is None else _level(spec, state.used_at(key))


def _level(spec: InventorySpec, used: int) -> Level:
    return Level(spec.total, spec.reserved, used, floor(-over(spec, used)))
