"""The changes that a report of a group of reporters makes to a provider.

A report has the state of a node in its source, or says that the source has no such node any more.
It is compared with the ledger, never with an earlier report. Beside nova, which writes the same
providers, it changes two figures only. Source: decision 0030.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger import bulk, inventory, providers, traits_aggregates
from moorage.core.ledger.bulk import BulkResult, ProviderSpec, Trial
from moorage.core.ledger.facts import Changes, Facts
from moorage.core.ledger.inventory import InventorySpec, Specs
from moorage.core.ledger.model import NO_TAGS, Inventory, Provider, Reported, Tags

OWNER_NOVA = "OWNER_NOVA"
"""The trait of providers that nova writes."""


class Mode(StrEnum):
    """Other writers of the providers."""

    OWNER = "owner"
    """Nobody: a report says everything about a provider."""
    BESIDE_NOVA = "beside_nova"
    """Nova: a report says `reserved` and `total`."""


class ReportOutcome(StrEnum):
    """The outcome for one node of a report."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    REFUSED = "refused"


class Node(Struct, frozen=True):
    """The report of one node. None means unchanged; an absent node has no other values."""

    uuid: ProviderId
    name: str | None = None
    absent: bool = False
    inventories: Specs | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[AggregateId] | None = None

    @property
    def names(self) -> int:
        """How many classes, traits and aggregates it names."""
        return len(self.inventories or ()) + len(self.traits or ()) + len(self.aggregates or ())


class NodeAnswer(Struct, frozen=True):
    """The answer for one node; `generation` is None if it has no provider."""

    uuid: ProviderId
    outcome: ReportOutcome
    generation: int | None = None
    ghost: bool = False
    refusal: Error | None = None


def is_met(
    node: Node,
    group: str,
    mode: Mode,
    provider: Provider | None,
    inventories: Mapping[str, Inventory],
    tags: Tags,
) -> bool:
    """Does the ledger already say what a report of a group says of a node?

    Never of a provider that an agent manages: such a report is refused.
    """
    if provider is None:
        return node.absent or mode is Mode.BESIDE_NOVA
    if provider.agent is not None:
        return False
    if node.absent:
        return _is_ghost(group, inventories, tags) and (
            _is_nova(mode, tags) or any(one.used for one in inventories.values())
        )
    before = tags.reported_by(group)
    if before.ghost:
        return False
    if _is_nova(mode, tags):
        return not _figures(node, inventories)
    after, own = traits_after(group, tags, node.traits)
    return (
        before.owned
        and own == before
        and bulk.is_met(_spec(node, after), provider, inventories, tags)
    )


def apply(
    facts: Facts, now: Instant, group: str, mode: Mode, node: Node
) -> tuple[Changes, NodeAnswer]:
    """Make a provider what a report says; the changes are applied to the facts.

    It never raises `Error`: a refused node is unchanged, and its answer has the refusal.

    Args:
        facts: with the provider, its tags and children.
        now: the time of the decision.
        group: the group of reporters.
        mode: who else writes the provider.
        node: what the report says.
    """
    trial = Trial(facts, now)
    try:
        outcome = _applied(trial, group, mode, node)
    except Error as refusal:
        trial.take_back()
        outcome, error = ReportOutcome.REFUSED, refusal
        return Changes(), _answer(facts, group, node, outcome, error.with_traceback(None))
    except BaseException:
        trial.take_back()
        raise
    return trial.changes, _answer(facts, group, node, outcome)


def check(node: Node, provider: Provider | None) -> None:
    """Raise `Error` if no report may say this of a provider.

    CLASS_MANAGED: an agent manages the provider. The classes that the agent does not manage are no
    exception: a report is whole, so it would remove the others. A root that was given to an agent,
    without classes, has no agent. INVALID: the report would make the provider nova's for ever.
    """
    if node.traits is not None and OWNER_NOVA in node.traits:
        raise Error(
            Code.INVALID,
            f"Trait {OWNER_NOVA} says that nova writes provider {node.uuid}, so only nova sets it: "
            "leave it out of the report.",
        )
    if provider is not None and provider.agent is not None:
        raise Error(
            Code.CLASS_MANAGED,
            f"Provider {provider.uuid} is managed by agent {provider.agent}, so reports do not "
            "change it: stop reporting it, or decommission the agent and delete the provider.",
        )


def refused(node: ProviderId, refusal: Error, generation: int | None = None) -> NodeAnswer:
    """Return the answer for a node that is refused."""
    return NodeAnswer(node, ReportOutcome.REFUSED, generation, refusal=refusal)


def traits_after(
    group: str, tags: Tags, traits: frozenset[str] | None
) -> tuple[frozenset[str], Reported]:
    """Return all traits of a provider after a report, and those that the group has set then.

    Traits that no report has set stay and belong to nobody, also if the report names them.
    """
    before = tags.reported_by(group)
    if traits is None:
        return tags.traits, before
    if tags.traits == before.traits == traits:  # usual, and cheap
        return traits, before
    others = frozenset[str]().union(*(o.traits for o in tags.reported if o.group != group))
    foreign = tags.traits - others - before.traits
    own = traits - foreign
    return foreign | others | own, replace(before, traits=own)


