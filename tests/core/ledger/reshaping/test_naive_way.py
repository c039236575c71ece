"""The control: without plans, a move takes several calls, and claims in between see half of it."""

from collections.abc import Callable
from itertools import product

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger import allocations, inventory, providers
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import Policy, ReshapePlan
from tests.core.ledger.build import NOW, add_provider, consumer_id, facts, request
from tests.core.ledger.reshaping.worlds import A, R, children, commit, hold, move

UNITS = 4
"""What the machine really has."""

Step = Callable[[Facts], None]


def create(known: Facts) -> None:
    """First call: a child."""
    known.apply(providers.create(known, NOW, A, "gpu", R)[0])


def copy(known: Facts) -> None:
    """Second call: the child gets the inventory of the root."""
    known.apply(inventory.create(known, NOW, A, "VCPU", InventorySpec(UNITS), True)[0])


def drop(known: Facts) -> None:
    """Third call: the root loses it, or as much of it as is free if there are guests."""
    try:
        known.apply(inventory.delete(known, NOW, R, "VCPU"))
    except Error as refusal:
        assert refusal.code is Code.INVENTORY_IN_USE
        used = known.inventories[R]["VCPU"].used
        generation = known.providers[R].generation
        spec = InventorySpec(used)
        known.apply(inventory.update(known, NOW, R, "VCPU", generation, spec, True)[0])


def plan(known: Facts) -> None:
    """All of it at once: everybody who is there goes along."""
    hold(known)
    whole = move((R, "VCPU"), (A, "VCPU"), None, Policy.FIT)
    wish = ReshapePlan(create=children(A), moves=(whole,), fungible=frozenset({"VCPU"}))
    commit(known, wish)


def play(steps: tuple[Step, ...], turns: tuple[int, ...]) -> tuple[int, int]:
    """Claim one unit `turns[n]` times before step n; return units sold twice, and claims lost."""
    known = facts()
    add_provider(known, R, VCPU=Inventory(UNITS))
    sold = lost = 0
    for step, claims in zip((*steps, lambda _: None), turns, strict=True):
        for _ in range(claims):
            if claim_one(known, sold):
                sold += 1
            elif sold < UNITS:
                lost += 1
        step(known)
    return max(sold - UNITS, 0), lost


def claim_one(known: Facts, number: int) -> bool:
    """Claim one unit wherever it is offered."""
    for uuid in (R, A):
        if "VCPU" in known.inventories_of(uuid):
            try:
                asked = request(consumer_id(100 + number), {uuid: {"VCPU": 1}})
                known.apply(allocations.replace_for(known, NOW, [asked]))
            except Error as refusal:
                assert refusal.code is Code.CAPACITY_EXCEEDED
            else:
                return True
    return False


def total(*steps: Step) -> tuple[int, int]:
    """Return all units sold twice, and all claims lost, over every order of claims and steps."""
    results = [play(steps, turns) for turns in product(range(4), repeat=len(steps) + 1)]
    return sum(twice for twice, _ in results), sum(lost for _, lost in results)


def test_a_plan_sells_nothing_twice_and_loses_nothing() -> None:
    """Claims before and after the plan get what there is, and no more."""
    assert total(plan) == (0, 0)


@pytest.mark.parametrize(("steps", "which"), [((create, copy, drop), 0), ((drop, create, copy), 1)])
def test_three_calls_sell_twice_or_lose_capacity(steps: tuple[Step, ...], which: int) -> None:
    """Copied first, units are sold twice; dropped first, free units cannot be claimed."""
    assert total(*steps)[which] > 50
