"""Splits: what moves, who stays, and what the children lack until the rest has moved."""

from collections.abc import Iterable
from typing import Any

import pytest

from moorage.client.plans.evidence import of_cells, of_class, of_devices
from moorage.client.plans.plan_error import PlanError
from moorage.client.plans.splitting import split_plan
from moorage.wire.providers import ConsumerShown, ProviderShown
from moorage.wire.reshapes import ReshapeFigures, ReshapePlan
from tests.client.plans.ledger import (
    ANN,
    BEN,
    CAT,
    GPU0,
    GPU1,
    HOST,
    OTHER,
    consumer,
    provider,
    stock,
)

CARDS = {"gpu0": {"total": 4, "uuid": GPU0}, "gpu1": {"total": 4, "uuid": GPU1}}
Guests = dict[str, dict[str, int]]


def split(
    guests: Guests,
    held: Iterable[ConsumerShown],
    *there: ProviderShown,
    host: ProviderShown | None = None,
    cards: Any = CARDS,
    **options: Any,
) -> ReshapePlan:
    """Return the plan for a host with 8 VGPU."""
    host = host or provider(HOST, "node", VGPU=stock(8))
    evidence = of_class({"children": cards, "consumers": guests}, "VGPU")
    return split_plan(host, {one.name: one for one in there}, held, evidence, **options)


def moved(plan: ReshapePlan) -> dict[str, tuple[Any, dict[str, dict[str, int]]]]:
    """Return amount and assignments by target."""
    return {move.to.provider: (move.amount, move.assign) for move in plan.moves}


TWO = [consumer(ANN, HOST={"VGPU": 2}), consumer(BEN, HOST={"VGPU": 3})]


@pytest.mark.parametrize(
    ("guests", "expected", "stay"),
    [
        pytest.param(
            {ANN: {"gpu0": 2}, BEN: {"gpu1": 3}},
            {GPU0: (4, {ANN: {GPU0: 2}}), GPU1: (4, {BEN: {GPU1: 3}})},
            [],
            id="everybody is known",
        ),
        pytest.param(
            {ANN: {"gpu0": 2}},
            {GPU0: (4, {ANN: {GPU0: 2}}), GPU1: (1, {})},
            [BEN],
            id="who stays takes units where most is free",
        ),
        pytest.param(
            {BEN: {"gpu0": 1, "gpu1": 2}},
            {GPU0: (2, {BEN: {GPU0: 1}}), GPU1: (4, {BEN: {GPU1: 2}})},
            [ANN],
            id="one guest on two cards",
        ),
        pytest.param(
            {ANN: {"gpu0": 2}, BEN: {"node": 3}},
            {GPU0: (4, {ANN: {GPU0: 2}, BEN: {HOST: 3}}), GPU1: (1, {})},
            [],
            id="evidence that somebody stays",
        ),
        pytest.param({}, {GPU0: (1, {}), GPU1: (2, {})}, [ANN, BEN], id="nobody is known"),
    ],
)
def test_amounts_leave_what_stays(guests: Guests, expected: Any, stay: list[str]) -> None:
    """What moves and what consumers keep on the source is the whole inventory."""
    plan = split(guests, TWO)
    assert moved(plan) == expected
    assert plan.stay == stay
    assert [(one.uuid, one.name, one.parent) for one in plan.create] == [
        (GPU0, "gpu0", HOST),
        (GPU1, "gpu1", HOST),
    ]
    kept = sum({ANN: 2, BEN: 3}[guest] for guest in stay)
    kept += sum(units.get("node", 0) for units in guests.values())
    assert sum(int(move.amount) for move in plan.moves) == 8 - kept


def test_the_rest_moves_by_the_same_file() -> None:
    """Who has moved is not assigned again; a card that is whole already may still get a guest."""
    host = provider(HOST, "node", VGPU=stock(3, 3, 3))
    there = [
        provider(GPU0, "gpu0", HOST, VGPU=stock(4, 0)),
        provider(GPU1, "gpu1", HOST, VGPU=stock(1, 0)),
    ]
    held = [consumer(ANN, GPU0={"VGPU": 0}), consumer(BEN, HOST={"VGPU": 3})]
    plan = split({BEN: {"gpu0": 3}}, held, *there, host=host)
    assert plan.create == []
    assert moved(plan) == {GPU0: (0, {BEN: {GPU0: 3}}), GPU1: (3, {})}
    moved_before = [consumer(ANN, GPU0={"VGPU": 2}), consumer(BEN, HOST={"VGPU": 3})]
    plan = split({ANN: {"gpu0": 2}, BEN: {"gpu1": 3}}, moved_before, *there, host=host)
    assert moved(plan) == {GPU1: (3, {BEN: {GPU1: 3}})}


def test_fit_moves_everything() -> None:
    """Consumers without evidence are placed by the server; the class is declared fungible."""
    plan = split({ANN: {"gpu0": 2}}, TWO, fit=True)
    assert moved(plan) == {GPU0: (4, {ANN: {GPU0: 2}}), GPU1: (4, {})}
    assert (plan.stay, plan.fungible) == ([], ["VGPU"])
    assert {move.policy for move in plan.moves} == {"fit"}


