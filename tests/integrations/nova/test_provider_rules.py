"""The rules about providers and nodes of Ironic's: each finding, by the facts of both sides."""

from typing import Any

import pytest

from moorage.integrations.nova import node_rules
from moorage.integrations.nova.findings import Finding, Unclear
from moorage.integrations.nova.provider_rules import Hosts, wrongs
from moorage.wire.providers import ProviderShown
from tests.integrations.nova.cases import (
    DEAD,
    HOME,
    METAL,
    NEW,
    NOW,
    OTHER,
    U,
    compute,
    held,
    inventory,
    metal,
    provider,
    providers,
    server,
    service,
)

BOTH = (service(HOME), service(OTHER))
EMPTY: dict[str, Any] = {"parent": HOME, "root": HOME, "inventories": {}}
DISABLED = ["COMPUTE_NODE", "COMPUTE_STATUS_DISABLED"]

Case = tuple[str, list[ProviderShown], Any, list[tuple[str, tuple[str, ...]]]]
"""The root, what else the ledger has, the services, and what is found with what it deletes."""

CASES: dict[str, Case] = {
    "fine": (HOME, [], BOTH, []),
    "dead": (DEAD, [], BOTH, [("dead_provider", (DEAD,))]),
    "dead with a child": (
        DEAD,
        [provider("below", parent=DEAD, root=DEAD)],
        BOTH,
        [("dead_provider", ("below", DEAD))],
    ),
    "dead and used": (
        DEAD,
        [compute(DEAD, inventories={"VCPU": inventory(used=1)})],
        BOTH,
        [("dead_provider", ())],
    ),
    "its service is there": (DEAD, [], (*BOTH, service("dead")), [("unclear", ())]),
    "a cell is away": (DEAD, [], (*BOTH, service("x", is_unknown=True)), [("unclear", ())]),
    "a node of Ironic's": (METAL, [], BOTH, [("unclear", ())]),
    "no compute node": ("ceph", [], BOTH, []),
    "over capacity": (
        HOME,
        [compute(HOME, inventories={"VCPU": inventory(8, 7, reserved=2)})],
        BOTH,
        [("over_capacity", ())],
    ),
    "full by its ratio": (
        HOME,
        [compute(HOME, inventories={"VCPU": inventory(8, 16, allocation_ratio=2.0)})],
        BOTH,
        [],
    ),
    "a child over capacity": (
        HOME,
        [provider("c", parent=HOME, root=HOME, inventories={"VGPU": inventory(1, 2)})],
        BOTH,
        [("over_capacity", ())],
    ),
    "disabled without a reason": (
        HOME,
        [compute(HOME, traits=DISABLED)],
        BOTH,
        [("trait_without_owner", ())],
    ),
    "disabled": (
        HOME,
        [compute(HOME, traits=DISABLED)],
        (service(HOME, is_enabled=False), service(OTHER)),
        [],
    ),
    "enabled, but down": (
        HOME,
        [compute(HOME, traits=DISABLED)],
        (service(HOME, is_up=False), service(OTHER)),
        [],
    ),
    "an empty child": (
        HOME,
        [provider("e", **EMPTY)],
        BOTH,
        [("child_without_evidence", ("e",))],
    ),
    "a new child": (HOME, [provider("e", **EMPTY, updated_at=NEW)], BOTH, []),
    "a child with traits": (HOME, [provider("e", **{**EMPTY, "traits": ["HW_X"]})], BOTH, []),
    "a child of an agent": (HOME, [provider("e", **EMPTY, agent="a1")], BOTH, []),
    "a child with children": (
        HOME,
        [provider("e", **EMPTY), provider("f", parent="e", root=HOME)],
        BOTH,
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_providers(name: str) -> None:
    """Each tree has just these findings."""
    root, more, services, expected = CASES[name]
    hosts = Hosts({one.host: one for one in services})
    found = wrongs(root, providers(*more), hosts, NOW)
    shown = [
        ("unclear", ()) if isinstance(one, Unclear) else (one.code, one.delete) for one in found
    ]
    assert shown == expected
    assert all(not isinstance(one, Finding) or not one.release for one in found)


def test_a_node_that_ironic_has_is_not_dead() -> None:
    """A provider that looks like a node of Ironic's is dead only if Ironic does not have it."""
    known = providers(metal(inventories={"CUSTOM_BAREMETAL": inventory(1, 1, reserved=1)}))
    hosts = {one.host: one for one in BOTH}
    (found,) = wrongs(METAL, known, Hosts(hosts, {METAL}), NOW)
    assert isinstance(found, Unclear)
    (found,) = wrongs(METAL, known, Hosts(hosts, ()), NOW)
    assert isinstance(found, Finding) and found.code == "dead_provider"


def node(**more: Any) -> dict[str, Any]:
    """Return a node that is free."""
    members: dict[str, Any] = {
        **{"uuid": METAL, "name": "rack-1", "resource_class": "baremetal", "traits": []},
        **{"maintenance": False, "power_state": "power off", "provision_state": "available"},
        **{"instance_uuid": None},
    }
    return {**members, **more}


def test_ghosts_and_nodes_without_a_provider() -> None:
    """404 makes a ghost; a node needs a provider if somebody could be placed on it."""
    ghost = node_rules.ghost_node(metal(), None)
    assert ghost is not None and ghost.code == "ghost_node" and not ghost.is_healable
    assert node_rules.ghost_node(metal(), node()) is None
    lacking = node_rules.node_without_provider(node(), None)
    assert lacking is not None and lacking.host == "rack-1"
    assert node_rules.node_without_provider(node(), metal()) is None
    for members in ({"resource_class": None}, {"maintenance": True}, {"instance_uuid": U}):
        assert node_rules.node_without_provider(node(**members), None) is None


def test_traits_of_nodes() -> None:
    """A custom trait belongs to the node or to a reporter; the others are nova's own."""
    root = metal(
        traits=["COMPUTE_NODE", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"], reported={"g": ["CUSTOM_C"]}
    )
    found = node_rules.node_traits(root, node(traits=["CUSTOM_A"]))
    assert found is not None and found.message.endswith(" has CUSTOM_B")
    assert node_rules.node_traits(root, node(traits=["CUSTOM_A", "CUSTOM_B"])) is None


ON_METAL = {METAL: {"CUSTOM_BAREMETAL": 1}}
HERE = server(host="metal-service", node=METAL)


@pytest.mark.parametrize(
    ("named", "consumers", "servers", "wrong"),
    [
        (U, [held(ON_METAL)], [HERE], False),
        (None, [], [], False),
        (U, [held(ON_METAL)], [], True),
        (None, [], [HERE], True),
        ("x", [held(ON_METAL)], [HERE], True),
        (U, [], [server(node="elsewhere")], True),
        (U, [held(ON_METAL)], [server(node=METAL, task_state="spawning")], False),
        (U, [held(ON_METAL)], None, False),
        ("x", [held(ON_METAL)], None, True),
        (None, [held(ON_METAL)], None, True),
        (None, [], None, False),
    ],
)
def test_instances(named: str | None, consumers: Any, servers: Any, wrong: bool) -> None:
    """Ironic must name the server that Nova has there; without Nova, that of the ledger."""
    found = node_rules.instance_disagrees(
        metal(), node(instance_uuid=named), consumers, servers, NOW
    )
    assert (found is not None) == wrong
    assert found is None or (found.code == "instance_disagrees" and not found.is_healable)


def test_a_claim_that_is_new() -> None:
    """A server is claimed before Ironic's node names it: that is no disagreement."""
    found = node_rules.instance_disagrees(
        metal(updated_at=NEW), node(), [held(ON_METAL)], None, NOW
    )
    assert found is None
