"""What a plan says about providers themselves: which come and go, their names, parents and tags."""

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.draining import reason_of
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import NO_TAGS
from moorage.core.ledger.reshaping.plan import (
    ReshapePlan,
    emptied_providers,
    named_consumers,
    named_providers,
)
from moorage.core.ledger.reshaping.shape import Forest, drained_now, standing_of, unknown
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Standing, Wanted
from moorage.core.ledger.traits_aggregates import without_vanished
from moorage.core.limits import RESHAPE_CONSUMERS_MAX, RESHAPE_MOVES_MAX, RESHAPE_PROVIDERS_MAX


def too_large(facts: Facts, plan: ReshapePlan) -> Iterator[Violation]:
    """Yield each limit that a plan exceeds."""
    emptied = (facts.holders.get(uuid, ()) for uuid in emptied_providers(plan))
    consumers = named_consumers(plan).union(*emptied)
    for many, most, what in (
        (len(plan.moves), RESHAPE_MOVES_MAX, "moves"),
        (len(named_providers(plan)), RESHAPE_PROVIDERS_MAX, "providers"),
        (len(consumers), RESHAPE_CONSUMERS_MAX, "consumers"),
    ):
        if many > most:
            message = f"The plan concerns {many} {what}; at most {most} can change at once."
            yield Violation(ViolationCode.TOO_LARGE, message, amount=many)


def outdated(facts: Facts, plan: ReshapePlan) -> Iterator[Violation]:
    """Yield each expected generation that is not the current one."""
    code = ViolationCode.GENERATION_CHANGED
    for uuid, expected in sorted(plan.expect.providers.items()):
        provider = facts.providers.get(uuid)
        if provider is None:
            yield unknown(uuid)
        elif provider.generation != expected:
            message = f"Provider {uuid} has generation {provider.generation}, not {expected}."
            yield Violation(code, message, uuid, amount=provider.generation)
    for owner, wished in sorted(plan.expect.consumers.items()):
        consumer = facts.consumers.get(owner)
        current = None if consumer is None else consumer.generation
        if current != wished:
            shown = ["none" if one is None else one for one in (current, wished)]
            message = f"Consumer {owner} has generation {shown[0]}, not {shown[1]}."
            yield Violation(code, message, consumer=owner, amount=current)


def unknown_consumers(facts: Facts, plan: ReshapePlan) -> Iterator[Violation]:
    """Yield each consumer that does not exist, by what names it, so that no typing error passes.

    What `assign` names is judged with its split.
    """
    for member, named in (
        ("stay", plan.stay),
        ("release", plan.release),
        ("vacate", plan.vacate.keys()),
        ("accept_drift", plan.accept_drift),
    ):
        for uuid in sorted(named - facts.consumers.keys()):
            message = f"Consumer {uuid} in {member} has no allocations."
            yield Violation(ViolationCode.CONSUMER_UNKNOWN, message, consumer=uuid)


def draft(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> Iterator[Violation]:
    """Set the wanted providers and tags; yield contradictions and what does not exist."""
    created = set[ProviderId]()
    for new in plan.create:
        if new.uuid in facts.providers or new.uuid in created:
            message = f"Provider {new.uuid} exists already, or is created twice."
            yield Violation(ViolationCode.PROVIDER_EXISTS, message, new.uuid)
        else:
            wanted.providers[new.uuid] = Standing(new.name, new.parent)
        created.add(new.uuid)
    named = named_providers(plan).union(*plan.vacate.values())
    for uuid in sorted(named - facts.providers.keys() - created):
        yield unknown(uuid)
    for uuid in sorted(plan.parents.keys() | plan.rename.keys()):
        before = wanted.providers.get(uuid) or standing_of(facts, uuid)
        if before is not None:
            name = plan.rename.get(uuid, before.name)
            after = Standing(name, plan.parents.get(uuid, before.parent))
            if after != before:
                wanted.providers[uuid] = after
    _tags(facts, plan, wanted)
    _drain(facts, plan, wanted)
    yield from _deleted(facts, plan, wanted)


def one_tree(facts: Facts, plan: ReshapePlan, forest: Forest) -> Iterator[Violation]:
    """Yield a violation if the named providers are of several trees, before and after."""
    named = named_providers(plan)
    before = {facts.providers[uuid].root for uuid in named if uuid in facts.providers}
    after = {forest.root_of(uuid) for uuid in named if forest.exists(uuid)}
    if not plan.cross_tree and len(before) > 1 and len(after) > 1:
        message = f"The plan concerns {len(before)} trees: confirm that with cross_tree."
        yield Violation(ViolationCode.OTHER_TREE, message, amount=len(before))


def _tags(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> None:
    for uuid in plan.traits.keys() | plan.aggregates.keys():
        if uuid not in facts.providers and uuid not in wanted.providers:
            continue
        before = facts.tags_of(uuid)
        traits = plan.traits.get(uuid, before.traits)
        aggregates = plan.aggregates.get(uuid, before.aggregates)
        if (traits, aggregates) != (before.traits, before.aggregates):
            reported = without_vanished(before, traits)
            wanted.tags[uuid] = replace(
                before, traits=traits, aggregates=aggregates, reported=reported
            )


def _drain(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> None:
    """Set which providers are drained; who is drained already stays so, for its own reason."""
    for uuid, words in plan.drain.items():
        exists = uuid in facts.providers or uuid in wanted.providers
        if exists and uuid not in plan.delete and drained_now(facts, uuid) is None:
            wanted.drained[uuid] = reason_of(words)


def _deleted(facts: Facts, plan: ReshapePlan, wanted: Wanted) -> Iterator[Violation]:
    kept = {move.target.provider for move in plan.moves} | {new.uuid for new in plan.create}
    kept.update(plan.parents, plan.rename, plan.traits, plan.aggregates, plan.drain)
    kept.update(uuid for uuid, given in plan.inventories.items() if any(given.values()))
    for uuid in sorted(plan.delete):
        if uuid in kept:
            message = f"The plan deletes provider {uuid}, and also changes it."
            yield Violation(ViolationCode.PROVIDER_DELETED, message, uuid)
        if uuid in facts.providers:
            wanted.providers[uuid] = None
            if facts.tags_of(uuid).traits or facts.tags_of(uuid).aggregates:
                wanted.tags[uuid] = NO_TAGS
