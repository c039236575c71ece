"""Answers as nova 34 does, by what the databases have now.

Sources: nova 34, `nova/compute/api.py` (`_get_instance`, `get_all`, `service_get_all`),
`nova/compute/instance_list.py`, and the views of `nova/api/openstack/compute/`.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from moorage.integrations.nova.facts import SOFT_DELETED
from tests.support.nova_double.database import (
    Cell,
    Database,
    Instance,
    Mapping,
    Migration,
    Node,
)

T = TypeVar("T", Instance, Migration, Node)
Reply = tuple[int, Any]

LIMIT = 1_000
"""`[api] max_limit`: the most entries of one page."""

FIRST_PART = "http://nova/v2.1"


class Api:
    """The API of one Nova. `limit`: entries in a page."""

    def __init__(self, database: Database, limit: int = LIMIT) -> None:
        self.database, self.limit = database, limit
        self.only_project: str | None = None
        """The project of a token that is not an administrator's of all projects, yet may list."""

    def answer(self, target: str) -> Reply:
        """Return status and JSON of the answer to a GET."""
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query))
        match parts.path.strip("/").split("/"):
            case ["servers", "detail"]:
                return self._servers(query)
            case ["servers", uuid]:
                return self._server(uuid)
            case ["servers", uuid, "os-instance-actions"]:
                return self._actions(uuid)
            case ["os-migrations"]:
                return self._migrations(query)
            case ["os-services"]:
                return 200, {"services": self._services(query)}
            case ["os-hypervisors", "detail"]:
                return self._hypervisors(query)
            case ["os-hypervisors", uuid]:
                return self._hypervisor(uuid)
        return 404, {"message": "The resource could not be found."}

    def _up(self) -> list[Cell]:
        return [cell for cell in self.database.cells if not cell.is_down]

    def _server(self, uuid: str) -> Reply:
        """Look as `_get_instance` does: mapping, then build request, then mapping again."""
        database = self.database
        mapping = database.mappings.get(uuid)
        if mapping is None or self.only_project not in (None, mapping.project):
            return _missing(f"Instance {uuid} could not be found.")
        if mapping.cell is None:
            found = database.requests.get(uuid)
            return (200, {"server": _shown(found)}) if found else _missing(f"Instance {uuid}")
        if mapping.cell.is_down:
            if mapping.queued_for_delete or uuid not in database.specs:
                return _missing(f"Instance {uuid} could not be found.")
            return 200, {"server": _unknown(uuid, mapping)}
        found = mapping.cell.instances.get(uuid)
        if found is None or found.deleted:
            return _missing(f"Instance {uuid} could not be found.")
        return 200, {"server": _shown(found)}

    def _actions(self, uuid: str) -> Reply:
        """Return the history, which deleted instances keep until they are archived."""
        mapping = self.database.mappings.get(uuid)
        if mapping is not None and mapping.cell is None and uuid in self.database.requests:
            return 200, {"instanceActions": []}
        if mapping is None or mapping.cell is None or uuid not in mapping.cell.instances:
            return _missing(f"Instance {uuid} could not be found.")
        if mapping.cell.is_down:
            return _fault()
        return 200, {"instanceActions": [{"action": "create", "instance_uuid": uuid}]}

    def _servers(self, query: dict[str, str]) -> Reply:
        """List by host: with a filter, cells that do not answer are left out in silence.

        So are, in all lists, servers that were deleted and can be restored.
        """
        host = query.get("host")
        there = self.database.hosts.get(host or "")
        found = [
            one
            for cell in self._up()
            if host is None or there in (None, cell)
            for one in cell.instances.values()
            if not one.deleted
            and one.vm_state != SOFT_DELETED
            and (host is None or one.host == host)
        ]
        if host is None:
            found = [*self.database.requests.values(), *found]
        return self._page("servers", found, query, _shown)

    def _migrations(self, query: dict[str, str]) -> Reply:
        found = [one for cell in self._up() for one in reversed(cell.migrations.values())]
        return self._page("os-migrations", found, query, _moved, "migrations")

    def _services(self, query: dict[str, str]) -> list[dict[str, Any]]:
        """List those of cells that answer, and of the others what the host mappings have."""
        binary = query.get("binary", "nova-compute")
        shown = [
            {
                "binary": binary,
                "host": one.host,
                "status": "disabled" if one.disabled else "enabled",
                "state": "up" if one.is_up else "down",
            }
            for cell in self._up()
            for one in cell.services.values()
        ]
        silent = [host for host, cell in self.database.hosts.items() if cell.is_down]
        return [*shown, *({"binary": binary, "host": host, "status": "UNKNOWN"} for host in silent)]

    def _hypervisors(self, query: dict[str, str]) -> Reply:
        """List those with a service and a host mapping, cell by cell.

        A page that needs a cell that is away fails. One from which a node was left out has no link
        to the next page: such a list ends too early.
        """
        found: list[Node] = []
        begun = (marker := query.get("marker")) is None
        for cell in self.database.cells:
            if begun and len(found) >= self.limit:
                break
            if cell.is_down:
                return _fault()
            nodes = [*cell.nodes.values()]
            if not begun and marker in cell.nodes:
                begun = True
                nodes = nodes[[*cell.nodes].index(marker) + 1 :]
            found += nodes if begun else ()
        if not begun:
            return _unknown_marker(marker)
        page = [one for one in found[: self.limit] if one.host in self.database.hosts]
        return self._linked("os-hypervisors/detail", page, query, _node, "hypervisors")

    def _hypervisor(self, uuid: str) -> Reply:
        for cell in self.database.cells:
            if cell.is_down:
                return _fault()
            node = cell.nodes.get(uuid)
            if node is not None and node.host in self.database.hosts:
                return 200, {"hypervisor": _node(node)}
        return _missing(f"Hypervisor with ID '{uuid}' could not be found.")

    def _page(
        self,
        path: str,
        found: list[T],
        query: dict[str, str],
        shown: Callable[[T], dict[str, Any]],
        member: str = "servers",
    ) -> Reply:
        first = 0
        if (marker := query.get("marker")) is not None:
            places = (place for place, one in enumerate(found) if one.uuid == marker)
            first = next(places, -1) + 1
            if not first:
                return _unknown_marker(marker)
        return self._linked(path, found[first : first + self.limit], query, shown, member)

    def _linked(
        self,
        path: str,
        page: list[T],
        query: dict[str, str],
        shown: Callable[[T], dict[str, Any]],
        member: str,
    ) -> Reply:
        """Return a page, with a link to the next one if it is full."""
        content: dict[str, Any] = {member: [shown(one) for one in page]}
        if len(page) == self.limit:
            asked = urlencode({**query, "marker": page[-1].uuid})
            address = f"{FIRST_PART}/{path}?{asked}"
            content[f"{member}_links"] = [{"rel": "next", "href": address}]
        return 200, content


