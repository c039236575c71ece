"""Facts with holders, and the shortest way to plan, commit and undo on them."""

from collections.abc import Mapping

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts, Keys
from moorage.core.ledger.model import Consumer, Inventory
from moorage.core.ledger.reshaping import inverse, plan
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.plan import Move, NewProvider, Place, Policy, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned, plan_reshape, plan_undo
from tests.core.ledger.build import NOW, THEN, add_class, add_provider, facts, provider_id

R, A, B, C, D = (provider_id(n) for n in range(1, 6))
VGPU, VF, BANDWIDTH = "CUSTOM_VGPU", "CUSTOM_VF", "CUSTOM_BANDWIDTH"

Amounts = Mapping[ProviderId, Mapping[str, int]]


def hold(known: Facts) -> None:
    """Make the holders of all providers known, as the store does for those that a plan names."""
    known.holders.clear()
    for uuid in known.providers:
        known.holders[uuid] = set()
    for consumer in known.consumers.values():
        for uuid in consumer.allocations:
            known.holders.setdefault(uuid, set()).add(consumer.uuid)


def claim(known: Facts, uuid: ConsumerId, held: Amounts) -> None:
    """Let a consumer have these allocations, whatever it had before."""
    before = known.consumers.get(uuid)
    generation = 1 if before is None else before.generation + 1
    after = {provider: dict(amounts) for provider, amounts in held.items()}
    consumer = Consumer(uuid, generation, "project", "user", None, after, THEN, THEN)
    known.consumers.pop(uuid, None)
    if after:
        known.consumers[uuid] = consumer
    recount(known)
    hold(known)


def recount(known: Facts) -> None:
    """Set the usage of all inventories to what consumers have there."""
    for uuid, offered in known.inventories.items():
        for name, held in list(offered.items()):
            used = sum(
                one.allocations.get(uuid, {}).get(name, 0) for one in known.consumers.values()
            )
            offered[name] = Inventory(
                held.total,
                held.reserved,
                held.min_unit,
                held.max_unit,
                held.step_size,
                held.allocation_ratio,
                held.offered,
                held.withheld,
                used,
                held.created_at,
                held.updated_at,
            )


def host() -> Facts:
    """Return a compute node with everything of its three GPUs on the root."""
    known = facts()
    for name in (VGPU, VF, BANDWIDTH):
        add_class(known, name)
    offer = {
        "VCPU": Inventory(16, allocation_ratio=4.0),
        VGPU: Inventory(24),
        VF: Inventory(12),
        BANDWIDTH: Inventory(30_000, step_size=100),
    }
    add_provider(known, R, name="compute-1", offer=offer)
    hold(known)
    return known


def move(
    source: tuple[ProviderId, str],
    target: tuple[ProviderId, str],
    amount: int | None = None,
    policy: Policy = Policy.EXPLICIT,
    **assign: Mapping[ProviderId, int],
) -> Move:
    """Return a move; consumers are named by keyword, with _ for -."""
    by_consumer = {ConsumerId(name.replace("_", "-")): to for name, to in assign.items()}
    return Move(Place(*source), Place(*target), amount, by_consumer, policy)


def children(*uuids: ProviderId) -> tuple[NewProvider, ...]:
    """Return new providers below the root."""
    return tuple(NewProvider(uuid, f"gpu-{uuid[:8]}", R) for uuid in uuids)


def loaded(known: Facts, keys: Keys) -> Facts:
    """Return only what the store loads for these keys."""
    some = Facts(known.standard_classes, known.standard_traits, keys)
    some.holders = {uuid: set(known.holders.get(uuid, ())) for uuid in keys.holders}
    owners = keys.consumers.union(*some.holders.values())
    some.consumers = {uuid: one for uuid, one in known.consumers.items() if uuid in owners}
    roots = {known.providers[uuid].root for uuid in keys.trees & known.providers.keys()}
    trees = {uuid for uuid, one in known.providers.items() if one.root in roots}
    wanted = keys.providers | keys.tags | trees
    wanted |= {known.names[name] for name in keys.names & known.names.keys()}
    for consumer in some.consumers.values():
        wanted |= consumer.allocations.keys()
    for uuid in sorted(wanted & known.providers.keys()):
        one = some.providers[uuid] = known.providers[uuid]
        some.names[one.name] = uuid
        some.inventories[uuid] = dict(known.inventories_of(uuid))
    for uuid in trees:
        some.children.setdefault(uuid, set())
        above = known.providers[uuid].parent
        if above is not None:
            some.children.setdefault(above, set()).add(uuid)
    some.tags = {uuid: tags for uuid, tags in known.tags.items() if uuid in keys.tags}
    some.classes = {name: one for name, one in known.classes.items() if name in keys.classes}
    some.traits = {name: one for name, one in known.traits.items() if name in keys.traits}
    return some


def planned(known: Facts, wish: ReshapePlan, now: Instant = NOW) -> Planned:
    """Plan on what the plan's keys load."""
    return plan_reshape(loaded(known, plan.keys_for(wish)), now, wish)


def plan_back(known: Facts, way_back: Inverse) -> Planned:
    """Plan an undo on what its keys load."""
    return plan_undo(loaded(known, inverse.keys_for(way_back)), NOW, way_back)


def commit(known: Facts, wish: ReshapePlan) -> Inverse:
    """Plan without violations, and make it so."""
    made = planned(known, wish)
    return done(known, made)


def undo(known: Facts, way_back: Inverse) -> Inverse:
    """Undo without violations."""
    return done(known, plan_back(known, way_back))


def done(known: Facts, made: Planned) -> Inverse:
    """Apply a plan without violations."""
    assert made.violations == (), [str(one.message) for one in made.violations]
    assert made.inverse is not None
    known.apply(made.changes)
    hold(known)
    return made.inverse


def codes(made: Planned) -> list[str]:
    """Return the codes of all violations, in order."""
    return [one.code.value for one in made.violations]


def image(known: Facts) -> object:
    """Return everything that a person would compare, without generations and times."""
    return (
        {
            uuid: (one.name, one.parent, one.root, one.agent, one.withheld)
            for uuid, one in known.providers.items()
        },
        {
            (uuid, name): (
                one.total,
                one.reserved,
                one.min_unit,
                one.max_unit,
                one.step_size,
                one.allocation_ratio,
                one.offered,
                one.withheld,
                one.used,
            )
            for uuid, held in known.inventories.items()
            for name, one in held.items()
        },
        {
            uuid: (tags.traits, tags.aggregates, tags.reported)
            for uuid, tags in known.tags.items()
            if tags.traits or tags.aggregates or tags.reported
        },
        {
            uuid: (one.project_id, one.user_id, one.consumer_type, one.allocations)
            for uuid, one in known.consumers.items()
        },
    )
