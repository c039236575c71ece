"""Large bodies need no memory, and hundreds of held requests hold nobody else."""

import asyncio
import json
import signal
from io import BytesIO
from pathlib import Path
from time import monotonic

from tests.e2e.support.server import Server
from tests.integrations.ironic.gate.gates import connect, gate, request
from tests.integrations.ironic.gate.raw_upstream import RawUpstream
from tests.integrations.ironic.gate.test_limit import play
from tests.integrations.ironic.gate.world import VERSION, World
from tests.support.ironic_double.server import IronicDouble

MIB = 1 << 20
LARGE = 64 * MIB
PIECE = bytes(MIB)
HELD = 500


def test_uploads_need_no_memory() -> None:
    """64 MiB are streamed to Ironic."""
    with RawUpstream() as upstream, gate(upstream.url) as proxy:
        before = proxy.resident(most=True)
        with connect(proxy.url) as client:
            client.sendall(request("PUT", "/v1/x", {"Content-Length": str(LARGE)}))
            for _ in range(LARGE // MIB):
                client.sendall(PIECE)
            assert client.recv(65_536).startswith(b"HTTP/1.1 200 ")
        ((_, body),) = upstream.of("PUT")
        assert len(body) == LARGE
        assert proxy.resident(most=True) - before < 16 * MIB


def test_downloads_need_no_memory() -> None:
    """64 MiB wait in Ironic until the client takes them; others are not held meanwhile."""
    with RawUpstream() as upstream, gate(upstream.url) as proxy:
        small = upstream.answer
        before = proxy.resident(most=True)
        upstream.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE + bytes(LARGE)
        with connect(proxy.url) as client:
            client.sendall(request("GET", "/v1/x"))
            taken = len(client.recv(1_000).partition(b"\r\n\r\n")[2])
            upstream.answer = small
            _others_pass(proxy)
            while piece := client.recv(MIB):
                taken += len(piece)
        assert taken >= LARGE
        assert proxy.resident(most=True) - before < 16 * MIB


def _others_pass(proxy: Server) -> None:
    with connect(proxy.url) as other:
        other.sendall(request("GET", "/v1/y"))
        assert other.recv(65_536).startswith(b"HTTP/1.1 200 ")


def test_large_requests_are_decided(tmp_path: Path) -> None:
    """A configuration drive of 60 MiB reaches Ironic, after its unit was granted."""

    async def act(world: World) -> None:
        made = await world.gate()
        drive = "A" * (60 * MIB)
        body = json.dumps({"target": "active", "configdrive": drive}).encode()
        headers = {VERSION: "1.80", "Content-Type": "application/json"}
        url = f"{made.url}/v1/nodes/node-1/states/provision"
        async with world.session.put(url, data=BytesIO(body), headers=headers) as answer:
            assert answer.status == 202
        (got,) = [one.body for one in world.double.requests if one.kind == "provision"]
        assert got == body

    play(tmp_path, IronicDouble(1), 1, act)


def test_many_requests_are_held(tmp_path: Path) -> None:
    """500 requests wait; others pass; SIGTERM refuses all of them at once."""

    async def act(world: World) -> None:
        made = await world.gate()
        assert (await world.ask(made.url, "node-1", "active")).status == 202
        asked = [
            asyncio.create_task(world.ask(made.url, f"node-{number}", "active"))
            for number in range(2, HELD + 2)
        ]
        await world.waiting(HELD)
        began = monotonic()
        async with world.session.get(f"{made.url}/v1/nodes?limit=1") as answer:
            assert answer.status == 200
        assert monotonic() - began < 2.0
        made.process.send_signal(signal.SIGTERM)
        assert {got.status for got in await asyncio.gather(*asked)} == {409}
        assert await asyncio.to_thread(made.process.wait) == 0

    play(tmp_path, IronicDouble(HELD + 1), 1, act)
