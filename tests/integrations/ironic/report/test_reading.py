"""What has changed in Ironic is in the next reading, however long the last one took."""

from collections.abc import AsyncIterator, Callable, Sequence

from moorage.integrations.ironic.nodes import PAGE, Node, NodeReader
from moorage.integrations.ironic.report.reading import Reading
from tests.integrations.ironic.report.world import World, played


class InterruptedReader(NodeReader):
    """Lets something happen before it lists the nodes that were enrolled last."""

    happens: Callable[[], object] | None = None

    async def pages(
        self,
        fields: Sequence[str] | None,
        *,
        sort: tuple[str, str] | None = None,
        limit: int = PAGE,
    ) -> AsyncIterator[list[Node]]:
        if sort is not None and sort[0] == "created_at" and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
        async for page in super().pages(fields, sort=sort, limit=limit):
            yield page


@played(3)
async def test_stopped_between_two_lists(it: World) -> None:
    """A change between the lists is not skipped because a node was enrolled after it."""
    async with InterruptedReader(it.double.url) as nodes:

        def enrol(name: str) -> None:
            it.double.agenda.advance(60.0)
            it.double.fleet.add({"name": name, "driver": "fake-hardware"}, "available")

        def happens() -> None:
            it.change(1, maintenance=True)
            enrol("after")

        enrol("before")
        reading = Reading(nodes)
        await reading.begin()
        nodes.happens = happens
        first = [node["name"] for node in await reading.changed()]
        assert "after" in first
        assert "node-1" not in first, "nothing happened in between"
        assert "node-1" in [node["name"] for node in await reading.changed()]
