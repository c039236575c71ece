"""The real client classes of reporters, of which only the connection is replaced."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from moorage.integrations.ironic.nodes import Node
from moorage.integrations.report_api import ReportApi
from moorage.wire.operations.operation import Operation
from tests.simulation.provisioning.net import SimulatedNodeReader, answer_of_moorage

T = TypeVar("T")

PAGE = 3
"""Nodes in a page of Ironic's: few, so that nodes come and go between two pages."""


class SimulatedReportApi(ReportApi):
    """The groups of reporters, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__("http://moorage", None)
        self._world = world

    async def _call(
        self,
        operation: Operation[T],
        *variables: str,
        body: Any = None,
        **query: str | float | None,
    ) -> T:
        return await answer_of_moorage(self._world, operation, variables, query, body)


class PagedNodeReader(SimulatedNodeReader):
    """The nodes, over the net, a few at a time."""

    async def pages(
        self,
        fields: Sequence[str] | None,
        *,
        sort: tuple[str, str] | None = None,
        limit: int = PAGE,
        odd: bool = False,
    ) -> AsyncIterator[list[Node]]:
        async for page in super().pages(fields, sort=sort, limit=min(limit, PAGE), odd=odd):
            yield page
