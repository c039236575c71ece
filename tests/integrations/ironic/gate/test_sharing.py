"""No client takes what all others need: connections, requests that are held, room for bodies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

from moorage.integrations.doorkeeper import Doorkeeper
from moorage.integrations.ironic.gate import passing, spool, upstream
from moorage.integrations.ironic.gate.passing import BodyError, Incoming
from moorage.integrations.ironic.gate.spool import Spool, Spools, TooLargeError
from moorage.integrations.ironic.gate.units import HELD_PER_HOST
from moorage.integrations.ironic.gate.upstream import Upstream
from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import World
from tests.support.ironic_double.server import IronicDouble

pytestmark = pytest.mark.thorough

FLOOD = 1_600
"""More than the gate has connections to Moorage."""


def request_with(size: int, remote: str, arrived: Callable[[], None] = lambda: None) -> Any:
    """Return a request whose body has this size, in pieces of at most 1 KiB."""

    async def readany() -> bytes:
        arrived()
        return next(pieces, b"")

    def made() -> Iterator[bytes]:
        for at in range(0, size, 1_024):
            yield b"x" * min(1_024, size - at)

    pieces = made()
    return SimpleNamespace(
        headers={"Content-Length": str(size)},
        remote=remote,
        transport=None,
        content=SimpleNamespace(readany=readany),
    )


def test_a_flood_of_requests_for_one_node(tmp_path: Path) -> None:
    """Few are held; the others are refused at once, and other nodes do not notice."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\npool = "deploy"\n[[client]]\nuser_agent = "*"\nhold = 55\n')

    async def act(world: World) -> None:
        made = await world.gate("--rules", str(rules))
        assert (await world.ask(made.url, "node-1", "active")).status == 202
        held = {asyncio.create_task(world.ask(made.url, "node-2", "active")) for _ in range(FLOOD)}
        async with asyncio.timeout(45.0):  # less than any is held
            while len(held) > HELD_PER_HOST:
                done, held = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
                assert {one.result().status for one in done} == {409}
        began = monotonic()
        assert (await world.ask(made.url, "node-3", "deleted")).status < 500
        assert monotonic() - began < 3.0
        for one in held:
            one.cancel()

    play(tmp_path, IronicDouble(3), 1, act)


def test_room_for_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """One address has a part of it; small bodies need none; all is given back."""
    monkeypatch.setattr(spool, "ALL_BYTES_MAX", 1_800_000)
    monkeypatch.setattr(spool, "ADDRESS_BYTES_MAX", 400_000)

    async def act() -> None:
        spools = Spools()

        async def filled(size: int, remote: str) -> Spool:
            one = Spool(spools, request_with(size, remote))
            held.enter_context(one)
            await one.fill()
            return one

        async with AsyncExitStack() as held:
            await filled(300_000, "192.0.2.1")
            with pytest.raises(TooLargeError):
                await filled(300_000, "192.0.2.1")
            for last in range(2, 6):
                await filled(300_000, f"192.0.2.{last}")
            with pytest.raises(TooLargeError):
                await filled(300_000, "192.0.2.9")
            await filled(10_000, "192.0.2.1")
        assert not spools.held
        assert not spools.by_address

    asyncio.run(act())


def test_a_body_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that always sends something, but hardly anything, does not stay for ever."""
    clock = 0.0
    monkeypatch.setattr(passing, "monotonic", lambda: clock)

    async def act(pause: float) -> int:
        def arrived() -> None:
            nonlocal clock
            clock += pause

        got = 0
        async for piece in Incoming(request_with(4 << 20, "192.0.2.1", arrived)).pieces():
            got += len(piece)
        return got

    assert asyncio.run(act(0.0)) == asyncio.run(act(0.05)) == 4 << 20
    with pytest.raises(BodyError, match="too slowly"):
        asyncio.run(act(0.1))


def test_slow_clients_do_not_stop_decided_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have other connections to Ironic."""
    monkeypatch.setattr(upstream, "CONNECTIONS_MAX", 2)

    dripping: list[web.Request] = []

    async def never() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    async def answer(request: web.Request) -> web.Response:
        if request.method == "POST":
            dripping.append(request)
        await request.read()
        return web.Response(text="{}")

    async def act() -> None:
        runner = web.AppRunner(app := web.Application())
        app.router.add_route("*", "/{any:.*}", answer)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]

        async def drip(ironic: Upstream) -> None:
            async with ironic.open("POST", "/v1/nodes", CIMultiDict(), never()):
                pass

        async with Upstream(f"http://{host}:{port}") as ironic:
            slow = [asyncio.create_task(drip(ironic)) for _ in range(5)]
            while len(dripping) < 2:
                await asyncio.sleep(0)
            async with asyncio.timeout(3.0):
                assert (await ironic.send("PUT", "/v1", CIMultiDict(), b"x")).status == 200
                assert (await ironic.send("GET", "/v1", CIMultiDict())).status == 200
            for one in slow:
                one.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
        await runner.cleanup()

    asyncio.run(act())


def test_connections_of_one_address() -> None:
    """It has at most three quarters of all."""

    class Kept(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"in")
            kept.append(transport)

    kept: list[asyncio.BaseTransport | None] = []

    async def act() -> None:
        loop = asyncio.get_running_loop()
        door = Doorkeeper(Kept, lambda: kept, 8)
        server = await loop.create_server(door, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def entered(source: str) -> bool:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(source, 0)
            )
            writers.append(writer)
            try:
                return await reader.read(2) == b"in"
            except ConnectionError:
                return False

        writers: list[asyncio.StreamWriter] = []
        assert [await entered("127.0.0.1") for _ in range(8)] == [True] * 6 + [False] * 2
        assert [await entered("127.0.0.2") for _ in range(3)] == [True] * 2 + [False]
        for writer in writers:
            writer.close()
        for transport in kept:
            assert transport is not None
            transport.close()
        server.close()

    asyncio.run(act())
