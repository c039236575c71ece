"""What is planted: faults of all kinds, which must be found, and lures, which must not."""

from collections.abc import Callable
from dataclasses import replace

from tests.simulation.nova.ledger import Provider
from tests.simulation.nova.world import CELLS, LARGE, METAL, World, ironic_node
from tests.support.nova_double.database import FLAVOR, Node
from tests.support.nova_double.operations import play, resources

Key = tuple[str, str, str]
"""Code, consumer, provider."""


class Faults:
    """Plants faults in a world, each on hosts of its own; `wanted` are their keys."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wanted: set[Key] = set()
        self.lures: set[str] = set()
        """Consumers and providers that are odd for a moment, or only look odd."""
        self.heals: set[str] = set()
        """Consumers that a heal must take something from."""
        self.doubts: set[str] = set()
        """Lures that people must look at."""
        self.keeps: set[str] = set()
        """Consumers with a finding, from which it must take nothing."""
        self._number = 0

    def host(self) -> Node:
        """Add a host that users do not know, with a server."""
        self._number += 1
        node = self.world._host(100_000 + self._number)
        self.world.server(node)
        return node

    def pair(self) -> tuple[Node, Node]:
        """Add two hosts of one cell."""
        first = self.host()
        self._number += CELLS - 1
        return first, self.host()

    def metal(self) -> Node:
        """Add a node of Ironic's."""
        self._number += 1
        return self.world._metal(100_000 + self._number)

    def deleted(self, node: Node, *, archived: bool = False) -> str:
        """Return a server that was deleted, but not its allocation."""
        uuid = self.world.server(node)
        holdings = dict(self.world.ledger.read(uuid))
        play(self.world.operations.delete(uuid))
        if archived:
            self.world.database.archive(uuid)
        self.world.ledger.write({uuid: holdings}, "INSTANCE" if archived else None)
        return uuid

    def plant(self, times: int) -> None:
        """Plant each fault and each lure some times."""
        for _ in range(times):
            for one in (*FAULTS, *LURES):
                one(self)

    def want(self, code: str, consumer: str = "", provider: str = "") -> None:
        """Expect a finding."""
        self.wanted.add((code, consumer, provider))


def orphan_remembered(it: Faults) -> None:
    """A server was deleted while Placement was away."""
    node = it.host()
    it.want("orphan", it.deleted(node), node.uuid)


def orphan_archived(it: Faults) -> None:
    """The same, and Nova has forgotten it; its type says that it was a server."""
    node = it.host()
    it.want("orphan", it.deleted(node, archived=True), node.uuid)


def orphan_beside_dead_provider(it: Faults) -> None:
    """A host was removed with a server that still holds units."""
    node = it.host()
    uuid = it.deleted(node)
    for one in [*it.world.ledger.classes_on(node.uuid)]:
        if one != uuid:
            play(it.world.operations.delete(one))
    it.world.database.remove_host(node.host)
    it.want("orphan", uuid, node.uuid)
    it.want("dead_provider", provider=node.uuid)


def dead_provider(it: Faults) -> None:
    """A host was removed, with a child of its provider."""
    node = it.host()
    for one in [*it.world.ledger.classes_on(node.uuid)]:
        play(it.world.operations.delete(one))
    child = it.world.database.new_uuid(3)
    it.world.ledger.add(Provider(child, f"{node.name}_pci", node.uuid, node.uuid, {"VGPU": 4}))
    it.world.database.remove_host(node.host)
    it.want("dead_provider", provider=node.uuid)


def doubled_evacuated(it: Faults) -> None:
    """A server was evacuated, and its first host is still away."""
    source, target = it.pair()
    uuid = it.world.server(source)
    it.world.database.hosts[source.host].services[source.host].is_up = False
    play(it.world.operations.evacuate(uuid, target))
    it.want("doubled_evacuated", uuid, source.uuid)


