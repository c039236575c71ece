"""What a node is in the ledger: every row of the rule of nova's driver.

`make reporters` compares it with nova's driver itself.
"""

from typing import Any

import pytest

from moorage.integrations.ironic.report.mapping import class_of, is_reserved, remark_of, reported
from moorage.integrations.ironic.states import BUSY

UUID = "6e0f3c52-0000-4000-8000-000000000001"
FREE: dict[str, Any] = {
    "uuid": UUID,
    "resource_class": "baremetal",
    "maintenance": False,
    "power_state": "power off",
    "provision_state": "available",
    "instance_uuid": None,
    "traits": [],
}

CLASSES = {
    "baremetal": "CUSTOM_BAREMETAL",
    "baremetal.gold": "CUSTOM_BAREMETAL_GOLD",
    "bare--metal  2": "CUSTOM_BARE_METAL_2",
    "CUSTOM_X": "CUSTOM_CUSTOM_X",
    "größe": "CUSTOM_GR_E",
    "-": "CUSTOM__",
    "": "CUSTOM_",
}


@pytest.mark.parametrize("given", CLASSES)
def test_classes(given: str) -> None:
    """Every run of other characters is one underscore; then all is in capitals."""
    assert class_of(given) == CLASSES[given]


RESERVED: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"power_state": "power on"}, False),
    ({"power_state": "rebooting"}, False),
    ({"provision_state": None}, False),
    ({"maintenance": True}, True),
    ({"power_state": "error"}, True),
    ({"power_state": None}, True),
    ({"instance_uuid": UUID}, True),
    ({"provision_state": "active", "instance_uuid": UUID}, True),
    *(({"provision_state": state}, True) for state in sorted(BUSY)),
    *(({"provision_state": state}, True) for state in ("enroll", "manageable", "active")),
    *(({"provision_state": state}, True) for state in ("clean failed", "deploy failed", "error")),
]


@pytest.mark.parametrize(("changed", "expected"), RESERVED)
def test_reserved(changed: dict[str, Any], expected: bool) -> None:
    """A node is offered only if it is available, with power, and nobody's."""
    node = {**FREE, **changed}
    assert is_reserved(node) is expected
    report = reported(node)
    assert report is not None and report.inventories is not None
    (inventory,) = report.inventories.values()
    assert inventory.reserved == int(expected)


def test_a_whole_report() -> None:
    """One class with one unit; UUID and name are the node's; aggregates are not Ironic's."""
    report = reported({**FREE, "traits": ["CUSTOM_B", "CUSTOM_A"], "name": "rack-7"})
    assert report is not None and report.inventories is not None
    assert (report.uuid, report.name, report.seen) == (UUID, UUID, "present")
    (inventory,) = report.inventories.values()
    assert (inventory.total, inventory.min_unit, inventory.max_unit) == (1, 1, 1)
    assert (inventory.step_size, inventory.allocation_ratio) == (1, 1.0)
    assert report.traits == ["CUSTOM_A", "CUSTOM_B"]
    assert report.aggregates is None


def test_without_resource_class() -> None:
    """Nothing is reported of such a node, as nova skips it."""
    assert reported({**FREE, "resource_class": None}) is None


def test_novas_trait() -> None:
    """A node that has it in Ironic is reported without it, and with a remark."""
    node = {**FREE, "traits": ["OWNER_NOVA", "CUSTOM_A"]}
    report = reported(node)
    assert report is not None
    assert report.traits == ["CUSTOM_A"]
    assert "OWNER_NOVA is left out" in str(remark_of(node))
    assert remark_of(FREE) is None
