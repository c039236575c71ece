"""Providers as rows of tables, and as trees."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.cli.support.tables import NOTHING, Cell, Column, Row
from moorage.cli.support.views.cells import state_cell
from moorage.wire.dataclass import members
from moorage.wire.providers import ProviderShown

TREE = (
    Column("provider", least=16),
    Column("class", least=8),
    Column("total", right=True),
    Column("reserved", dropped=3, right=True),
    Column("capacity", dropped=2, added=1, right=True),
    Column("used", right=True),
    Column("free", right=True),
    Column("state", dropped=1),
    Column("traits", least=12, last=True),
    Column("uuid", piped=True),
    Column("parent", piped=True),
)

INDENT = "  "


def state_text(one: ProviderShown) -> str:
    """Return whether a provider is open, drained, or withheld by its agent."""
    if one.withheld is None:
        return "open"
    return "drained" if one.withheld.partition(":")[0] == "drained" else "withheld"


def tree_rows(providers: Sequence[ProviderShown]) -> Iterator[Row]:
    """Yield trees as rows: one for each class of each provider, or one if it has none.

    On a terminal a provider stands only in its first row, indented below its parent.
    """
    from moorage.core.ledger.reshaping.tree_order import in_tree_order  # deferred: for trees only

    by_uuid = {one.uuid: one for one in providers}
    for uuid, depth in in_tree_order(by_uuid):
        one = by_uuid[uuid]
        state, traits = state_cell(state_text(one)), ", ".join(one.traits) or NOTHING
        stock = sorted(one.inventories.items())
        for number, (name, held) in enumerate(stock or [(NOTHING, None)]):
            first = not number
            figures = [NOTHING] * 5
            if held is not None:
                amounts = (held.total, held.reserved, held.capacity, held.used, held.free)
                figures = [str(each) for each in amounts]
            yield [
                Cell(f"{INDENT * depth}{one.name}" if first else "", one.name),
                name,
                *figures,
                state if first else state._replace(short=""),
                Cell(traits if first else "", traits),
                one.uuid,
                one.parent or NOTHING,
            ]


def trees_of(providers: Sequence[ProviderShown]) -> list[dict[str, Any]]:
    """Return trees as documents: each provider has its `children`."""
    from moorage.core.ledger.reshaping.tree_order import in_tree_order

    by_uuid = {one.uuid: one for one in providers}
    made: dict[str, dict[str, Any]] = {}
    roots: list[dict[str, Any]] = []
    for uuid, _ in in_tree_order(by_uuid):
        one = by_uuid[uuid]
        made[uuid] = {**members(one), "children": []}
        above = None if one.parent is None else made.get(one.parent)
        (roots if above is None else above["children"]).append(made[uuid])
    return roots
