"""What the double's answers consist of: nodes, links, versions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.ironic_double import errors
from tests.support.ironic_double.fleet import HOST, Node, timestamp

LEAST, NEWEST = 1, 115
"""Minor versions of the API."""

USUAL_FIELDS: Final = (
    *("instance_uuid", "maintenance", "power_state", "provision_state", "uuid", "name"),
)
DEFAULTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("bios_interface", "boot_interface", "deploy_interface"), "fake"),
    **dict.fromkeys(("firmware_interface", "inspect_interface", "management_interface"), "fake"),
    **dict.fromkeys(("power_interface", "rescue_interface", "vendor_interface"), "fake"),
    **dict.fromkeys(("network_interface", "storage_interface"), "noop"),
    **{"console_interface": "no-console", "raid_interface": "no-raid", "conductor_group": ""},
    **dict.fromkeys(("console_enabled", "disable_power_off", "maintenance"), False),
    **dict.fromkeys(("protected", "retired"), False),
    **{name: {} for name in ("clean_step", "deploy_step", "service_step", "driver_info", "extra")},
    **{name: {} for name in ("driver_internal_info", "instance_info", "network_data")},
    **{name: {} for name in ("properties", "raid_config", "target_raid_config")},
    **dict.fromkeys(("allocation_uuid", "automated_clean", "boot_mode", "chassis_uuid")),
    **dict.fromkeys(("description", "fault", "inspection_finished_at", "inspection_started_at")),
    **dict.fromkeys(("instance_name", "instance_uuid", "lessee", "maintenance_reason", "name")),
    **dict.fromkeys(("owner", "parent_node", "protected_reason", "resource_class", "shard")),
    **dict.fromkeys(("retired_reason", "secure_boot", "target_power_state")),
    **{"traits": [], "health": None},
}
SINCE: Final = {
    "driver_internal_info": 3,
    "name": 5,
    **dict.fromkeys(("inspection_finished_at", "inspection_started_at"), 6),
    "clean_step": 7,
    **dict.fromkeys(("raid_config", "target_raid_config"), 12),
    "network_interface": 20,
    "resource_class": 21,
    **dict.fromkeys(("boot_interface", "console_interface", "deploy_interface"), 31),
    **dict.fromkeys(("inspect_interface", "management_interface", "power_interface"), 31),
    **dict.fromkeys(("raid_interface", "vendor_interface"), 31),
    **{"storage_interface": 33, "traits": 37, "rescue_interface": 38, "bios_interface": 40},
    **{"fault": 42, "deploy_step": 44, "conductor_group": 46, "automated_clean": 47},
    **{"protected": 48, "protected_reason": 48, "conductor": 49, "owner": 50, "description": 51},
    **{"allocation_uuid": 52, "retired": 61, "retired_reason": 61, "lessee": 65},
    **{"network_data": 66, "boot_mode": 75, "secure_boot": 75, "shard": 82, "parent_node": 83},
    **{"firmware_interface": 86, "service_step": 87, "disable_power_off": 95},
    **{"instance_name": 104, "health": 109},
}
"""The first minor version of the API in which a field is shown; the others always are."""

STATE_FIELDS: Final = (
    *("console_enabled", "last_error", "power_state", "provision_state", "target_power_state"),
    *("target_provision_state", "provision_updated_at", "raid_config", "target_raid_config"),
    *("boot_mode", "secure_boot"),
)
PATCHABLE: Final = (
    *("automated_clean", "bios_interface", "boot_interface", "chassis_uuid", "conductor_group"),
    *("console_interface", "deploy_interface", "description", "disable_power_off", "driver"),
    *("driver_info", "extra", "inspect_interface", "instance_info", "instance_name"),
    *("instance_uuid", "lessee", "maintenance", "management_interface", "name", "network_data"),
    *("network_interface", "owner", "power_interface", "properties", "protected"),
    *("protected_reason", "raid_interface", "rescue_interface", "resource_class", "retired"),
    *("retired_reason", "shard", "storage_interface", "vendor_interface", "parent_node"),
    *("firmware_interface",),
)
_ROOMS: Final = (
    *("chassis", "nodes", "ports", "drivers", "portgroups", "volume", "lookup", "heartbeat"),
    *("conductors", "allocations", "events", "deploy_templates", "shards", "runbooks"),
    *("continue_inspection",),
)
_ROOMS_OF_NODE: Final = {"ports": 1, "states": 14, "portgroups": 24, "volume": 32}
_UNSUPPORTED: Final = ("console", "raid")
_INTERFACES: Final = (
    *("bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network"),
    *("power", "raid", "rescue", "storage"),
)


def links(base: str, *parts: str) -> list[dict[str, str]]:
    """Return the two links of a thing; `base` is the address by which the client reaches Ironic."""
    place = "/".join(parts)
    return [
        {"href": f"{base}/v1/{place}", "rel": "self"},
        {"href": f"{base}/{place}", "rel": "bookmark"},
    ]


def node_view(
    node: Node, base: str, minor: int, fields: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return a node as an answer has it; `fields` None: all of it. Raises Refused."""
    state = node.state
    # Old versions of the API have no names for these.
    state = {"inspect wait": "inspecting"}.get(state, state) if minor < 39 else state
    found = {
        **DEFAULTS,
        **node.members,
        "uuid": node.uuid,
        "conductor": HOST,
        "created_at": timestamp(node.created),
        "updated_at": timestamp(node.updated),
        "provision_updated_at": timestamp(node.entered),
        "provision_state": None if state == "available" and minor < 2 else state,
        "target_provision_state": node.goal,
        "reservation": node.reservation,
        "last_error": node.error,
        "power_state": node.power,
    }
    if fields is None:
        rooms = [room for room, since in _ROOMS_OF_NODE.items() if since <= minor]
        found |= {room: links(base, "nodes", node.uuid, room) for room in rooms}
        fields = tuple(found)
    shown = {name: found[name] for name in fields if SINCE.get(name, 0) <= minor}
    return {**shown, "links": links(base, "nodes", node.uuid)}


