"""Facts for the rules of audits: one cloud with two hosts, a storage, and a node of Ironic's."""

from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.integrations.nova.facts import Hypervisor, Migration, Server, Service
from moorage.integrations.nova.ledger_view import Held, Providers
from moorage.wire.providers import InventoryShown, ProviderShown

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
OLD, NEW = NOW - timedelta(hours=2), NOW - timedelta(minutes=1)
HOME, OTHER, DEAD, CHILD, CEPH, METAL = "home", "other", "dead", "child", "ceph", "metal"
U, M = "the-consumer", "the-migration"

FLAVOR: dict[str, Any] = {
    "vcpus": 2,
    "ram": 1024,
    "disk": 10,
    "ephemeral": 0,
    "swap": 0,
    "extra_specs": {},
}
WHOLE = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}


def inventory(total: int = 8, used: int = 0, **more: Any) -> InventoryShown:
    """Return an inventory."""
    figures: dict[str, Any] = {
        **{"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1},
        **{"allocation_ratio": 1.0, "offered": None, "used": used, "capacity": 0, "free": 0},
    }
    return InventoryShown(**{**figures, **more})


def provider(uuid: str, **more: Any) -> ProviderShown:
    """Return a root, or with `parent` and `root` a child."""
    members: dict[str, Any] = {
        **{"uuid": uuid, "name": f"{uuid}.example.org", "generation": 7, "parent": None},
        **{"root": uuid, "inventories": {"VCPU": inventory()}, "traits": [], "aggregates": []},
        **{"reported": {}, "agent": None, "withheld": None, "created_at": OLD, "updated_at": OLD},
    }
    return ProviderShown(**{**members, **more})


def compute(uuid: str, **more: Any) -> ProviderShown:
    """Return the root of a compute node."""
    return provider(uuid, **{"traits": ["COMPUTE_NODE"], **more})


def metal(**more: Any) -> ProviderShown:
    """Return the provider of a node of Ironic's."""
    inventories = {"CUSTOM_BAREMETAL": inventory(1)}
    return compute(METAL, **{"name": METAL, "inventories": inventories, **more})


def providers(*more: ProviderShown) -> Providers:
    """Return the ledger; Nova knows HOME and OTHER."""
    child = provider(CHILD, parent=HOME, root=HOME, inventories={"VGPU": inventory(4)})
    known = [compute(HOME), compute(OTHER), compute(DEAD), child, provider(CEPH), metal()]
    hypervisors = [Hypervisor(one, f"{one}.example.org", one, "qemu") for one in (HOME, OTHER)]
    return Providers(
        {one.uuid: one for one in (*known, *more)}, {one.uuid: one for one in hypervisors}
    )


def held(holdings: dict[str, dict[str, int]], type_: str | None = None, uuid: str = U) -> Held:
    """Return a consumer of generation 3."""
    return Held(uuid, 3, type_, holdings)


def server(**more: Any) -> Server:
    """Return a server that runs on HOME."""
    members: dict[str, Any] = {
        **{"uuid": U, "status": "ACTIVE", "host": HOME, "node": f"{HOME}.example.org"},
        **{"vm_state": "active", "flavor": FLAVOR},
    }
    return Server(**{**members, **more})


def migration(status: str, kind: str = "resize", **more: Any) -> Migration:
    """Return a move of the server from OTHER to HOME."""
    members: dict[str, Any] = {
        **{"uuid": M, "server": U, "kind": kind, "status": status},
        **{"source": OTHER, "source_node": "", "target": HOME, "target_node": ""},
    }
    return Migration(**{**members, **more})


def service(host: str, **more: Any) -> Service:
    """Return a service that is enabled and up."""
    return Service(**{"host": host, "is_unknown": False, "is_enabled": True, "is_up": True, **more})
