"""Memory shared by all connections: waiting requests, long bodies and unread responses."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from uvloop import new_event_loop

from moorage.serve.http.connection_limits import WAITING_BODY_MAX, Bounds
from moorage.serve.http.hosts import Hosts
from moorage.serve.http.memory_budget import ByteBudget, MemoryBudgets, Unread
from moorage.serve.http.protocol import protocol_for
from moorage.serve.http.proxies import Proxies

KIB, MIB = 1 << 10, 1 << 20
BOUNDS = Bounds(64 * KIB, 100, 10.0, 10.0)
GET = b"GET /wait HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 60 * KIB + b"\r\n\r\n"
POST = b"POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
LONG = b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER, ANSWERS = 1 * MIB, 8
SECONDS = 10.0


class GatedServer:
    """A server that answers `/wait` when the gate is open, and connections to it."""

    def __init__(self, held: MemoryBudgets) -> None:
        self.held = held
        self.gate = asyncio.Event()
        self.protocols: list[Any] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, wait for the gate on `/wait`, and answer."""
        more = scope["method"] == "POST"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message["more_body"]
        if scope["path"] == "/wait":
            await self.gate.wait()
        body = b"a" * (ANSWER if scope["path"] == "/long" else 4)
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection with small buffers in the kernel and the client."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=4 * KIB)
        self.writers.append(writer)
        return reader, writer

    def is_slow(self, number: int) -> bool:
        """Return whether the client of a connection has left much unread."""
        slow = self.held.unread._sizes
        return len(self.protocols) > number and self.protocols[number] in slow

    def has_sent(self, number: int, size: int) -> bool:
        """Return whether this many bytes of an incomplete head have come on a connection."""
        return len(self.protocols) > number and self.protocols[number]._unproductive > size

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once the condition holds."""
        async with asyncio.timeout(SECONDS):
            while not holds():
                await asyncio.sleep(0)


@asynccontextmanager
async def served(held: MemoryBudgets) -> AsyncIterator[GatedServer]:
    """Serve on this machine."""
    gated = GatedServer(held)
    config = uvicorn.Config(gated.application, loop="none", log_config=None, interface="asgi3")
    config.load()
    protocol = protocol_for(BOUNDS, Hosts("127.0.0.1", ()), Proxies(()), held)
    state = ServerState()

    def make() -> Any:
        gated.protocols.append(protocol(config, state, {}))
        return gated.protocols[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    gated.port = server.sockets[0].getsockname()[1]
    try:
        yield gated
    finally:
        for writer in gated.writers:
            writer.close()
        gated.gate.set()
        await gated.until(lambda: not state.connections)
        server.close()
    assert held.waiting.bytes == held.bodies.bytes == held.unread.bytes == held.heads.bytes == 0


def answers(received: bytes) -> int:
    """Count the responses with status 200."""
    return received.count(b"HTTP/1.1 200 OK")


def test_incomplete_heads_share_room() -> None:
    """Beyond the bound the one begun first is cut off, even if it goes on; others are served."""

    async def act() -> None:
        async with served(MemoryBudgets(heads=100 * KIB)) as gated:
            heads = gated.held.heads
            clients = []
            for number in range(8):
                reader, writer = await gated.connect()
                writer.write(GET[: 30 * KIB])
                await gated.until(partial(gated.has_sent, number, 29 * KIB))
                clients.append((reader, writer))
            assert heads.bytes <= 100 * KIB
            with pytest.raises(ConnectionResetError):
                await asyncio.wait_for(clients[0][0].read(), SECONDS)
            gated.gate.set()
            reader, writer = await gated.connect()
            writer.write(GET[:100])
            await gated.until(lambda: gated.protocols[-1]._head_held)
            writer.write(GET[100:])
            assert answers(await reader.readuntil(b"aaaa")) == 1
            last, writer = clients[-1]
            writer.write(GET[30 * KIB :])
            assert answers(await last.readuntil(b"aaaa")) == 1

    asyncio.run(act())


def test_waiting_requests_share_room() -> None:
    """Beyond the bound of all connections, another waiting request ends its connection.

    Requests that wait already are answered, and so are clients that wait for each response.
    """

    async def act() -> None:
        async with served(MemoryBudgets(waiting=300 * KIB)) as gated:
            one, first = await gated.connect()
            first.write(GET * 4)  # three wait
            await gated.until(lambda: gated.held.waiting.bytes > 180 * KIB)
            other, second = await gated.connect()
            second.write(GET * 4)  # one may wait, the others would be too many
            third, plain = await gated.connect()
            plain.write(GET)
            await gated.until(lambda: len(gated.protocols) == 3 and gated.protocols[1]._deaf)
            assert gated.held.waiting.bytes <= 300 * KIB
            gated.gate.set()
            assert answers(await asyncio.wait_for(other.read(), SECONDS)) == 2
            assert answers(await third.readuntil(b"aaaa")) == 1
            await gated.until(lambda: gated.held.waiting.bytes == 0)
            first.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert answers(await asyncio.wait_for(one.read(), SECONDS)) == 5

    asyncio.run(act())


@pytest.mark.parametrize("there", [False, True])
def test_long_bodies_share_room(there: bool) -> None:
    """If other bodies take the room, a long body is refused with 503; a short one is not.

    Without others a long body is accepted, however long it is.
    """

    async def act() -> None:
        size = WAITING_BODY_MAX + KIB
        async with served(MemoryBudgets(bodies=KIB)) as gated:
            if there:
                _, before = await gated.connect()
                before.write(POST % size + b"b" * size)
                await gated.until(lambda: gated.held.bodies.bytes >= KIB)
            reader, writer = await gated.connect()
            writer.write(POST % size + b"b" * size)
            if there:
                received = await asyncio.wait_for(reader.read(), SECONDS)
                assert received.startswith(b"HTTP/1.1 503 ")
                reader, writer = await gated.connect()
                writer.write(POST % WAITING_BODY_MAX + b"b" * WAITING_BODY_MAX)
            gated.gate.set()
            assert answers(await asyncio.wait_for(reader.readuntil(b"aaaa"), SECONDS)) == 1

    asyncio.run(act())


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, new_event_loop])
def test_unread_responses_share_room(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Beyond the bound, the client that has not read for longest is cut off, never the last."""

    async def act() -> None:
        async with served(MemoryBudgets(unread=100 * KIB)) as gated:
            readers = []
            for number in range(4):
                reader, writer = await gated.connect()
                readers.append(reader)
                writer.write(LONG * ANSWERS)
                await gated.until(lambda: gated.is_slow(number))  # noqa: B023 - awaited in this round
                assert list(gated.held.unread._sizes) == [gated.protocols[number]]
            for reader in readers[:3]:
                with pytest.raises(ConnectionResetError):
                    while await asyncio.wait_for(reader.read(MIB), SECONDS):
                        pass
            received = 0
            while received < ANSWERS * ANSWER:
                received += len(await asyncio.wait_for(readers[3].read(MIB), SECONDS))

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(act())


class Client:
    """A client that reads slowly, and counts how often it is cut off."""

    def __init__(self) -> None:
        self.cut = 0

    def cut_off(self) -> None:
        """Count a cut."""
        self.cut += 1


def test_the_longest_unread_is_cut_off() -> None:
    """Clients that are slow for longest are cut off, as few as necessary, never the last one."""
    unread, clients = Unread(10), [Client() for _ in range(4)]
    for client in clients[:3]:
        unread.enter(client, 3)
    unread.enter(clients[0], 3)  # it has read meanwhile
    unread.enter(clients[3], 4)
    assert [client.cut for client in clients] == [0, 1, 0, 0]
    unread.leave(clients[1])
    assert unread.bytes == 10
    unread.enter(clients[2], 99)
    assert [client.cut for client in clients] == [1, 1, 0, 1]
    unread.leave(clients[2])
    assert unread.bytes == 0


def test_a_single_user_may_exceed_the_budget() -> None:
    """A budget never refuses its only user."""
    room = ByteBudget(10)
    assert room.take(8)
    assert room.take(8, own=8)
    assert not room.take(1)
    room.give_back(16)
    assert room.take(10)
    assert not room.take(1)
