"""What Nova does, write by write: each step is a write that others can see before the next one.

Sources: nova 34, `nova/conductor/manager.py` (`schedule_and_build_instances`),
`nova/conductor/tasks/migrate.py` and `live_migrate.py`, `nova/compute/manager.py`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tests.support.nova_double.database import (
    FLAVOR,
    Cell,
    Database,
    Instance,
    Migration,
    Node,
)
from tests.support.nova_double.database import (
    Mapping as InstanceMapping,
)

Holdings = Mapping[str, Mapping[str, int]]


class Ledger(Protocol):
    """Placement, as Nova writes it."""

    def write(self, holdings: Mapping[str, Holdings]) -> None:
        """Replace all that these consumers hold, in one transaction; nothing: they are deleted."""

    def read(self, consumer: str) -> Holdings:
        """Return what a consumer holds."""


Steps = Iterator[str]
"""Yields the name of each step after its write."""


BAREMETAL = "resources:CUSTOM_BAREMETAL"


def resources(flavor: Mapping[str, Any]) -> dict[str, int]:
    """Return what an instance of a flavor holds, if its root disk is no volume."""
    if BAREMETAL in flavor["extra_specs"]:
        return {"CUSTOM_BAREMETAL": 1}
    disk = flavor["disk"] + flavor["ephemeral"]
    return {"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["ram"], "DISK_GB": disk}


class Operations:
    """What users and Nova do."""

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self.database, self.ledger = database, ledger

    def boot(
        self, uuid: str, node: Node, flavor: Mapping[str, Any] = FLAVOR, project: str = "p1"
    ) -> Steps:
        """Build an instance; what the user deletes meanwhile is given up."""
        database, cell = self.database, self.database.hosts[node.host]
        instance = Instance(uuid, project, dict(flavor))
        database.specs.add(uuid)
        database.mappings[uuid] = InstanceMapping(project)
        database.requests[uuid] = instance
        yield "requested"
        self.ledger.write({uuid: {node.uuid: resources(flavor)}})
        yield "claimed"
        if uuid not in database.requests:
            database.mappings.pop(uuid, None)
            yield "unmapped"
            self.ledger.write({uuid: {}})
            return
        cell.instances[uuid] = instance
        yield "created"
        database.mappings[uuid].cell = cell
        yield "mapped"
        if database.requests.pop(uuid, None) is None:
            instance.deleted = True
            yield "given up"
            self.ledger.write({uuid: {}})
            return
        yield "request deleted"
        instance.host, instance.node, instance.task_state = node.host, node.name, "spawning"
        yield "on its host"
        instance.vm_state, instance.task_state = "active", None

    def delete(self, uuid: str) -> Steps:
        """Delete an instance, or its build request."""
        database = self.database
        if database.requests.pop(uuid, None) is not None:
            return
        mapping = database.mappings[uuid]
        assert mapping.cell is not None
        instance = mapping.cell.instances[uuid]
        mapping.queued_for_delete = True
        instance.task_state = "deleting"
        yield "deleting"
        instance.deleted = True
        yield "deleted"
        self.ledger.write({uuid: {}})

    def _migration(self, uuid: str, kind: str, target: Node, status: str) -> Migration:
        database = self.database
        cell, instance = self._found(uuid)
        assert instance.host and instance.node
        new = Migration(
            *(database.new_uuid(2), uuid, kind, instance.host, instance.node),
            *(target.host, target.name, status),
        )
        cell.migrations[new.uuid] = new
        return new

    def _found(self, uuid: str) -> tuple[Cell, Instance]:
        cell = self.database.mappings[uuid].cell
        assert cell is not None
        return cell, cell.instances[uuid]

    def resize(self, uuid: str, target: Node, flavor: Mapping[str, Any]) -> Steps:
        """Resize until the user must confirm: the migration holds what the source gives."""
        _, instance = self._found(uuid)
        instance.task_state = "resize_prep"
        yield "preparing"
        migration = self._migration(uuid, "resize", target, "pre-migrating")
        yield "recorded"
        before = self.ledger.read(uuid)
        self.ledger.write({migration.uuid: before, uuid: {}})
        yield "moved to the migration"
        self.ledger.write({uuid: {target.uuid: resources(flavor)}})
        yield "claimed at the target"
        migration.status, instance.task_state = "migrating", "resize_migrating"
        yield "migrating"
        instance.host, instance.node = target.host, target.name
        yield "at the target"
        instance.flavor = dict(flavor)
        instance.vm_state, instance.task_state = "resized", None
        migration.status = "finished"

    def confirm(self, uuid: str) -> Steps:
        """Confirm a resize."""
        _, instance = self._found(uuid)
        migration = self._last(uuid)
        instance.task_state = "confirming"
        migration.status = "confirming"
        yield "confirming"
        migration.status = "confirmed"
        yield "confirmed"
        self.ledger.write({migration.uuid: {}})
        yield "released"
        instance.vm_state, instance.task_state = "active", None

    def revert(self, uuid: str, source: Node, flavor: Mapping[str, Any]) -> Steps:
        """Revert a resize."""
        _, instance = self._found(uuid)
        migration = self._last(uuid)
        instance.task_state, migration.status = "resize_reverting", "reverting"
        yield "reverting"
        instance.host, instance.node = source.host, source.name
        instance.flavor = dict(flavor)
        yield "at the source"
        self.ledger.write({uuid: self.ledger.read(migration.uuid), migration.uuid: {}})
        yield "moved back"
        instance.vm_state, instance.task_state = "active", None
        yield "active"
        migration.status = "reverted"

    def live_migrate(self, uuid: str, target: Node) -> Steps:
        """Move an instance while it runs."""
        _, instance = self._found(uuid)
        instance.task_state = "migrating"
        migration = self._migration(uuid, "live-migration", target, "accepted")
        yield "recorded"
        before = self.ledger.read(uuid)
        self.ledger.write({migration.uuid: before, uuid: {}})
        yield "moved to the migration"
        (held,) = before.values()
        self.ledger.write({uuid: {target.uuid: held}})
        migration.status = "running"
        yield "running"
        instance.host, instance.node, instance.task_state = target.host, target.name, None
        yield "at the target"
        self.ledger.write({migration.uuid: {}})
        yield "released"
        migration.status = "completed"

    def evacuate(self, uuid: str, target: Node) -> Steps:
        """Rebuild an instance of a host that is down: it holds both, until that host comes back."""
        _, instance = self._found(uuid)
        instance.task_state = "rebuilding"
        migration = self._migration(uuid, "evacuation", target, "accepted")
        yield "recorded"
        before = self.ledger.read(uuid)
        (held,) = before.values()
        self.ledger.write({uuid: {**before, target.uuid: held}})
        yield "claimed at the target"
        instance.host, instance.node = target.host, target.name
        yield "at the target"
        instance.task_state = None
        migration.status = "done"

    def shelve(self, uuid: str) -> Steps:
        """Shelve an instance, and take it from its host."""
        _, instance = self._found(uuid)
        instance.task_state = "shelving"
        yield "shelving"
        instance.vm_state, instance.task_state = "shelved_offloaded", "shelving_offloading"
        instance.host = instance.node = None
        yield "offloaded"
        self.ledger.write({uuid: {}})
        yield "released"
        instance.task_state = None

    def _last(self, uuid: str) -> Migration:
        cell, _ = self._found(uuid)
        return next(one for one in reversed(cell.migrations.values()) if one.instance == uuid)


def play(steps: Steps, until: str = "") -> Steps:
    """Play an operation at once, to its end or to a step; return the rest of it."""
    for name in steps:
        if name == until:
            return steps
    return steps
