"""Consumers lose what they hold of providers that they vacate; undo restores it."""

from typing import Any

import pytest

from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import Generations, ReshapePlan
from tests.core.ledger.build import C1, C2, add_provider
from tests.core.ledger.reshaping.worlds import (
    VGPU,
    A,
    D,
    R,
    claim,
    codes,
    commit,
    hold,
    host,
    image,
    planned,
    undo,
)


def world() -> Facts:
    """Return the node and another root D; C1 holds units of both, C2 of the node only."""
    known = host()
    add_provider(known, A, parent=R, offer={VGPU: Inventory(8)})
    add_provider(known, D, offer={"VCPU": Inventory(8)})
    claim(known, C1, {R: {"VCPU": 2}, A: {VGPU: 1}, D: {"VCPU": 2}})
    claim(known, C2, {R: {"VCPU": 2}})
    hold(known)
    return known


def plan(**more: Any) -> ReshapePlan:
    """Return a plan by which C1 leaves D, and C2 everything."""
    vacate = {C1: frozenset({D}), C2: frozenset({R})}
    return ReshapePlan(**{"vacate": vacate, "release": frozenset({C1, C2}), **more})


def test_only_what_is_vacated_is_lost() -> None:
    """C1 keeps its units elsewhere, C2 is gone; nothing needs `cross_tree`; undo restores both."""
    known = world()
    before = image(known)
    way_back = commit(known, plan())
    assert known.consumers[C1].allocations == {R: {"VCPU": 2}, A: {VGPU: 1}}
    assert C2 not in known.consumers
    assert known.inventories[D]["VCPU"].used == 0
    assert undo(known, way_back) is not None
    assert image(known) == before


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"release": frozenset({C1})}, ["not_conserved"]),
        ({"expect": Generations(consumers={C1: 77})}, ["generation_changed"]),
    ],
)
def test_it_is_refused(more: dict[str, Any], expected: list[str]) -> None:
    """A consumer that is not in `release` keeps its units, and so does one that has changed."""
    known = world()
    before = image(known)
    assert codes(planned(known, plan(**more))) == expected
    assert image(known) == before