def doubled_resized(it: Faults) -> None:
    """A resize was confirmed while Placement was away."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.resize(uuid, target, LARGE))
    migration = it.world.operations._last(uuid).uuid
    holdings = dict(it.world.ledger.read(migration))
    play(it.world.operations.confirm(uuid))
    it.world.ledger.write({migration: holdings})
    it.want("doubled_resized", migration, source.uuid)


def reverted(it: Faults) -> tuple[str, str, Node]:
    """Return a server that was reverted while Placement was away, its migration, and its host.

    It runs at the source under the allocation of its migration, and still holds the target.
    """
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.resize(uuid, target, LARGE))
    migration = it.world.operations._last(uuid).uuid
    holdings = {one: dict(it.world.ledger.read(one)) for one in (uuid, migration)}
    play(it.world.operations.revert(uuid, source, FLAVOR))
    it.world.ledger.write(holdings)
    return uuid, migration, source


def reverted_in_use(it: Faults) -> None:
    """Nobody but its migration holds what a server uses: it is not released."""
    uuid, migration, source = reverted(it)
    it.want("doubled_resized", migration, source.uuid)
    it.want("missing", uuid, source.uuid)
    it.keeps.add(migration)


def reverted_and_moved(it: Faults) -> None:
    """The same server has left its host since, and has its own allocation."""
    uuid, migration, source = reverted(it)
    it.world.ledger.write({uuid: {source.uuid: resources(FLAVOR)}})
    cell = it.world.database.hosts[source.host]
    target = it.host()
    while it.world.database.hosts[target.host] is not cell:
        target = it.host()
    play(it.world.operations.live_migrate(uuid, target))
    it.want("doubled_resized", migration, source.uuid)
    it.heals.add(migration)


def confirmed_in_part(it: Faults) -> None:
    """A confirmation failed in the middle, and the server was deleted: nova forgets its migration.

    Source: https://bugs.launchpad.net/nova/+bug/1821594.
    """
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.resize(uuid, target, LARGE))
    migration = it.world.operations._last(uuid).uuid
    play(it.world.operations.confirm(uuid), until="confirming")
    play(it.world.operations.delete(uuid))
    it.want("doubled_resized", migration, source.uuid)
    it.heals.add(migration)


def evacuated_for_good(it: Faults) -> None:
    """The host that a server was evacuated from is never repaired: its service is deleted.

    Source: nova's guide to orphaned allocations, and https://bugs.launchpad.net/nova/+bug/1829479.
    """
    source, target = it.pair()
    (beside,) = it.world.ledger.classes_on(source.uuid)
    uuid = it.world.server(source)
    play(it.world.operations.delete(beside))
    play(it.world.operations.evacuate(uuid, target))
    it.world.database.remove_host(source.host)
    it.want("doubled_evacuated", uuid, source.uuid)
    it.want("dead_provider", provider=source.uuid)
    it.heals.add(uuid)


def doubled(it: Faults) -> None:
    """A server holds units of a host, and nobody knows why."""
    home, other = it.pair()
    uuid = it.world.server(home)
    held = {home.uuid: resources(FLAVOR), other.uuid: resources(FLAVOR)}
    it.world.ledger.write({uuid: held})
    it.want("doubled", uuid, other.uuid)


def offloaded(it: Faults) -> None:
    """A server was shelved while Placement was away."""
    node = it.host()
    uuid = it.world.server(node)
    holdings = dict(it.world.ledger.read(uuid))
    play(it.world.operations.shelve(uuid))
    it.world.ledger.write({uuid: holdings})
    it.want("offloaded", uuid, node.uuid)


def failed_build(it: Faults) -> None:
    """A quota was exceeded after a host was claimed: nova gives the server up, and says so.

    Source: openstack-discuss, "Suspected inconsistency in cleanup of failed batch schedule", and
    https://review.opendev.org/c/openstack/nova/+/968446.
    """
    node, uuid = it.host(), it.world.database.new_uuid()
    play(it.world.operations.boot(uuid, node), until="request deleted")
    instance = it.world.database.instance(uuid)
    assert instance is not None
    instance.vm_state, instance.task_state = "error", None
    it.world.database.specs.discard(uuid)
    it.want("failed_build", uuid, node.uuid)
    it.heals.add(uuid)


def missing(it: Faults) -> None:
    """The allocation of a server is gone."""
    node = it.host()
    uuid = it.world.server(node)
    it.world.ledger.write({uuid: {}})
    it.want("missing", uuid, node.uuid)


def missing_there(it: Faults) -> None:
    """A server holds units of another host only."""
    node, other = it.pair()
    uuid = it.world.server(node)
    it.world.ledger.write({uuid: {other.uuid: resources(FLAVOR)}})
    it.want("missing", uuid, node.uuid)


def wrong_shape(it: Faults) -> None:
    """A server has another flavor than it holds."""
    node = it.host()
    uuid = it.world.server(node)
    it.world.ledger.write({uuid: {node.uuid: {**resources(FLAVOR), "MEMORY_MB": 1}}})
    it.want("wrong_shape", uuid, node.uuid)


def foreign_by_type(it: Faults) -> None:
    """Somebody else reserves units of a host."""
    node = it.host()
    uuid = it.world.database.new_uuid(4)
    it.world.ledger.write({uuid: {node.uuid: {"VCPU": 1}}}, "RESERVATION")
    it.want("foreign_consumer", uuid)


def foreign_by_history(it: Faults) -> None:
    """A consumer without a type, of which Nova has never heard."""
    node = it.host()
    uuid = it.world.database.new_uuid(4)
    it.world.ledger.write({uuid: {node.uuid: {"VCPU": 1}}})
    it.want("foreign_consumer", uuid)


def over_capacity(it: Faults) -> None:
    """A host was made smaller."""
    node = it.host()
    it.world.ledger.provided[node.uuid].totals["VCPU"] = 1
    it.want("over_capacity", provider=node.uuid)


def disabled_trait(it: Faults) -> None:
    """A service was enabled while it could not tell Placement."""
    node = it.host()
    it.world.ledger.provided[node.uuid].traits.append("COMPUTE_STATUS_DISABLED")
    it.want("trait_without_owner", provider=node.uuid)


def empty_child(it: Faults) -> None:
    """A device was removed, but not its provider."""
    node = it.host()
    child = it.world.database.new_uuid(3)
    it.world.ledger.add(Provider(child, f"{node.name}_gone", node.uuid, node.uuid, updated=-7200.0))
    it.want("child_without_evidence", provider=child)


def ghost_node(it: Faults) -> None:
    """A node was deleted in Ironic."""
    node = it.metal()
    del it.world.ironic[node.uuid]
    it.want("ghost_node", provider=node.uuid)


def node_without_provider(it: Faults) -> None:
    """A node is not in the ledger, nor in Nova."""
    uuid = it.world.database.new_uuid(5)
    it.world.ironic[uuid] = ironic_node(uuid, "new")
    it.want("node_without_provider", provider=uuid)


def instance_disagrees(it: Faults) -> None:
    """Ironic has another server on a node than Nova."""
    node = it.metal()
    it.world.server(node, METAL)
    it.world.ironic[node.uuid]["instance_uuid"] = it.world.database.new_uuid(6)
    it.want("instance_disagrees", provider=node.uuid)


def node_trait(it: Faults) -> None:
    """A trait was removed from a node, but not from its provider."""
    node = it.metal()
    it.world.ledger.provided[node.uuid].traits.append("CUSTOM_GONE")
    it.want("trait_without_owner", provider=node.uuid)


FAULTS: tuple[Callable[[Faults], None], ...] = (
    orphan_remembered,
    orphan_archived,
    orphan_beside_dead_provider,
    dead_provider,
    doubled_evacuated,
    doubled_resized,
    reverted_in_use,
    reverted_and_moved,
    confirmed_in_part,
    evacuated_for_good,
    doubled,
    offloaded,
    failed_build,
    missing,
    missing_there,
    wrong_shape,
    foreign_by_type,
    foreign_by_history,
    over_capacity,
    disabled_trait,
    empty_child,
    ghost_node,
    node_without_provider,
    instance_disagrees,
    node_trait,
)


def stuck_move(it: Faults) -> None:
    """A move has never ended, because its nova-compute died; somebody has reset the server."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.live_migrate(uuid, target), until="running")
    instance = it.world.database.instance(uuid)
    assert instance is not None
    instance.task_state = None
    it.lures.update((uuid, it.world.operations._last(uuid).uuid))
    it.doubts.add(it.world.operations._last(uuid).uuid)


