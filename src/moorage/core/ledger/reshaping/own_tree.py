"""What the plan of a machine's agent may do: change the shape of its own tree, and nothing else.

A token of an agent is on the machine that it speaks for. So its plan must not reach providers of
others, must not take names and UUIDs that others need, must not learn of consumers elsewhere, must
not grow without an end, and must not decide what operators decide: who loses units, what counts if
evidence and ledger differ, how much may be oversold.
"""

from collections.abc import Iterable, Iterator
from uuid import UUID, uuid5

from msgspec import Struct

from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import SHARING_TRAIT
from moorage.core.ledger.providers import subtree_of
from moorage.core.ledger.reshaping.plan import (
    Figures,
    ReshapePlan,
    named_consumers,
    named_providers,
)
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.limits import MACHINE_PROVIDERS_MAX


class Machine(Struct, frozen=True):
    """The author of a plan: an agent, and the provider at the top of its machine."""

    agent: AgentId
    root: ProviderId


def touched_providers(plan: ReshapePlan) -> set[ProviderId]:
    """Return all providers that a plan names anywhere, except those that it creates."""
    named = named_providers(plan).union(plan.expect.providers, *plan.vacate.values())
    for move in plan.moves:
        named.update(*move.assign.values())
    return named - {new.uuid for new in plan.create}


def beyond(facts: Facts, plan: ReshapePlan, machine: Machine) -> Iterator[Violation]:
    """Yield everything in a plan that its machine may not do; the plan is planned only if nothing.

    A plan that is planned shows figures and consumers of the providers that it names.
    """
    root = facts.providers.get(machine.root)
    below = [] if root is None else subtree_of(facts, root)
    own = {one.uuid for one in below if one.agent in (None, machine.agent)}
    yield from foreign(touched_providers(plan) - own)
    yield from _grown(plan, len(below))
    yield from _foreign_consumers(facts, plan, own)
    if root is not None:
        yield from _named(plan, own, root.name)
    yield from _root(plan, machine.root)
    yield from _moved_along(facts, plan, machine)
    yield from _operators_only(facts, plan)


def foreign(uuids: Iterable[ProviderId]) -> Iterator[Violation]:
    """Yield a violation for each provider that is not the machine's.

    It does not say whether there is such a provider: that is nobody's business.
    """
    for uuid in sorted(uuids):
        message = f"Provider {uuid} is not in the tree of this machine, or another agent has it."
        yield Violation(ViolationCode.NOT_OWN, message, provider=uuid)


def _grown(plan: ReshapePlan, present: int) -> Iterator[Violation]:
    """Yield a violation if a plan adds providers to more than a machine has."""
    after = present + len(plan.create) - len(plan.delete)
    if plan.create and after > MACHINE_PROVIDERS_MAX:
        message = (
            f"The machine would have {after} providers; its plan may add some up to"
            f" {MACHINE_PROVIDERS_MAX}."
        )
        yield Violation(ViolationCode.TOO_LARGE, message, amount=after)


def _foreign_consumers(
    facts: Facts, plan: ReshapePlan, own: set[ProviderId]
) -> Iterator[Violation]:
    """Yield a violation for each named consumer that holds nothing of the machine.

    It does not say whether the consumer holds something elsewhere, nor its generation.
    """
    for uuid in sorted(named_consumers(plan) | plan.expect.consumers.keys()):
        held = facts.consumers.get(uuid)
        if held is None or own.isdisjoint(held.allocations):
            message = f"Consumer {uuid} holds nothing of this machine."
            yield Violation(ViolationCode.CONSUMER_UNKNOWN, message, consumer=uuid)


def uuid_for(parent: ProviderId, name: str) -> ProviderId:
    """Return the UUID of a child that a machine's plan creates.

    It follows from the parent and the name, so a machine cannot take UUIDs that others need.
    """
    return ProviderId(str(uuid5(UUID(parent), name)))


