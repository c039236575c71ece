"""What connections hold together: requests that wait, long bodies, responses that nobody reads."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from uvloop import new_event_loop

from moorage.serve.http.hosts import Hosts
from moorage.serve.http.memory_budget import ByteBudget, MemoryBudgets, Unread
from moorage.serve.http.protocol import WAITING_BODY_MAX, Bounds, protocol_for
from moorage.serve.http.proxies import Proxies

KIB, MIB = 1 << 10, 1 << 20
BOUNDS = Bounds(64 * KIB, 100, 10.0, 10.0)
GET = b"GET /wait HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 60 * KIB + b"\r\n\r\n"
POST = b"POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
LONG = b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER, ANSWERS = 1 * MIB, 8
SECONDS = 10.0


class Scene:
    """A server whose responses come when the gate is open, and connections to it."""

    def __init__(self, held: MemoryBudgets) -> None:
        self.held = held
        self.gate = asyncio.Event()
        self.protocols: list[Any] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, wait for the gate, answer."""
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
        """Open a connection of which the kernel and the client buffer little."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=4 * KIB)
        self.writers.append(writer)
        return reader, writer

    def is_slow(self, number: int) -> bool:
        """Has the client of a connection left much unread?"""
        slow = self.held.unread._sizes
        return len(self.protocols) > number and self.protocols[number] in slow

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds."""
        async with asyncio.timeout(SECONDS):
            while not holds():
                await asyncio.sleep(0)


@asynccontextmanager
async def served(held: MemoryBudgets) -> AsyncIterator[Scene]:
    """Serve on this machine."""
    scene = Scene(held)
    config = uvicorn.Config(scene.application, loop="none", log_config=None, interface="asgi3")
    config.load()
    protocol = protocol_for(BOUNDS, Hosts("127.0.0.1", ()), Proxies(()), held)
    state = ServerState()

    def make() -> Any:
        scene.protocols.append(protocol(config, state, {}))
        return scene.protocols[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    scene.port = server.sockets[0].getsockname()[1]
    try:
        yield scene
    finally:
        for writer in scene.writers:
            writer.close()
        scene.gate.set()
        await scene.until(lambda: not state.connections)
        server.close()
    assert held.waiting.bytes == held.bodies.bytes == held.unread.bytes == 0


def answers(received: bytes) -> int:
    """Count the responses that are whole and good."""
    return received.count(b"HTTP/1.1 200 OK")


def test_waiting_requests_share_room() -> None:
    """Beyond the bound of all connections, a request that waits ends its connection; whoever waits
    already is answered, and so is whoever does not send before the response is there.
    """

    async def act() -> None:
        async with served(MemoryBudgets(waiting=300 * KIB)) as scene:
            one, first = await scene.connect()
            first.write(GET * 4)  # three wait
            await scene.until(lambda: scene.held.waiting.bytes > 180 * KIB)
            other, second = await scene.connect()
            second.write(GET * 4)  # one may wait, the others would be too many
            third, plain = await scene.connect()
            plain.write(GET)
            await scene.until(lambda: len(scene.protocols) == 3 and scene.protocols[1]._deaf)
            assert scene.held.waiting.bytes <= 300 * KIB
            scene.gate.set()
            assert answers(await asyncio.wait_for(other.read(), SECONDS)) == 2
            assert answers(await third.readuntil(b"aaaa")) == 1
            await scene.until(lambda: scene.held.waiting.bytes == 0)
            first.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            assert answers(await asyncio.wait_for(one.read(), SECONDS)) == 5

    asyncio.run(act())


@pytest.mark.parametrize("there", [False, True])
def test_long_bodies_share_room(there: bool) -> None:
    """Where others have taken the room, a long body is refused with 503; a short one is not, and a
    long one is taken where there are no others, however long it is.
    """

    async def act() -> None:
        size = WAITING_BODY_MAX + KIB
        async with served(MemoryBudgets(bodies=KIB)) as scene:
            if there:
                _, before = await scene.connect()
                before.write(POST % size + b"b" * size)
                await scene.until(lambda: scene.held.bodies.bytes >= KIB)
            reader, writer = await scene.connect()
            writer.write(POST % size + b"b" * size)
            if there:
                received = await asyncio.wait_for(reader.read(), SECONDS)
                assert received.startswith(b"HTTP/1.1 503 ")
                reader, writer = await scene.connect()
                writer.write(POST % WAITING_BODY_MAX + b"b" * WAITING_BODY_MAX)
            scene.gate.set()
            assert answers(await asyncio.wait_for(reader.readuntil(b"aaaa"), SECONDS)) == 1

    asyncio.run(act())


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, new_event_loop])
def test_unread_responses_share_room(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Beyond the bound, who has not read for the longest time is cut off; the last one may read."""

    async def act() -> None:
        async with served(MemoryBudgets(unread=100 * KIB)) as scene:
            readers = []
            for number in range(4):
                reader, writer = await scene.connect()
                readers.append(reader)
                writer.write(LONG * ANSWERS)
                await scene.until(lambda: scene.is_slow(number))  # noqa: B023 - it is over by then
                assert list(scene.held.unread._sizes) == [scene.protocols[number]]
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
    """One that is slow to read."""

    def __init__(self) -> None:
        self.cut = 0

    def cut_off(self) -> None:
        """Count it."""
        self.cut += 1


def test_the_slowest_gives_way() -> None:
    """The one that is slow for the longest time, and only as many as needed; never the last."""
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


def test_room_for_one_alone() -> None:
    """What no other has taken any of is never too little."""
    room = ByteBudget(10)
    assert room.take(8)
    assert room.take(8, own=8)
    assert not room.take(1)
    room.give_back(16)
    assert room.take(10)
    assert not room.take(1)
