"""Maps Ironic's nodes to the ledger by the rule of nova's driver, so that both say the same.

Source: nova 34, `nova/virt/ironic/driver.py`, `update_provider_tree` and what it calls. Pure.
"""

import re
from typing import Final
from uuid import UUID

from moorage.integrations.ironic.nodes import Node
from moorage.wire.ledger import InventoryWanted
from moorage.wire.reporting import NodeReported

FIELDS: Final = (
    *("uuid", "resource_class", "maintenance", "power_state", "provision_state"),
    *("instance_uuid", "traits"),
)
"""The fields that are read of each node."""

AVAILABLE: Final = ("available", None)
"""The provision states in which a node is offered; the API before 1.2 has no name for it."""

NO_POWER: Final = ("error", None)
"""The power states in which a node is not offered."""


OWNER_NOVA: Final = "OWNER_NOVA"
"""The trait by which nova marks its providers. One that a node itself has is not reported: it would
say that nova writes the provider, for ever."""

TEXTS: Final = ("resource_class", "power_state", "provision_state", "instance_uuid")
TEXT_LENGTH_MAX: Final = 240
"""Characters of one of these, above what Ironic permits: a class in the ledger has up to 255."""

TRAIT: Final = re.compile("[A-Z0-9_]{1,255}")
TRAITS_MAX: Final = 100
"""Traits of one node; Ironic permits 50."""


class UnreadableNodeError(ValueError):
    """A node is not as Ironic describes one: nothing is reported of it. The message says why."""


def class_of(resource_class: str) -> str:
    """Return the resource class in the ledger: `baremetal.gold` is `CUSTOM_BAREMETAL_GOLD`."""
    return "CUSTOM_" + re.sub("[^0-9A-Za-z]+", "_", resource_class).upper()


def is_reserved(node: Node) -> bool:
    """Return whether nobody can be placed on a node, although it may be free."""
    return bool(
        node.get("maintenance")
        or node.get("power_state") in NO_POWER
        or node.get("provision_state") not in AVAILABLE
        or node.get("instance_uuid") is not None
    )


def uuid_of(text: str) -> str | None:
    """Return a UUID in lower case with dashes; None: a text is no UUID."""
    try:
        return str(UUID(text))
    except ValueError:
        return None


def reported(node: Node) -> NodeReported | None:
    """Return what to report of a node; None: nothing, as it has no resource class.

    Aggregates are not Ironic's, so that they stay as they are, and `OWNER_NOVA` is nova's.

    Raises UnreadableNodeError.
    """
    _check(node)
    resource_class = node.get("resource_class")
    if resource_class is None:
        return None
    uuid = str(node["uuid"])
    inventory = InventoryWanted(
        total=1, reserved=int(is_reserved(node)), min_unit=1, max_unit=1, step_size=1
    )
    return NodeReported(
        uuid=uuid,
        name=uuid,
        inventories={class_of(resource_class): inventory},
        traits=sorted({*(node.get("traits") or ())} - {OWNER_NOVA}),
    )


def _check(node: Node) -> None:
    """Raise UnreadableNodeError if a node is not as Ironic describes one."""
    if uuid_of(str(node["uuid"])) != node["uuid"]:
        raise UnreadableNodeError("its uuid is not a UUID in lower case with dashes")
    if not isinstance(node.get("maintenance"), bool | None):
        raise UnreadableNodeError("its maintenance is neither true nor false")
    for name in TEXTS:
        value = node.get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= TEXT_LENGTH_MAX):
            raise UnreadableNodeError(
                f"its {name} is not a string of at most {TEXT_LENGTH_MAX} characters"
            )
    traits = node.get("traits") or []
    if not isinstance(traits, list) or len(traits) > TRAITS_MAX:
        raise UnreadableNodeError(f"its traits are not a list of at most {TRAITS_MAX}")
    if not all(isinstance(one, str) and TRAIT.fullmatch(one) for one in traits):
        raise UnreadableNodeError("one of its traits has other characters than A-Z, 0-9 and _")


def remark_of(node: Node) -> str | None:
    """Return what people should know of the report of a node; None: nothing."""
    if OWNER_NOVA in (node.get("traits") or ()):
        return f"its trait {OWNER_NOVA} is left out, because only nova sets it: remove it in Ironic"
    return None