def check_fields(fields: Sequence[str], minor: int) -> None:
    """Raise Refused if a field does not exist, or not in this version."""
    strange = unknown(fields, minor)
    if strange is not None:
        raise errors.fault(400, f"Field {strange} is not a valid field.")
    check_selectable(fields)


def check_selectable(fields: Sequence[str]) -> None:
    """Raise Refused if a field is in whole nodes only."""
    if (one := next((name for name in fields if name in WHOLE_ONLY), None)) is not None:
        raise errors.fault(400, f"Field {one} is not a valid field.")


def unknown(fields: Sequence[str], minor: int) -> str | None:
    """Return the first field that does not exist. Raises Refused: one is not in this version."""
    if any(SINCE.get(name, 0) > minor for name in fields):
        raise errors.not_acceptable()
    return next((name for name in fields if name not in DEFAULTS and name not in _OWN), None)


WHOLE_ONLY: Final = ("created_at", "updated_at")
_OWN: Final = frozenset(
    {"uuid", "conductor", "created_at", "updated_at", "provision_updated_at", "provision_state"}
    | {"target_provision_state", "reservation", "last_error", "power_state", "driver", "links"}
)


def states_view(node: Node, base: str, minor: int) -> dict[str, Any]:
    """Return the states of a node."""
    found = node_view(node, base, minor, STATE_FIELDS)
    del found["links"]
    return found


def validation() -> dict[str, Any]:
    """Return what `validate` says of fake hardware."""
    reason = "Driver fake-hardware does not support {} (disabled or not implemented)."
    return {
        name: {"result": False, "reason": reason.format(name)}
        if name in _UNSUPPORTED
        else {"result": True}
        for name in _INTERFACES
    }


def versions(base: str) -> dict[str, Any]:
    """Return the document of the root."""
    return {
        "name": "OpenStack Ironic API",
        "description": "Ironic is an OpenStack project which enables the provision and management "
        "of baremetal machines.",
        "default_version": version(base),
        "versions": [version(base)],
    }


def version(base: str) -> dict[str, Any]:
    """Return the description of the only version."""
    return {
        "id": "v1",
        "links": [{"href": f"{base}/v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": f"1.{LEAST}",
        "version": f"1.{NEWEST}",
    }


def first_version(base: str) -> dict[str, Any]:
    """Return the document of `/v1`."""
    manual = "https://docs.openstack.org//ironic/latest/contributor//webapi.html"
    described = {"href": manual, "rel": "describedby", "type": "text/html"}
    return {
        "id": "v1",
        "links": [{"href": f"{base}/v1/", "rel": "self"}, described],
        "media_types": {
            "base": "application/json",
            "type": "application/vnd.openstack.ironic.v1+json",
        },
        "version": version(base),
        **{room: links(base, room, "") for room in _ROOMS},
    }


def drivers(base: str) -> dict[str, Any]:
    """Return the list of drivers."""
    name = "fake-hardware"
    driver = {
        "name": name,
        "hosts": [HOST],
        "links": links(base, "drivers", name),
        "properties": links(base, "drivers", name, "properties"),
        "type": "dynamic",
    }
    return {"drivers": [driver]}


def conductors(
    base: str, alive: Mapping[str, bool], fields: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the list of conductors, which are `alive` or not; `fields` None: the usual ones."""
    found = []
    for host, lives in alive.items():
        all_ = {"hostname": host, "conductor_group": "", "alive": lives}
        shown = {name: all_[name] for name in fields or all_}
        found.append({**shown, "links": links(base, "conductors", host)})
    return {"conductors": found}
