"""The dry run of a reporter's start."""

from dataclasses import dataclass

from moorage.client.transport import RefusedError
from moorage.integrations.ironic.nodes import NodeReader
from moorage.integrations.ironic.report.difference import Difference, compared, gone
from moorage.integrations.ironic.report.mapping import uuid_of
from moorage.integrations.ironic.report.reading import Reading
from moorage.integrations.ironic.report.reporter import gone_max
from moorage.integrations.ironic.report.sending import Mode
from moorage.integrations.report_api import ReportApi

GROUP_NOT_FOUND = "group_not_found"


@dataclass(frozen=True)
class Foretold:
    """The effect of reports of all nodes, by all members of a group together."""

    differences: list[Difference]
    unclassed: int
    """Nodes without a resource class: nothing can be reported of them."""
    too_many_gone: int = 0
    """Not 0: more nodes than this are gone, so none of them would be reported."""


async def foretold(
    api: ReportApi, nodes: NodeReader, group: str, mode: Mode, *, many_gone: bool
) -> Foretold:
    """Compare all nodes of Ironic with the ledger, and find those that are gone.

    Args:
        api: of Moorage.
        nodes: of Ironic.
        group: of the reporters.
        mode: who else writes the providers.
        many_gone: foretell the absence of nodes however many are gone.

    Raises IronicError, UnreachableError, RefusedError.
    """
    reading = Reading(nodes)
    held = {one.uuid: one async for one in api.providers()}
    owned = await _owned(api, group)
    read = {node["uuid"]: node async for page in reading.pages() for node in page}
    differences = compared(read.values(), held, group, mode)
    unclassed = len(read) - len(differences)
    seen = {uuid_of(uuid) for uuid in read}
    most = gone_max(max(len(read), len(owned)))
    absent: list[str] = []
    for uuid in (uuid for uuid, ghost in owned.items() if not ghost and uuid not in seen):
        if await reading.node(uuid) is None:
            absent.append(uuid)
        if len(absent) > most and not many_gone:
            return Foretold(differences, unclassed, too_many_gone=len(absent) - 1)
    differences += [gone(held[uuid], mode) for uuid in absent if uuid in held]
    return Foretold(differences, unclassed)


async def _owned(api: ReportApi, group: str) -> dict[str, bool]:
    """Return what a group owns: nothing if it has not begun, or was deleted."""
    try:
        return await api.nodes(group)
    except RefusedError as error:
        if error.code == GROUP_NOT_FOUND:
            return {}
        raise