def stuck_boot(it: Faults) -> None:
    """A server is claimed, and its conductor takes its time: only a build request names it."""
    uuid = it.world.database.new_uuid()
    play(it.world.operations.boot(uuid, it.host()), until="claimed")
    it.lures.add(uuid)


def hostless(it: Faults) -> None:
    """A server is in a cell, but on no host yet."""
    uuid = it.world.database.new_uuid()
    play(it.world.operations.boot(uuid, it.host()), until="request deleted")
    it.lures.add(uuid)


def unconfirmed(it: Faults) -> None:
    """A resize waits to be confirmed: its migration holds units for days."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.resize(uuid, target, LARGE))
    it.lures.update((uuid, it.world.operations._last(uuid).uuid))


def soft_deleted(it: Faults) -> None:
    """A deleted server that can still be restored."""
    uuid = it.world.server(it.host())
    instance = it.world.database.instance(uuid)
    assert instance is not None
    instance.vm_state = "soft-delete"
    it.lures.add(uuid)


def evacuating(it: Faults) -> None:
    """A server is being evacuated: it holds both hosts."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.evacuate(uuid, target), until="claimed at the target")
    it.lures.add(uuid)


def volume_backed(it: Faults) -> None:
    """A server whose root disk is a volume holds no disk."""
    node = it.host()
    uuid = it.world.server(node)
    instance = it.world.database.instance(uuid)
    assert instance is not None
    instance.image = ""
    held = {name: amount for name, amount in resources(FLAVOR).items() if name != "DISK_GB"}
    it.world.ledger.write({uuid: {node.uuid: held}})
    it.lures.add(uuid)


