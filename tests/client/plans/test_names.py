"""Classes and hosts that get other names: the plans name no consumer."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.client.plans.class_renaming import rename_class_plan
from moorage.client.plans.host_moving import (
    new_host_plan,
    rename_host_plan,
    replaced_host_plan,
)
from moorage.client.plans.plan_error import PlanError
from moorage.wire.reshapes import ReshapeFigures, ReshapePlan
from tests.client.plans.ledger import GPU0, GPU1, HOST, OTHER, provider, stock, uuid

NODE = provider(HOST, "node", None, None, ("T",), ("a",), VCPU=stock(8, 2, 1), DISK_GB=stock(10))
CARD = provider(GPU0, "node_gpu0", HOST, VGPU=stock(4))
PART = provider(GPU1, "node_gpu0.1", GPU0, HOST)
ODD = provider(uuid(9), "node1", HOST)
TREE = [NODE, CARD, PART, ODD]


def moves(plan: ReshapePlan) -> list[tuple[str, str, str, str, object]]:
    """Return the moves of a plan; each is with policy fit, and its class is fungible."""
    assert {move.policy for move in plan.moves} <= {"fit"}
    assert {move.from_.class_ for move in plan.moves} <= {*plan.fungible}
    return [
        (move.from_.provider, move.from_.class_, move.to.provider, move.to.class_, move.amount)
        for move in plan.moves
    ]


def test_a_class_is_renamed_wherever_it_is() -> None:
    """With what is reserved of it; in several trees, the plan says so."""
    other = provider(OTHER, "other", VCPU=stock(4))
    plan = rename_class_plan("VCPU", "PCPU", [*TREE, other])
    assert moves(plan) == [
        (HOST, "VCPU", HOST, "PCPU", "all"),
        (OTHER, "VCPU", OTHER, "PCPU", "all"),
    ]
    assert plan.inventories == {HOST: {"PCPU": ReshapeFigures(reserved=1)}}
    assert plan.cross_tree
    assert not rename_class_plan("VCPU", "PCPU", TREE).cross_tree


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("VCPU", "VCPU", "has this name already"),
        ("PCPU", "VCPU", "no provider has an inventory of PCPU"),
        ("VCPU", "DISK_GB", "node has both VCPU and DISK_GB"),
    ],
)
def test_classes_that_cannot_be_renamed(old: str, new: str, message: str) -> None:
    """The message says why."""
    with pytest.raises(PlanError, match=message):
        rename_class_plan(old, new, TREE)


def test_a_host_gets_another_name() -> None:
    """So does what is named after it, at any depth; a name that only begins alike stays."""
    plan = rename_host_plan(NODE, "rack7", TREE)
    assert plan == ReshapePlan(rename={HOST: "rack7", GPU0: "rack7_gpu0", GPU1: "rack7_gpu0.1"})
    with pytest.raises(PlanError, match="has this name already"):
        rename_host_plan(NODE, "node", TREE)


def test_a_host_gets_another_uuid() -> None:
    """A new provider gets everything, and only direct children a new parent."""
    plan = new_host_plan(NODE, OTHER, None, TREE)
    (made,) = plan.create
    assert (made.uuid, made.name, made.parent) == (OTHER, "node", None)
    assert moves(plan) == [
        (HOST, "DISK_GB", OTHER, "DISK_GB", "all"),
        (HOST, "VCPU", OTHER, "VCPU", "all"),
    ]
    assert plan.inventories == {OTHER: {"VCPU": ReshapeFigures(reserved=1)}}
    assert plan.parents == {GPU0: OTHER, uuid(9): OTHER}
    assert (plan.traits, plan.aggregates) == ({OTHER: ["T"]}, {OTHER: ["a"]})
    assert (plan.delete, plan.rename) == ([HOST], {})
    assert new_host_plan(NODE, OTHER, "n2", TREE).rename[GPU0] == "n2_gpu0"


def test_a_host_is_replaced_by_one_that_exists() -> None:
    """Its own inventories stay as they are: no unit moves to them, only the allocations."""
    new = provider(OTHER, "fresh", None, None, ("U",), (), VCPU=stock(16))
    plan = replaced_host_plan(NODE, new, None, [*TREE, new])
    assert moves(plan) == [
        (HOST, "DISK_GB", OTHER, "DISK_GB", "all"),
        (HOST, "VCPU", OTHER, "VCPU", 0),
    ]
    assert plan.inventories == {}
    assert plan.traits == {OTHER: ["T", "U"]}
    assert plan.rename == {GPU0: "fresh_gpu0", GPU1: "fresh_gpu0.1"}
    assert (plan.delete, plan.cross_tree) == ([HOST], True)
    named = replaced_host_plan(NODE, new, "node", [*TREE, new])
    assert named.rename == {OTHER: "node"}


@pytest.mark.parametrize(
    ("withheld", "expected"),
    [
        (None, {}),
        ("silent", {}),
        ("drained", {OTHER: ""}),
        ("drained: broken fan: 3", {OTHER: "broken fan: 3"}),
    ],
)
def test_the_successor_of_a_drained_host_is_drained(withheld: Any, expected: Any) -> None:
    """For the same reason, unless what is above it is withheld and so closes it anyway."""
    old = replace(NODE, withheld=withheld)
    new = provider(OTHER, "fresh", VCPU=stock(16))
    assert new_host_plan(old, OTHER, None, [old, *TREE[1:]]).drain == expected
    assert replaced_host_plan(old, new, None, [old, *TREE[1:], new]).drain == expected
    above = replace(provider(uuid(8), "rack"), withheld=withheld)
    below, beside = replace(old, parent=above.uuid), replace(new, parent=above.uuid)
    assert new_host_plan(below, OTHER, None, [above, below]).drain == {}
    assert replaced_host_plan(below, beside, None, [above, below, beside]).drain == {}


@pytest.mark.parametrize(("old", "new"), [(NODE, NODE), (NODE, CARD), (CARD, NODE)])
def test_hosts_that_cannot_be_replaced(old: Any, new: Any) -> None:
    """Neither by themselves nor within their own tree."""
    with pytest.raises(PlanError, match=r"own place|is below"):
        replaced_host_plan(old, new, None, TREE)
