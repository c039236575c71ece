"""Whom `nova-manage placement audit` takes for orphans, in its order of reading: the control.

Source: nova 34, `nova/cmd/manage.py`, `_check_orphaned_allocations_for_provider`. It reads the
instances of a compute node once and keeps them, then its migrations, then the allocations.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from tests.support.nova_double.database import Database

CLASSES = {"VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU", "MEM_ENCRYPTION_CONTEXT"}
OVER = {"confirmed", "reverted", "error", "failed", "completed", "cancelled", "done"}

Allocations = Callable[[str], Mapping[str, Iterable[str]]]
"""Returns the classes by consumer of a provider."""


async def audit(
    database: Database,
    providers: Iterable[tuple[str, str]],
    allocations: Allocations,
    pause: Callable[[], Awaitable[Any]],
) -> list[tuple[str, str]]:
    """Return the consumers that it would delete, each with its provider.

    `providers` are UUIDs with their roots; `pause` is what lies between two of its requests.
    """
    instances: dict[str, set[str]] = {}
    found: list[tuple[str, str]] = []
    for provider, root in providers:
        cell = next((one for one in database.cells if root in one.nodes), None)
        moves: set[str] = set()
        if cell is not None:
            node = cell.nodes[root]
            if not instances.get(root):
                instances[root] = {
                    one.uuid
                    for one in cell.instances.values()
                    if (one.host, one.node, one.deleted) == (node.host, node.name, False)
                }
                await pause()
            moves = {
                one.uuid
                for one in cell.migrations.values()
                if one.status not in OVER
                and {(one.source, one.source_node), (one.target, one.target_node)}
                & {(node.host, node.name)}
            }
            await pause()
        there = instances.get(root, set()) | moves
        found += [
            (consumer, provider)
            for consumer, classes in allocations(provider).items()
            if not CLASSES.isdisjoint(classes) and consumer not in there
        ]
        await pause()
    return found