def test_what_children_have_besides() -> None:
    """Traits are added to those that are there; figures are set, but not the total."""
    there = provider(GPU0, "gpu0", HOST, traits=("HW_GPU_API_VULKAN",))
    cards = {
        "gpu0": {"total": 4, "traits": ["CUSTOM_A16"]},
        "gpu1": {"total": 4, "uuid": GPU1, "max_unit": 2, "reserved": 1},
    }
    plan = split({}, [], there, cards=cards, accept_drift=[CAT])
    assert plan.traits == {GPU0: ["CUSTOM_A16", "HW_GPU_API_VULKAN"]}
    assert plan.inventories == {GPU1: {"VGPU": ReshapeFigures(max_unit=2, reserved=1)}}
    assert plan.accept_drift == [CAT]
    assert [one.uuid for one in plan.create] == [GPU1]


def test_a_child_has_the_same_uuid_each_time() -> None:
    """So that a plan that is written again has the same digest."""
    cards = {"gpu0": {"total": 8}}
    one, other = (split({}, [], cards=cards).create[0].uuid for _ in range(2))
    assert one == other
    assert one not in (HOST, GPU0)


def test_an_allocation_ratio() -> None:
    """Consumers that stay keep the units that they need with the ratio, rounded up."""
    host = provider(HOST, "node", VGPU=stock(8, 9, 0, 4.0))
    plan = split({}, [consumer(ANN, HOST={"VGPU": 9})], host=host)
    assert sum(int(move.amount) for move in plan.moves) == 8 - 3


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no inventory": ({"host": provider(HOST, "node")}, "no inventory of VGPU"),
    "other totals": ({"cards": {"gpu0": {"total": 9}}}, "have 9 of VGPU in all, but node has 8"),
    "reserved": (
        {"host": provider(HOST, "node", VGPU=stock(8, 0, 2))},
        "2 of VGPU are reserved, but the children reserve 0",
    ),
    "unknown child": ({"guests": {ANN: {"gpu7": 1}}}, "uses gpu7, which is none of the children"),
    "another tree": ({"there": provider(GPU0, "gpu0", OTHER)}, "not in the tree of node"),
    "another UUID": ({"there": provider(OTHER, "gpu0", HOST)}, f"with the UUID {OTHER}"),
    "itself": ({"cards": {"node": {"total": 8}}}, "cannot be a child of itself"),
    "too little free": (
        {"guests": {ANN: {"gpu0": 4, "gpu1": 4}}, "held": [*TWO]},
        "3 of VGPU are missing for consumers that stay on node",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_together(name: str) -> None:
    """The message says where."""
    given, message = BAD[name]
    options = dict(given)
    there = [options.pop("there")] if "there" in options else []
    with pytest.raises(PlanError, match=message):
        split(options.pop("guests", {}), options.pop("held", []), *there, **options)


def test_numa_cells() -> None:
    """Several classes are split at once; who has evidence for one of them stays for the others."""
    host = provider(HOST, "node", VCPU=stock(8), MEMORY_MB=stock(4096, 0, 512))
    evidence = of_cells(
        {
            "cells": {
                "cell0": {
                    "inventories": {"VCPU": 4, "MEMORY_MB": {"total": 2048, "reserved": 512}}
                },
                "cell1": {
                    "inventories": {"VCPU": 4, "MEMORY_MB": 2048},
                    "traits": ["HW_NUMA_ROOT"],
                },
            },
            "consumers": {ANN: {"cell0": {"VCPU": 2}}},
        }
    )
    held = [consumer(ANN, HOST={"VCPU": 2, "MEMORY_MB": 1024})]
    plan = split_plan(host, {}, held, evidence)
    cell0, cell1 = (one.uuid for one in plan.create)
    assert [(move.to.class_, move.to.provider, move.amount) for move in plan.moves] == [
        ("VCPU", cell0, 4),
        ("VCPU", cell1, 4),
        ("MEMORY_MB", cell0, 2048),
        ("MEMORY_MB", cell1, 1024),
    ]
    assert plan.moves[0].assign == {ANN: {cell0: 2}}
    assert plan.stay == [ANN]
    assert plan.traits == {cell1: ["HW_NUMA_ROOT"]}


def test_pci_devices() -> None:
    """Each address is a child with the name that Nova gives it."""
    host = provider(HOST, "node", CUSTOM_PCI_10DE_1EB8=stock(2))
    evidence = of_devices(
        {
            "devices": {
                "0000:81:00.0": {"class": "CUSTOM_PCI_10DE_1EB8", "consumers": {ANN: 1}},
                "0000:82:00.0": {"class": "CUSTOM_PCI_10DE_1EB8"},
            }
        },
        "node",
    )
    plan = split_plan(host, {}, [consumer(ANN, HOST={"CUSTOM_PCI_10DE_1EB8": 1})], evidence)
    assert [one.name for one in plan.create] == ["node_0000:81:00.0", "node_0000:82:00.0"]
    first = plan.create[0].uuid
    assert [(move.amount, move.assign) for move in plan.moves] == [(1, {ANN: {first: 1}}), (1, {})]
