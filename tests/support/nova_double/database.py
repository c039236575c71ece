"""Nova's databases, as far as its API shows them: that of the API, and one for each cell.

Source: nova 34, `nova/db/api/models.py` and `nova/db/main/models.py`.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

FLAVOR: dict[str, Any] = {
    "original_name": "m1.small",
    "vcpus": 2,
    "ram": 4096,
    "disk": 20,
    "ephemeral": 0,
    "swap": 0,
    "extra_specs": {},
}


@dataclass
class Instance:
    """A row of `instances`. `deleted`: the row is still there, until it is archived."""

    uuid: str
    project: str
    flavor: dict[str, Any]
    host: str | None = None
    node: str | None = None
    vm_state: str = "building"
    task_state: str | None = "scheduling"
    image: str = "00000008-0000-4000-8000-000000000001"
    deleted: bool = False


@dataclass
class Migration:
    """A row of `migrations`."""

    uuid: str
    instance: str
    kind: str
    source: str
    source_node: str
    target: str
    target_node: str
    status: str


@dataclass
class Node:
    """A row of `compute_nodes`."""

    uuid: str
    name: str
    host: str
    kind: str = "QEMU"


@dataclass
class Service:
    """A row of `services`."""

    host: str
    disabled: bool = False
    is_up: bool = True


@dataclass
class Cell:
    """The database of a cell. `is_down`: it does not answer."""

    name: str
    instances: dict[str, Instance] = field(default_factory=dict)
    migrations: dict[str, Migration] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    is_down: bool = False


@dataclass
class Mapping:
    """A row of `instance_mappings`; `cell` None: not scheduled."""

    project: str
    cell: Cell | None = None
    queued_for_delete: bool = False


@dataclass
class Database:
    """All databases of one Nova."""

    cells: list[Cell] = field(default_factory=list)
    mappings: dict[str, Mapping] = field(default_factory=dict)
    requests: dict[str, Instance] = field(default_factory=dict)
    """The rows of `build_requests`: the instance that is to be created."""
    specs: set[str] = field(default_factory=set)
    """The instances with a row of `request_specs`."""
    hosts: dict[str, Cell] = field(default_factory=dict)
    """The rows of `host_mappings`."""
    counter: int = 0

    def new_uuid(self, group: int = 0) -> str:
        """Return a UUID that is the same in each run."""
        self.counter += 1
        return str(UUID(int=(group << 96) | (0x4 << 76) | (0x8 << 60) | self.counter))

    def add_host(self, cell: Cell, host: str, kind: str = "QEMU", name: str | None = None) -> Node:
        """Add a service with a compute node; another name: a further node of it."""
        cell.services.setdefault(host, Service(host))
        self.hosts[host] = cell
        uuid = self.new_uuid(1)
        node = Node(uuid, uuid if kind == "ironic" else name or host, host, kind)
        cell.nodes[node.uuid] = node
        return node

    def remove_host(self, host: str) -> None:
        """Delete a service as Nova does, without its provider."""
        cell = self.hosts.pop(host)
        del cell.services[host]
        cell.nodes = {uuid: one for uuid, one in cell.nodes.items() if one.host != host}

    def archive(self, uuid: str) -> None:
        """Forget a deleted instance, as `nova-manage db archive_deleted_rows` does."""
        mapping = self.mappings.pop(uuid)
        assert mapping.cell is not None
        del mapping.cell.instances[uuid]
        self.specs.discard(uuid)

    def instance(self, uuid: str) -> Instance | None:
        """Return an instance wherever it is, unless it is deleted."""
        if (mapping := self.mappings.get(uuid)) is None:
            return None
        if mapping.cell is None:
            return self.requests.get(uuid)
        found = mapping.cell.instances.get(uuid)
        return None if found is None or found.deleted else found

    def migration(self, uuid: str) -> Migration | None:
        """Return a migration of any cell."""
        return next((cell.migrations[uuid] for cell in self.cells if uuid in cell.migrations), None)
