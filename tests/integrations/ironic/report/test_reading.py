"""What has changed in Ironic is in the next reading, however long the last one took."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from moorage.integrations.ironic import nodes as module
from moorage.integrations.ironic.nodes import PAGE, Node, NodeReader
from moorage.integrations.ironic.report.membership import GroupMember
from moorage.integrations.ironic.report.reading import Reading
from moorage.integrations.ironic.report.reporter import Reporter
from moorage.integrations.report_api import ReportApi
from moorage.wire.reporting import PinsWanted
from tests.integrations.ironic.report.twisted import TwistedIronic
from tests.integrations.ironic.report.world import GROUP, TTL, World, logged, played, whole


class InterruptedReader(NodeReader):
    """Lets something happen before it lists the nodes that were enrolled last, or after others."""

    happens: Callable[[], object] | None = None
    after_all: Callable[[], Awaitable[None]] | None = None
    after_one: Callable[[], Awaitable[None]] | None = None

    async def node(self, ident: str, fields: Sequence[str]) -> Node | None:
        found = await super().node(ident, fields)
        if self.after_one is not None:
            after_one, self.after_one = self.after_one, None
            await after_one()
        return found

    async def pages(
        self,
        fields: Sequence[str] | None,
        *,
        sort: tuple[str, str] | None = None,
        limit: int = PAGE,
        odd: bool = False,
    ) -> AsyncIterator[list[Node]]:
        if sort is not None and sort[0] == "created_at" and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
        async for page in super().pages(fields, sort=sort, limit=limit, odd=odd):
            yield page
        if sort is None and self.after_all is not None:
            after_all, self.after_all = self.after_all, None
            await after_all()


def enrol(it: World, name: str, uuid: str = "") -> None:
    """Enrol a node, a minute after all others."""
    it.double.agenda.advance(60.0)
    members = {"name": name, "driver": "fake-hardware", "resource_class": "baremetal"}
    it.double.fleet.add(members | ({"uuid": uuid} if uuid else {}), "available")


@played(3)
async def test_stopped_between_two_lists(it: World) -> None:
    """A change between the lists is not skipped because a node was enrolled after it."""
    async with InterruptedReader(it.double.url) as nodes:

        def happens() -> None:
            it.change(1, maintenance=True)
            enrol(it, "after")

        enrol(it, "before")
        reading = Reading(nodes)
        await reading.begin()
        nodes.happens = happens
        first = [node["name"] for node in await reading.changed()]
        assert "after" in first
        assert "node-1" not in first, "nothing happened in between"
        assert "node-1" in [node["name"] for node in await reading.changed()]


@played(3)
async def test_moved_while_all_nodes_are_read(it: World) -> None:
    """A node that becomes the reporter's own after its page was sent is read once more."""
    uuid = it.node(1).uuid
    enrol(it, "last")  # so that no other one is among what has changed
    async with (
        ReportApi(it.server.url, it.token) as api,
        InterruptedReader(it.double.url) as nodes,
    ):
        reporter = Reporter(api, nodes, GroupMember(GROUP, "a", TTL))
        assert await reporter.tick()
        await reporter.read_all_done()
        it.reporting.pin(GROUP, PinsWanted(nodes=[uuid], member="b"))
        it.admin.request("DELETE", f"/resource_providers/{uuid}")

        async def moves() -> None:
            it.reporting.pin(GROUP, PinsWanted(nodes=[uuid], member=None))
            assert await reporter.tick()

        nodes.after_all = moves
        reporter.read_all_soon()
        assert await reporter.tick()
        await reporter.read_all_done()
        assert uuid not in it.providers(), "its page was sent before"
        assert await reporter.tick()
        await reporter.read_all_done()
        assert uuid in it.providers()
        await reporter.close()


