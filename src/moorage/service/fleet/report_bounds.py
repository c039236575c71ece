"""How large a report may be, and how its nodes are divided into transactions.

The cost of a node depends on its names: of classes, traits and aggregates.
"""

from collections.abc import Iterable, Iterator

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.reported import Node
from moorage.core.ledger.search import Catalog
from moorage.core.limits import REPORT_NAMES_MAX, REPORT_NEW_NAMES_MAX, REPORTED_NAMES_MAX
from moorage.service.fair_turns import Pieces
from moorage.service.ledger.bulk import UNIT_PROVIDERS, check_count

UNIT_NAMES = 1_000
"""Names that one transaction writes, unless it has one node only: some 30 ms of work if all of them
are new."""


class ReportedNodes:
    """The nodes of one report, in their order: bounded while they are read."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        """Take some nodes. Raises what `add` raises."""
        self.by_uuid: dict[ProviderId, Node] = {}
        self._names = 0
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Take one more node. Raises LIMIT_EXCEEDED; INVALID for one that is named twice."""
        if node.uuid in self.by_uuid:
            raise Error(Code.INVALID, f"Node '{node.uuid}' is listed twice: omit one entry.")
        self.by_uuid[node.uuid] = node
        check_count(len(self.by_uuid))
        names = node.names
        if names > REPORTED_NAMES_MAX:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"Node {node.uuid} has {names} classes, traits and aggregates, but at most "
                f"{REPORTED_NAMES_MAX} may be reported of one node: report fewer.",
            )
        self._names += names
        if self._names > REPORT_NAMES_MAX:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"A report may have at most {REPORT_NAMES_MAX} classes, traits and aggregates:"
                f" send several reports with fewer nodes.",
            )


async def check_new(nodes: Iterable[Node], catalog: Catalog, pieces: Pieces) -> None:
    """Raise LIMIT_EXCEEDED if nodes have too many names that the ledger does not know."""
    new: set[tuple[str, str]] = set()
    async for node in pieces.each(nodes):
        new.update(("c", name) for name in node.inventories or () if not catalog.has_class(name))
        new.update(("t", name) for name in node.traits or () if not catalog.has_trait(name))
        new.update(("a", u) for u in node.aggregates or () if not catalog.has_aggregate(u))
        if len(new) > REPORT_NEW_NAMES_MAX:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"A report may have at most {REPORT_NEW_NAMES_MAX} new classes, traits and"
                f" aggregates: send several reports with fewer nodes.",
            )


def units(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    """Divide nodes, in their order, into those of one transaction each."""
    unit: list[Node] = []
    names = 0
    for node in nodes:
        if unit and (len(unit) == UNIT_PROVIDERS or names + node.names > UNIT_NAMES):
            yield unit
            unit, names = [], 0
        unit.append(node)
        names += node.names
    if unit:
        yield unit
