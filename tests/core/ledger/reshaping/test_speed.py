"""The cost of large plans, in processor time of this machine."""

from collections import Counter
from time import process_time

from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Consumer, Inventory
from moorage.core.ledger.reshaping.plan import Move, Place, Policy, ReshapePlan
from moorage.core.ledger.reshaping.planning import plan_reshape, plan_undo
from moorage.core.limits import RESHAPE_CONSUMERS_MAX, RESHAPE_MOVES_MAX
from tests.core.ledger.build import NOW, THEN, add_class, consumer_id, provider_id
from tests.core.ledger.reshaping.worlds import VGPU, A, R, children, hold, host, recount

CHILDREN = [provider_id(100 + n) for n in range(8)]
SECONDS_MAX = 3.0
"""On an idle machine it is about 0.4 s; shared cores take longer."""


def crowded() -> Facts:
    """Return a host with as many consumers as one plan may concern."""
    known = host()
    known.inventories[R] = {VGPU: Inventory(24_000), "VCPU": Inventory(100_000)}
    for n in range(RESHAPE_CONSUMERS_MAX):
        uuid = consumer_id(n)
        held = {R: {VGPU: 2, "VCPU": 2}}
        known.consumers[uuid] = Consumer(uuid, 1, "project", "user", None, held, THEN, THEN)
    recount(known)
    hold(known)
    return known


def split(policy: Policy) -> ReshapePlan:
    """Return a plan that moves everybody to eight children."""
    seen = {consumer_id(n): {CHILDREN[n % 8]: 2} for n in range(RESHAPE_CONSUMERS_MAX)}
    assign = {} if policy is Policy.FIT else seen
    moves = [
        Move(Place(R, VGPU), Place(uuid, VGPU), 3_000, assign, policy) for uuid in CHILDREN[:1]
    ]
    moves += [Move(Place(R, VGPU), Place(uuid, VGPU), 3_000, {}, policy) for uuid in CHILDREN[1:]]
    alike = frozenset({VGPU})
    return ReshapePlan(create=children(*CHILDREN), moves=tuple(moves), fungible=alike)


def test_plans_of_ten_thousand_consumers_are_quick() -> None:
    """Evidence for all, a search for all, and the way back."""
    known = crowded()
    for policy in (Policy.EXPLICIT, Policy.FIT):
        began = process_time()
        made = plan_reshape(known, NOW, split(policy))
        assert process_time() - began < SECONDS_MAX
        assert made.violations == ()
        assert len(made.changes.consumers) == RESHAPE_CONSUMERS_MAX
    known.apply(made.changes)
    hold(known)
    assert made.inverse is not None
    began = process_time()
    back = plan_undo(known, NOW, made.inverse)
    assert process_time() - began < SECONDS_MAX
    assert back.violations == ()


MANY = [f"CUSTOM_KIND_{n}" for n in range(RESHAPE_MOVES_MAX)]


def varied() -> Facts:
    """Return a host with as many classes as a plan may move, and consumers on each of them."""
    known = host()
    known.inventories[R] = {name: Inventory(100) for name in MANY}
    for name in MANY:
        add_class(known, name)
    for n in range(RESHAPE_CONSUMERS_MAX):
        uuid, held = consumer_id(n), {R: {MANY[n % len(MANY)]: 2}}
        known.consumers[uuid] = Consumer(uuid, 1, "project", "user", None, held, THEN, THEN)
    sums = Counter(name for one in known.consumers.values() for name in one.allocations[R])
    known.inventories[R] = {name: Inventory(100, used=2 * sums[name]) for name in MANY}
    hold(known)
    return known


def test_a_thousand_moves_of_ten_thousand_consumers_are_quick() -> None:
    """Each move looks at its own consumers, not at all of the provider; so does each inventory that
    goes. A move to a thousand targets looks at them once.
    """
    everybody = frozenset(map(consumer_id, range(RESHAPE_CONSUMERS_MAX)))
    alike = frozenset(MANY)
    known = varied()
    moves = tuple(Move(Place(R, one), Place(A, one), None, {}, Policy.FIT) for one in MANY)
    asked = [
        (known, ReshapePlan(create=children(A), moves=moves, fungible=alike)),
        (known, ReshapePlan(delete=frozenset({R}), release=everybody)),
        (known, ReshapePlan(delete=frozenset({R}))),
    ]
    targets = [provider_id(100 + n) for n in range(RESHAPE_MOVES_MAX)]
    moves = tuple(Move(Place(R, VGPU), Place(uuid, VGPU), 24, {}, Policy.FIT) for uuid in targets)
    split_up = ReshapePlan(create=children(*targets), moves=moves, fungible=frozenset({VGPU}))
    for world, plan in (*asked, (crowded(), split_up)):
        began = process_time()
        made = plan_reshape(world, NOW, plan)
        assert process_time() - began < SECONDS_MAX
        codes = {one.code.value for one in made.violations}
        assert codes == ({"in_use"} if plan.delete and not plan.release else set())


def test_one_consumer_more_is_refused() -> None:
    """The bound is checked before anything else is read."""
    known = crowded()
    uuid = consumer_id(RESHAPE_CONSUMERS_MAX)
    known.consumers[uuid] = Consumer(uuid, 1, "p", "u", None, {R: {VGPU: 1}}, THEN, THEN)
    hold(known)
    made = plan_reshape(known, NOW, split(Policy.FIT))
    assert [one.code.value for one in made.violations] == ["too_large"]
