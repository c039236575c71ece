"""How Nova is asked: whole lists, only its own 404, and with patience."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from moorage.integrations.nova.asking import Nova, UnfitError
from moorage.integrations.nova.pacing import Answer, NoAnswerError
from tests.simulation.virtual.loop import VirtualLoop, passed
from tests.support.nova_double.api import Api
from tests.support.nova_double.database import Cell, Database, Instance, Mapping


def cloud(servers: int) -> Database:
    """Return a Nova with servers on one host."""
    database = Database([Cell("cell1")])
    (cell,) = database.cells
    node = database.add_host(cell, "host-1")
    for _ in range(servers):
        uuid = database.new_uuid()
        cell.instances[uuid] = Instance(uuid, "p", {}, node.host, node.name, "active", None)
        database.mappings[uuid] = Mapping("p", cell)
    return database


def played(send: Callable[[str], Any], scene: Callable[[Nova], Awaitable[None]]) -> float:
    """Play a scene in virtual time; return how long it took."""

    async def sent(path: str) -> Answer:
        answer = send(path)
        await passed(0.1)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Answer) else Answer(*answer)

    async def run() -> float:
        await scene(Nova(sent, 4))
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


@pytest.mark.parametrize("limit", [1, 3, 4, 1_000])
def test_a_list_over_pages(limit: int) -> None:
    """All pages are read, whatever their size."""
    database = cloud(12)

    async def scene(nova: Nova) -> None:
        found = [one.uuid for one in await nova.servers_on("host-1")]
        assert found == [*database.cells[0].instances]

    played(Api(database, limit).answer, scene)


@pytest.mark.parametrize("limit", [2, 3, 5, 1_000])
def test_a_list_of_hypervisors_from_which_some_are_left_out(limit: int) -> None:
    """Nova gives no link to the next page then; the nodes after it are read all the same."""
    database = cloud(0)
    for number in range(2, 12):
        database.add_host(database.cells[0], f"host-{number}")
    del database.hosts["host-2"]

    async def scene(nova: Nova) -> None:
        found = {one.host for one in await nova.hypervisors()}
        assert found == database.hosts.keys()

    played(Api(database, limit).answer, scene)


def test_a_marker_that_is_deleted() -> None:
    """If the last server of a page is deleted, the list is read again from its beginning."""
    database = cloud(6)
    api = Api(database, 3)
    gone: list[str] = []

    def send(path: str) -> tuple[int, Any]:
        if "marker" in path and not gone:
            gone.append([*database.cells[0].instances][2])
            database.cells[0].instances[gone[0]].deleted = True
        return api.answer(path)

    async def scene(nova: Nova) -> None:
        found = [one.uuid for one in await nova.servers_on("host-1")]
        assert len(found) == 5 and gone[0] not in found

    played(send, scene)


def _missing(content: Any, _: str) -> tuple[int, Any]:
    """Answer 404."""
    return 404, content


def test_only_novas_own_404_says_that_a_server_is_gone() -> None:
    """That of a proxy, or of another service, is no answer."""
    missing = {"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}
    for content in (None, {}, {"error": "no route"}, {"message": "not found"}):

        async def unanswered(nova: Nova) -> None:
            with pytest.raises(NoAnswerError):
                await nova.server("x")

        played(partial(_missing, content), unanswered)

    async def gone(nova: Nova) -> None:
        assert await nova.server("x") is None
        assert not await nova.remembers("x")

    played(lambda _: (404, missing), gone)


@pytest.mark.parametrize("status", [401, 403, 406])
def test_what_makes_an_audit_impossible(status: int) -> None:
    """A token without the right, or a Nova that is too old, ends the audit at once."""

    async def scene(nova: Nova) -> None:
        with pytest.raises(UnfitError):
            await nova.services()
        assert nova.sent == 1

    played(lambda _: (status, {}), scene)


def test_all_requests_wait_while_nova_is_busy() -> None:
    """After a `Retry-After`, no request is sent before its end."""
    times: list[float] = []

    def send(path: str) -> Answer:
        times.append(asyncio.get_running_loop().time())
        if len(times) <= 4:
            return Answer(429, None, 20.0)
        return Answer(200, {"services": []})

    async def scene(nova: Nova) -> None:
        await asyncio.gather(*(nova.services() for _ in range(10)))

    took = played(send, scene)
    assert times[:4] == [0.0] * 4 and min(times[4:]) > 20.0
    assert len(times) == 14 and took < 60


@pytest.mark.parametrize("fault", [(500, None), (503, {}), NoAnswerError("no answer")])
def test_a_request_is_given_up(fault: Any) -> None:
    """What stays without an answer is none, after five tries and longer and longer pauses."""

    async def scene(nova: Nova) -> None:
        with pytest.raises(NoAnswerError):
            await nova.server("x")
        assert nova.sent == 5

    assert played(lambda _: fault, scene) >= 1 + 2 + 4 + 8


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"server": None, "servers": None},
        {"server": [], "servers": [1]},
        {"servers": ["x"], "servers_links": [{"rel": "next"}]},
        {"servers": [{}], "servers_links": 7},
        {"servers": [{}], "servers_links": [7]},
        {"servers": [{"id": []}], "servers_links": {"rel": "next"}},
        {"server": {"id": "x", "status": "ACTIVE", "tenant_id": 7}},
    ],
)
def test_an_answer_that_is_not_novas_is_none(content: Any) -> None:
    """It proves nothing, and does not end an audit with a traceback."""

    async def scene(nova: Nova) -> None:
        for asked in (nova.server("x"), nova.remembers("x"), nova.has_hypervisor("x")):
            with pytest.raises(NoAnswerError):
                await asked
        for listed in (nova.servers_on("host-1"), nova.services(), nova.migrations()):
            with pytest.raises(NoAnswerError):
                await listed

    played(lambda _: (200, content), scene)


def test_a_list_that_repeats_itself_ends() -> None:
    """A page that begins where the last one began is no answer."""
    entry = {"id": "x", "status": "ACTIVE"}
    page = {"servers": [entry], "servers_links": [{"rel": "next", "href": "?marker=x"}]}

    async def scene(nova: Nova) -> None:
        with pytest.raises(NoAnswerError):
            await nova.servers_on("host-1")
        assert nova.sent < 10

    played(lambda _: (200, page), scene)