def _unknown_marker(marker: str | None) -> Reply:
    return 400, {"badRequest": {"code": 400, "message": f"marker [{marker}] not found"}}


def _fault() -> Reply:
    return 500, {"computeFault": {"code": 500, "message": "Unexpected API Error."}}


def _missing(message: str) -> Reply:
    return 404, {"itemNotFound": {"code": 404, "message": message}}


STATUSES = {
    "active": "ACTIVE",
    "building": "BUILD",
    "stopped": "SHUTOFF",
    "resized": "VERIFY_RESIZE",
}


def _unknown(uuid: str, mapping: Mapping) -> dict[str, Any]:
    """Return what the mapping and the request spec say of an instance."""
    assert mapping.cell is not None
    known = mapping.cell.instances[uuid]
    return {
        "id": uuid,
        "status": "UNKNOWN",
        "tenant_id": mapping.project,
        "image": "",
        "flavor": known.flavor,
        "OS-EXT-STS:power_state": 0,
    }


def _shown(one: Instance) -> dict[str, Any]:
    return {
        "id": one.uuid,
        "status": STATUSES.get(one.vm_state, one.vm_state.upper()),
        "tenant_id": one.project,
        "image": {"id": one.image} if one.image else "",
        "flavor": one.flavor,
        "OS-EXT-SRV-ATTR:host": one.host,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": one.node,
        "OS-EXT-STS:vm_state": one.vm_state,
        "OS-EXT-STS:task_state": one.task_state,
    }


def _moved(one: Migration) -> dict[str, Any]:
    return {
        "uuid": one.uuid,
        "instance_uuid": one.instance,
        "migration_type": one.kind,
        "status": one.status,
        "source_compute": one.source,
        "source_node": one.source_node,
        "dest_compute": one.target,
        "dest_node": one.target_node,
    }


def _node(one: Node) -> dict[str, Any]:
    return {
        "id": one.uuid,
        "hypervisor_hostname": one.name,
        "hypervisor_type": one.kind,
        "service": {"host": one.host},
    }