def shared_storage(it: Faults) -> None:
    """A server holds its disk of a provider that is no compute node."""
    node = it.host()
    uuid = it.world.server(node)
    storage = it.world.database.new_uuid(7)
    it.world.ledger.add(Provider(storage, "ceph", storage, totals={"DISK_GB": 10**6}))
    held = resources(FLAVOR)
    disk = {"DISK_GB": held.pop("DISK_GB")}
    it.world.ledger.write({uuid: {node.uuid: held, storage: disk}})
    it.lures.update((uuid, storage))


def failed_server(it: Faults) -> None:
    """A server is in the state of an error, and holds what it held."""
    uuid = it.world.server(it.host())
    instance = it.world.database.instance(uuid)
    assert instance is not None
    instance.vm_state = "error"
    it.lures.add(uuid)


def new_host(it: Faults) -> None:
    """A host has reported, and is not mapped to a cell yet."""
    node = it.host()
    for one in [*it.world.ledger.classes_on(node.uuid)]:
        play(it.world.operations.delete(one))
    cell = it.world.database.hosts.pop(node.host)
    cell.nodes[node.uuid] = replace(node)
    it.lures.add(node.uuid)


def without_spec(it: Faults) -> None:
    """An old server, for which Nova answers 404 while its cell is away."""
    uuid = it.world.server(it.host())
    it.world.database.specs.discard(uuid)
    it.lures.add(uuid)


def shelving(it: Faults) -> None:
    """A server is on no host any more, and its allocation will be released in a moment."""
    uuid = it.world.server(it.host())
    play(it.world.operations.shelve(uuid), until="offloaded")
    it.lures.add(uuid)


def deleting(it: Faults) -> None:
    """A server is being deleted, for as long as its host needs."""
    uuid = it.world.server(it.host())
    play(it.world.operations.delete(uuid), until="deleting")
    it.lures.add(uuid)


def migrating(it: Faults) -> None:
    """A server is copied to another host: its migration holds the first one."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.live_migrate(uuid, target), until="running")
    it.lures.update((uuid, it.world.operations._last(uuid).uuid))


def resizing(it: Faults) -> None:
    """Nobody but the migration holds anything, until the target is claimed."""
    source, target = it.pair()
    uuid = it.world.server(source)
    play(it.world.operations.resize(uuid, target, LARGE), until="moved to the migration")
    it.lures.update((uuid, it.world.operations._last(uuid).uuid))


LURES: tuple[Callable[[Faults], None], ...] = (
    stuck_move,
    stuck_boot,
    hostless,
    unconfirmed,
    soft_deleted,
    evacuating,
    volume_backed,
    shared_storage,
    failed_server,
    new_host,
    without_spec,
    shelving,
    deleting,
    migrating,
    resizing,
)