@played(3)
async def test_enrolled_again_while_others_are_asked_for(it: World) -> None:
    """What a pass has read since Ironic did not know the node counts more."""
    gone = [it.node(number) for number in (1, 2)]
    async with (
        ReportApi(it.server.url, it.token) as api,
        InterruptedReader(it.double.url) as nodes,
    ):
        reporter = Reporter(api, nodes, GroupMember(GROUP, "a", TTL))
        await whole(reporter)
        for node in gone:
            it.double.fleet.remove(node)

        async def again() -> None:
            enrol(it, "again", gone[0].uuid)
            assert await reporter.tick()

        nodes.after_one = again
        await whole(reporter)
        assert gone[0].uuid in it.providers()
        assert gone[1].uuid not in it.providers()
        await reporter.close()


@played(3)
async def test_a_conductor_whose_clock_is_ahead(it: World) -> None:
    """Changes by others are read nevertheless, in each pass; the log says it, and when it ends."""
    fleet, agenda = it.double.fleet, it.double.agenda
    enrol(it, "later")
    async with it.reporter() as reporter:
        await whole(reporter)
        with logged() as lines:
            it.change(1, maintenance=True)
            it.node(1).updated = agenda.now + 3_600
            assert await reporter.tick()
            for number, maintenance in ((2, True), (3, True), (2, False)):
                agenda.advance(60.0)
                fleet.touch(it.node(number), maintenance=maintenance)
                assert await reporter.tick()
                assert it.reserved(number) == int(maintenance)
            assert it.reserved(1) == 1
            assert len([line for line in lines if "lies in the future" in line]) == 1
            agenda.advance(3_600.0)
            assert await reporter.tick()
            assert "no change lies in the future any longer" in lines


@played(3)
async def test_a_reporter_starts_while_a_clock_is_ahead(it: World) -> None:
    """What it notes at its start is not beyond the present either."""
    it.node(1).updated = it.double.agenda.now + 3_600
    enrol(it, "later")
    async with it.reporter() as reporter:
        await whole(reporter)
        await whole(reporter)
        it.change(2, maintenance=True)
        assert await reporter.tick()
        assert it.reserved(2) == 1


@played(4)
async def test_times_that_cannot_be_read(it: World) -> None:
    """Such a node is read in each pass, and hides no other; years out of range are such times."""
    enrol(it, "later")
    async with (
        TwistedIronic(it.double.url) as ironic,
        it.reporter(ironic=ironic.url) as reporter,
    ):
        await whole(reporter)
        for odd in ("soon", 12, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", {"a": 1}):
            twisted = {it.node(1).uuid: {"updated_at": odd}}
            ironic.twist = lambda _, page, twisted=twisted: {
                **page,
                "nodes": [{**one, **twisted.get(one["uuid"], {})} for one in page.get("nodes", ())],
            }
            it.change(1, maintenance=True)
            it.change(2, maintenance=True)
            assert await reporter.tick(), reporter.progress.trouble
            assert (it.reserved(1), it.reserved(2)) == (1, 1)
            it.change(1, maintenance=False)
            it.change(2, maintenance=False)
            assert await reporter.tick(), reporter.progress.trouble
            assert (it.reserved(1), it.reserved(2)) == (0, 0)


@played(120)
async def test_more_has_changed_than_can_be_read_as_whole_nodes(it: World) -> None:
    """All nodes are read instead, with fewer members of each, and passes go on from there."""
    async with it.reporter() as reporter:
        await whole(reporter)
        for number in range(1, 121):
            it.change(number, maintenance=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "LIST_BYTES_MAX", 100_000)
            assert await reporter.tick()
            await reporter.read_all_done()
        assert reporter.progress.full_trouble is None
        assert it.reserved(120) == 1
        it.double.requests.clear()
        it.change(7, maintenance=False)
        assert await reporter.tick()
        assert it.reserved(7) == 0
        paths = [request.path for request in it.double.requests]
        assert len([path for path in paths if "sort_key=updated_at" in path]) == 1
