"""The changes that a report of all nodes would make: the nodes of Ironic compared with the ledger.

The server decides the same once more, see decision 0030; here nothing is written, and no group is
joined.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moorage.client.run.printing import printable
from moorage.integrations.ironic.nodes import Node
from moorage.integrations.ironic.report.mapping import OWNER_NOVA, UnreadableNodeError, reported
from moorage.integrations.ironic.report.sending import Mode
from moorage.wire.ledger import InventoryWanted
from moorage.wire.providers import InventoryShown, ProviderShown
from moorage.wire.reporting import NodeReported

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"
UNREADABLE, REMOVED = "unreadable", "removed"
FIGURES = ("total", "reserved")
FIELDS = (*FIGURES, "min_unit", "max_unit", "step_size", "allocation_ratio")


@dataclass(frozen=True)
class Difference:
    """The effect of a report on one node: an outcome of the server; `fields` are changed.

    Of a node that is unreadable nothing would be reported; `fields` say why.
    """

    uuid: str
    outcome: str
    fields: tuple[str, ...] = ()


def compared(
    nodes: Iterable[Node], held: Mapping[str, ProviderShown], group: str, mode: Mode
) -> list[Difference]:
    """Return what reports of nodes would change; without those of which there is nothing to say.

    Args:
        nodes: as Ironic has them.
        held: the ledger, by UUID.
        group: of the reporters.
        mode: who else writes the providers.
    """
    found = []
    for one in nodes:
        try:
            node = reported(one)
        except UnreadableNodeError as error:
            found.append(Difference(printable(one["uuid"]), UNREADABLE, (str(error),)))
            continue
        if node is not None:
            found.append(difference(node, held.get(node.uuid), group, mode))
    return found


def difference(
    node: NodeReported, provider: ProviderShown | None, group: str, mode: Mode
) -> Difference:
    """Return what the report of a node would change.

    Args:
        node: as it would be reported.
        provider: as it is in the ledger; None: there is none.
        group: of the reporters.
        mode: who else writes the providers.
    """
    if provider is None:
        return Difference(node.uuid, UNCHANGED if mode == "beside_nova" else CREATED)
    wanted, held = node.inventories or {}, provider.inventories
    if _is_novas(provider, mode):
        shared = {name: one for name, one in wanted.items() if name in held}
        fields = [*_figures(shared, held, FIGURES)]
    else:
        fields = [*_whole(node, provider, group)]
    return Difference(node.uuid, UPDATED if fields else UNCHANGED, tuple(fields))


def gone(provider: ProviderShown, mode: Mode) -> Difference:
    """Return what a report would change of a provider whose node Ironic does not have any more."""
    if not _is_novas(provider, mode) and not any(one.used for one in provider.inventories.values()):
        return Difference(provider.uuid, REMOVED)
    fields = [
        f"{name} reserved: {one.reserved} becomes {one.total}"
        for name, one in sorted(provider.inventories.items())
        if one.reserved < one.total
    ]
    return Difference(provider.uuid, UPDATED, (*fields, "ghost"))


def _is_novas(provider: ProviderShown, mode: Mode) -> bool:
    """Return whether nova writes a provider: only its figures are reported then."""
    return mode == "beside_nova" or OWNER_NOVA in provider.traits


def _whole(node: NodeReported, provider: ProviderShown, group: str) -> Iterable[str]:
    wanted, held = node.inventories or {}, provider.inventories
    if group not in provider.reported:
        besides = ", ".join(sorted(provider.reported))
        yield f"group {group}: reports it" + (f" besides {besides}" if besides else "")
    if node.name is not None and node.name != provider.name:
        yield f"name: {provider.name} becomes {node.name}"
    yield from (f"{name}: removed" for name in sorted(held.keys() - wanted.keys()))
    yield from (f"{name}: added" for name in sorted(wanted.keys() - held.keys()))
    shared = {name: one for name, one in wanted.items() if name in held}
    yield from _figures(shared, held, FIELDS)
    traits, before = {*(node.traits or ())}, {*provider.traits}
    yield from (f"trait {name}: added" for name in sorted(traits - before))
    others = {name for other, set_ in provider.reported.items() if other != group for name in set_}
    own = {*provider.reported.get(group, ())} - others
    yield from (f"trait {name}: removed" for name in sorted(own - traits))


def _figures(
    wanted: Mapping[str, InventoryWanted],
    held: Mapping[str, InventoryShown],
    names: Iterable[str],
) -> Iterable[str]:
    for resource_class, one in sorted(wanted.items()):
        for name in names:
            before, after = getattr(held[resource_class], name), getattr(one, name)
            if before != after:
                yield f"{resource_class} {name}: {before} becomes {after}"