def _applied(trial: Trial, group: str, mode: Mode, node: Node) -> ReportOutcome:
    facts, uuid = trial.facts, node.uuid
    before = facts.providers.get(uuid)
    check(node, before)
    tags = facts.tags_of(uuid) if before is not None else NO_TAGS
    if is_met(node, group, mode, before, facts.inventories_of(uuid), tags):
        return ReportOutcome.UNCHANGED
    if before is not None and node.absent:
        return _absent(trial, group, mode, before)
    if before is not None and _is_nova(mode, tags):
        _reserve(trial, before, _figures(node, facts.inventories_of(uuid)))
        _mark(trial, uuid, replace(tags.reported_by(group), ghost=False))
        return ReportOutcome.UPDATED
    traits, own = traits_after(group, tags, node.traits)
    done = bulk.upsert(trial, _spec(node, traits), set(), create_vocabulary=True)
    _mark(trial, uuid, replace(own, ghost=False, owned=True))
    return ReportOutcome.CREATED if done.outcome is BulkResult.CREATED else ReportOutcome.UPDATED


def _absent(trial: Trial, group: str, mode: Mode, provider: Provider) -> ReportOutcome:
    """Remove a provider; what is allocated, or is nova's, stays, and offers nothing."""
    facts, uuid = trial.facts, provider.uuid
    held = facts.inventories_of(uuid)
    if not _is_nova(mode, facts.tags_of(uuid)):
        _check_gone(group, uuid, facts.tags_of(uuid))
        if not any(one.used for one in held.values()):
            trial.step(providers.delete(facts, uuid))
            return ReportOutcome.REMOVED
    closed = {
        name: _reserving(one, one.total, one.total)
        for name, one in held.items()
        if one.reserved < one.total
    }
    _reserve(trial, provider, closed)
    _mark(trial, uuid, replace(facts.tags_of(uuid).reported_by(group), ghost=True))
    return ReportOutcome.UPDATED


def _check_gone(group: str, uuid: ProviderId, tags: Tags) -> None:
    """Raise NOT_OWNER if other groups own a provider: the source of this one never had the node."""
    owners = [one.group for one in tags.reported if one.owned]
    if owners and group not in owners:
        raise Error(
            Code.NOT_OWNER,
            f"Provider {uuid} belongs to group {', '.join(owners)}: a group that has not reported"
            " it in the mode 'owner' cannot say that it is gone.",
        )


def _reserve(trial: Trial, provider: Provider, specs: Specs) -> None:
    if specs:
        changes = inventory.change_some(
            trial.facts, trial.now, provider.uuid, provider.generation, specs
        )
        trial.step(changes)


def _mark(trial: Trial, uuid: ProviderId, after: Reported) -> None:
    changes = traits_aggregates.set_reported(trial.facts, trial.now, uuid, after)
    if changes:
        trial.step(changes)


def _is_nova(mode: Mode, tags: Tags) -> bool:
    """Does nova write the provider, too? Its trait counts more than what a reporter believes."""
    return mode is Mode.BESIDE_NOVA or OWNER_NOVA in tags.traits


def _is_ghost(group: str, inventories: Mapping[str, Inventory], tags: Tags) -> bool:
    """Is the provider known to be gone, and does it offer nothing?"""
    return tags.reported_by(group).ghost and all(
        one.reserved >= one.total for one in inventories.values()
    )


def _figures(node: Node, held: Mapping[str, Inventory]) -> Specs:
    """Return the reported classes that the provider has, with another `reserved` or `total`."""
    return {
        name: _reserving(held[name], spec.total, spec.reserved)
        for name, spec in (node.inventories or {}).items()
        if name in held and (held[name].total, held[name].reserved) != (spec.total, spec.reserved)
    }


def _reserving(held: Inventory, total: int, reserved: int) -> InventorySpec:
    return InventorySpec(
        total, reserved, held.min_unit, held.max_unit, held.step_size, held.allocation_ratio
    )


def _spec(node: Node, traits: frozenset[str]) -> ProviderSpec:
    return ProviderSpec(
        node.uuid,
        node.name,
        inventories=node.inventories,
        traits=traits,
        aggregates=node.aggregates,
    )


def _answer(
    facts: Facts, group: str, node: Node, outcome: ReportOutcome, refusal: Error | None = None
) -> NodeAnswer:
    provider = facts.providers.get(node.uuid)
    if provider is None:
        return NodeAnswer(node.uuid, outcome, refusal=refusal)
    ghost = facts.tags_of(node.uuid).reported_by(group).ghost
    return NodeAnswer(node.uuid, outcome, provider.generation, ghost, refusal)
