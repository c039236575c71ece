"""The document of a reshape plan, and what must be loaded to judge it.

A *place* is one resource class of one provider. A *move* takes units of inventory from a source to
a target, with the allocations on them. All moves of one source are a *split*.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.facts import Keys
from moorage.core.ledger.vocabulary import customs


class Policy(StrEnum):
    """What happens to consumers on a source that neither `assign` nor `stay` names."""

    EXPLICIT = "explicit"
    """They are violations: every consumer must be named."""
    ONLY_IF_UNUSED = "only_if_unused"
    """They stay, and only free units move."""
    FIT = "fit"
    """A search chooses one target for each of them; the class must be declared fungible."""


class Place(Struct, frozen=True, order=True):
    """One resource class of one provider, whether or not it has an inventory."""

    provider: ProviderId
    resource_class: str


class Move(Struct, frozen=True):
    """Units of inventory that leave a source for a target, with the allocations on them.

    `amount` None: all that the other moves of the source, and those who stay there, leave.
    `assign`: the units of a consumer by provider, for all targets of the split; the provider of the
    source stands for units that stay, unless it has a target of the split. If units stay, the rest
    of the source is reserved in full, unless `inventories` reserves less, or the policy is
    `only_if_unused`.
    """

    source: Place
    target: Place
    amount: int | None = None
    assign: Mapping[ConsumerId, Mapping[ProviderId, int]] = {}
    policy: Policy = Policy.EXPLICIT


class Figures(Struct, frozen=True, omit_defaults=True):
    """Figures of an inventory that a plan sets; None: derived from the moves, or unchanged."""

    total: int | None = None
    reserved: int | None = None
    min_unit: int | None = None
    max_unit: int | None = None
    step_size: int | None = None
    allocation_ratio: float | None = None


class NewProvider(Struct, frozen=True):
    """A provider that a plan creates; its parent may be a new one, too."""

    uuid: ProviderId
    name: str
    parent: ProviderId | None = None


class Generations(Struct, frozen=True):
    """Generations of providers and consumers; a consumer's is None if it does not exist."""

    providers: Mapping[ProviderId, int] = {}
    consumers: Mapping[ConsumerId, int | None] = {}


class ReshapePlan(Struct, frozen=True):
    """A wanted change of shape. Everything in it happens together, and only its end is judged.

    Attributes:
        create: new providers, in any order.
        parents: new parents of existing providers, whose subtrees move along; None: a root.
        rename: new names of existing providers.
        moves: inventory that moves with its allocations.
        inventories: figures by provider and class; None: there is no inventory any more.
        traits: the complete new traits of providers.
        aggregates: the complete new aggregates of providers.
        drain: providers that are drained, with the operator's words; below them, too.
        delete: providers that are deleted.
        stay: consumers that stay on the source of each move.
        release: consumers that may lose units.
        vacate: providers of which consumers lose all that they hold; `release` must have these.
        accept_drift: consumers whose `assign` holds although the ledger has another amount.
        fungible: resource classes whose units are alike, so that a search may choose among them.
        expect: generations that must be current.
        cross_tree: whether the named providers may belong to several trees.
    """

    create: tuple[NewProvider, ...] = ()
    parents: Mapping[ProviderId, ProviderId | None] = {}
    rename: Mapping[ProviderId, str] = {}
    moves: tuple[Move, ...] = ()
    inventories: Mapping[ProviderId, Mapping[str, Figures | None]] = {}
    traits: Mapping[ProviderId, frozenset[str]] = {}
    aggregates: Mapping[ProviderId, frozenset[AggregateId]] = {}
    drain: Mapping[ProviderId, str] = {}
    delete: frozenset[ProviderId] = frozenset()
    stay: frozenset[ConsumerId] = frozenset()
    release: frozenset[ConsumerId] = frozenset()
    vacate: Mapping[ConsumerId, frozenset[ProviderId]] = {}
    accept_drift: frozenset[ConsumerId] = frozenset()
    fungible: frozenset[str] = frozenset()
    expect: Generations = Generations()
    cross_tree: bool = False


def named_providers(plan: ReshapePlan) -> set[ProviderId]:
    """Return all providers that a plan changes or refers to, except those in `expect`."""
    found: set[ProviderId] = {new.uuid for new in plan.create}
    found.update(new.parent for new in plan.create if new.parent is not None)
    found.update(plan.parents, plan.rename, plan.inventories, plan.traits, plan.aggregates)
    found.update(parent for parent in plan.parents.values() if parent is not None)
    found.update(plan.delete, plan.drain)
    for move in plan.moves:
        found.update((move.source.provider, move.target.provider))
    return found


def named_consumers(plan: ReshapePlan) -> set[ConsumerId]:
    """Return all consumers that a plan names, except those in `expect`."""
    assigned = (move.assign for move in plan.moves)
    return set(plan.vacate).union(plan.stay, plan.release, plan.accept_drift, *assigned)


def losing_consumers(plan: ReshapePlan) -> frozenset[ConsumerId]:
    """Return the consumers that may lose units, so that their leases must be known."""
    return plan.release.union(plan.vacate, plan.accept_drift)


def emptied_providers(plan: ReshapePlan) -> set[ProviderId]:
    """Return the providers that may lose inventory: everybody on them must be known."""
    return {move.source.provider for move in plan.moves} | plan.delete | plan.inventories.keys()


def keys_for(plan: ReshapePlan) -> Keys:
    """Return what must be loaded to plan this."""
    named = named_providers(plan)
    keys = Keys(
        providers=named.union(plan.expect.providers, *plan.vacate.values()),
        tags=set(named),
        names={new.name for new in plan.create} | set(plan.rename.values()),
        trees=set(named),
        consumers={*plan.expect.consumers, *named_consumers(plan)},
        holders=emptied_providers(plan),
    )
    for move in plan.moves:
        keys.classes.update(customs((move.source.resource_class, move.target.resource_class)))
    for classes in plan.inventories.values():
        keys.classes.update(customs(classes))
    for traits in plan.traits.values():
        keys.traits.update(customs(traits))
    return keys
