"""Servers of governors, gates and webhooks against clients that are many, slow or silent."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from moorage.integrations import doorkeeper
from moorage.integrations.pem_files import serving
from moorage.integrations.sockets import bound
from moorage.integrations.web_server import served
from tests.support.certificates import certificate

pytestmark = pytest.mark.thorough

MOST = 8
SECONDS = 30.0
OPEN: list[asyncio.StreamWriter] = []
"""Connections of the clients of one test."""
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def answer(_request: web.Request) -> web.Response:
    """Answer every request."""
    return web.Response(text="here")


@asynccontextmanager
async def server(
    tls: ssl.SSLContext | None = None, keepalive: float = SECONDS
) -> AsyncIterator[int]:
    """Serve; yield the port."""
    application = web.Application()
    application.router.add_get("/", answer)
    (listener,) = bound("127.0.0.1:0")
    port = listener.getsockname()[1]
    async with served(
        application, [listener], MOST, tls, keepalive=keepalive, shutdown_timeout=0.1
    ):
        yield port
        for writer in OPEN:
            writer.transport.abort()
        OPEN.clear()
        await asyncio.sleep(0)


async def spoken(port: int, source: str = "127.0.0.1", text: bytes = GET) -> bytes:
    """Send text on a new connection that stays open; return the first line, or nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    OPEN.append(writer)
    try:
        writer.write(text)
        return await reader.readline()
    except ConnectionError:
        return b""


def test_connections_are_limited() -> None:
    """In total, and one address has at most three quarters; one that ends makes room."""

    async def act() -> None:
        async with asyncio.timeout(SECONDS), server() as port:
            lines = [await spoken(port) for _ in range(MOST)]
            assert [bool(line) for line in lines] == [True] * 6 + [False] * 2
            others = [await spoken(port, "127.0.0.2") for _ in range(3)]
            assert [bool(line) for line in others] == [True, True, False]
            OPEN[0].close()
            while not await spoken(port, "127.0.0.2"):
                await asyncio.sleep(0)

    asyncio.run(act())


@pytest.mark.parametrize("text", [b"", b"GET / HT"])
def test_a_silent_connection_is_closed(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    """A client that sends no whole request in time loses its connection; one that has sent one
    keeps it.
    """
    monkeypatch.setattr(doorkeeper, "HEAD_SECONDS", 0.2)

    async def act() -> None:
        async with asyncio.timeout(SECONDS), server() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            OPEN.append(writer)
            writer.write(GET)
            assert await reader.readuntil(b"here")
            assert await spoken(port, text=text) == b""
            writer.write(GET)
            assert await reader.readuntil(b"here")

    asyncio.run(act())


@pytest.mark.parametrize("text", [b"", b"GET / HT"])
def test_a_connection_that_falls_silent_is_closed(text: bytes) -> None:
    """Also after an answer, and in the middle of a head."""

    async def act() -> None:
        async with asyncio.timeout(SECONDS), server(keepalive=0.3) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            OPEN.append(writer)
            writer.write(GET)
            assert await reader.readuntil(b"here")
            writer.write(text)
            assert await reader.read(1) == b""

    asyncio.run(act())


def test_handshakes_count_and_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Clients that never finish the handshake take places, but only for some time."""
    monkeypatch.setattr(doorkeeper, "HANDSHAKE_SECONDS", 1.0)
    certificate(tmp_path, "IP:127.0.0.1")
    client = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))

    async def connected(port: int) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
            OPEN.append(writer)
            writer.write(GET)
            return bool(await reader.readline())
        except OSError:  # it was refused, before its handshake or after that
            return False

    async def act() -> None:
        tls = serving(tmp_path / "cert.pem", tmp_path / "key.pem")
        async with asyncio.timeout(SECONDS), server(tls) as port:
            assert await connected(port)
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST)]
            assert not await connected(port)
            while not await connected(port):
                await asyncio.sleep(0)
            for one in silent:
                one.close()

    asyncio.run(act())


@pytest.mark.parametrize("turns", range(6))
def test_a_stop_forgets_no_connection(turns: int) -> None:
    """A client that connects while the server stops does not wait until the process ends."""

    async def act() -> None:
        async with asyncio.timeout(SECONDS):
            clients = [socket.socket() for _ in range(3)]
            async with server() as port:
                for client in clients:
                    client.connect(("127.0.0.1", port))
                for _ in range(turns):
                    await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            for client in clients:
                client.setblocking(False)
                with suppress(ConnectionError):
                    assert await loop.sock_recv(client, 1) == b""
                client.close()

    asyncio.run(act())


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"a" * 8_000 + b"\r\n"


async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection that the test ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    OPEN.append(writer)
    return reader, writer


def test_incomplete_heads_share_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are too many, the one begun first is closed; one that comes at once is answered."""
    monkeypatch.setattr(doorkeeper, "HEADS_BYTES_MAX", 20_000)

    async def act() -> None:
        async with asyncio.timeout(SECONDS), server() as port:
            first, writer = await opened(port)
            writer.write(HEAD)
            others = [await opened(port) for _ in range(3)]
            for _, writer in others:
                writer.write(HEAD)
            with suppress(ConnectionError):
                assert await first.read(1) == b""
            assert await spoken(port)
            reader, writer = others[-1]
            writer.write(b"\r\n")
            assert await reader.readline()

    asyncio.run(act())


@pytest.mark.parametrize("flood", [HEAD + b"\r\n", GET])
def test_requests_that_wait_have_an_end(monkeypatch: pytest.MonkeyPatch, flood: bytes) -> None:
    """A client that sends requests behind one that is not answered loses its connection."""
    monkeypatch.setattr(doorkeeper, "UNANSWERED_BYTES_MAX", 50_000)
    began = asyncio.Event()

    async def act() -> None:
        async def held(_request: web.Request) -> web.Response:
            began.set()
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setitem(globals(), "answer", held)
        async with asyncio.timeout(SECONDS), server() as port:
            reader, writer = await opened(port)
            writer.write(GET)
            await began.wait()
            with suppress(ConnectionError):
                writer.write(flood * (100_000 // len(flood)))
                await writer.drain()
                assert await reader.read(1) == b""

    asyncio.run(act())


def test_bodies_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they are; nor does the next request on the same connection."""
    monkeypatch.setattr(doorkeeper, "UNANSWERED_BYTES_MAX", 600_000)

    async def act() -> None:
        async def read(request: web.Request) -> web.Response:
            return web.Response(text=f"{len(await request.read())} bytes")

        monkeypatch.setitem(globals(), "answer", read)
        async with asyncio.timeout(SECONDS), server() as port:
            reader, writer = await opened(port)
            for _ in range(3):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
                for _ in range(10):
                    writer.write(b"b" * 100_000)
                    await writer.drain()
                assert await reader.readuntil(b"1000000 bytes")

    asyncio.run(act())