def _named(plan: ReshapePlan, own: set[ProviderId], root: str) -> Iterator[Violation]:
    """Yield what is wrong with the places, UUIDs and names of new and renamed providers."""
    created = {new.uuid for new in plan.create}
    for new in plan.create:
        if new.parent is None:
            message = (
                f"Provider {new.uuid} would be a root: the plan of a machine creates children."
            )
            yield Violation(ViolationCode.NOT_OWN, message, provider=new.uuid)
        elif (new.parent in own or new.parent in created) and (
            new.uuid != (expected := uuid_for(new.parent, new.name))
        ):
            message = (
                f"The UUID of the new child '{new.name}' must be {expected}, not {new.uuid}: the"
                f" version 5 UUID of its name in the namespace {new.parent}."
            )
            yield Violation(ViolationCode.NOT_OWN, message, provider=new.uuid)
    names = {new.uuid: new.name for new in plan.create} | dict(plan.rename)
    for uuid, name in sorted(names.items()):
        if not name.startswith(f"{root}_"):
            message = (
                f"The name of provider {uuid} must begin with {root}_, the name of its machine."
            )
            yield Violation(ViolationCode.NAME_INVALID, message, provider=uuid)


def _root(plan: ReshapePlan, root: ProviderId) -> Iterator[Violation]:
    """Yield what would change the root itself, except its inventories."""
    changes = {
        "move": root in plan.parents,
        "rename": root in plan.rename,
        "delete": root in plan.delete,
        "set the traits of": root in plan.traits,
    }
    for verb, wanted in changes.items():
        if wanted:
            message = f"Only an operator may {verb} provider {root}, the root of this machine."
            yield Violation(ViolationCode.OPERATORS_ONLY, message, provider=root)
    for uuid, parent in sorted(plan.parents.items()):
        if parent is None:
            message = f"Provider {uuid} would leave the tree of this machine."
            yield Violation(ViolationCode.NOT_OWN, message, provider=uuid)


def _moved_along(facts: Facts, plan: ReshapePlan, machine: Machine) -> Iterator[Violation]:
    """Yield providers of other agents below those that get another parent."""
    tops = [facts.providers[uuid] for uuid in plan.parents if uuid in facts.providers]
    for top in sorted(tops, key=lambda one: one.uuid):
        for one in subtree_of(facts, top):
            if one.agent not in (None, machine.agent):
                message = f"Provider {one.uuid}, which another agent has, would move along."
                yield Violation(ViolationCode.NOT_OWN, message, provider=one.uuid)


def _operators_only(facts: Facts, plan: ReshapePlan) -> Iterator[Violation]:
    members = {
        "release": plan.release,
        "vacate": plan.vacate,
        "accept_drift": plan.accept_drift,
        "aggregates": plan.aggregates,
        "cross_tree": plan.cross_tree,
    }
    for name, given in members.items():
        if given:
            message = f"Only the plan of an operator may have {name}: commit it as an operator."
            yield Violation(ViolationCode.OPERATORS_ONLY, message)
    yield from _figures(plan)
    for uuid, traits in sorted(plan.traits.items()):
        if lost := facts.tags_of(uuid).traits - traits:
            message = f"Provider {uuid} would lose {min(lost)}: a machine only adds traits."
            yield Violation(ViolationCode.OPERATORS_ONLY, message, provider=uuid)
        if SHARING_TRAIT in traits - facts.tags_of(uuid).traits:
            message = f"Provider {uuid} would share what it has: only an operator may add that."
            yield Violation(ViolationCode.OPERATORS_ONLY, message, provider=uuid)
    known = [facts.providers[uuid] for uuid in touched_providers(plan) if uuid in facts.providers]
    closed = {None if one.withheld is None else one.withheld.by for one in known}
    if len(closed) > 1:
        drained = min(uuid for uuid in closed if uuid is not None)
        message = (
            f"Provider {drained} is drained, and other providers of the plan are not: only an"
            " operator may let units or providers out of it."
        )
        yield Violation(ViolationCode.OPERATORS_ONLY, message, provider=drained)


def _figures(plan: ReshapePlan) -> Iterator[Violation]:
    """Yield figures that would make more of a machine than moves do."""
    moved = {(one.provider, one.resource_class) for m in plan.moves for one in (m.source, m.target)}
    for uuid, classes in sorted(plan.inventories.items()):
        for name, figures in sorted(classes.items()):
            if (uuid, name) not in moved:
                message = f"{name} of provider {uuid} is in no move: an operator sets its figures."
                yield Violation(ViolationCode.OPERATORS_ONLY, message, uuid, name)
            elif (figures or Figures()).allocation_ratio is not None:
                message = f"Only an operator may set the ratio of {name} of provider {uuid}."
                yield Violation(ViolationCode.OPERATORS_ONLY, message, uuid, name)
