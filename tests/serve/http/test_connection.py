"""How the connection itself handles answers, and pauses between requests."""

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from moorage.faces.web import ABORT
from moorage.serve.http.connection_limits import Bounds
from moorage.serve.http.hosts import Hosts
from moorage.serve.http.memory_budget import MemoryBudgets
from moorage.serve.http.protocol import GuardedProtocol, protocol_for
from moorage.serve.http.proxies import Proxies
from moorage.serve.http.uvicorn_connection import Cycle
from tests.support.private_names import overridden

BOUNDS = Bounds(8_192, 20, 5.0, 5.0)
REQUEST = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
IDLE_SECONDS = 0.3

LENGTH = (b"content-length", b"4")
ANSWERS: dict[str, list[tuple[list[tuple[bytes, bytes]], list[bytes]]]] = {
    "/whole": [([LENGTH], [b"body"])],
    "/parts": [([LENGTH], [b"bo", b"dy"])],
    "/chunks": [([], [b"bo", b"dy"])],
    "/cut": [([], [b"bo", b"cut"])],
    "/closing": [([LENGTH, (b"connection", b"close")], [b"body"])],
    "/longer": [([LENGTH], [b"body and more"])],
    "/injected": [([LENGTH, (b"location", b"/\r\nset-cookie: a=b")], [b"body"])],
    "/injected-name": [([LENGTH, (b"location: /\r\nset-cookie", b"a=b")], [b"body"])],
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the parts that `ANSWERS` has for the path."""
    ((headers, parts),) = ANSWERS[scope["path"]]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number, part in enumerate(parts, 1):
        more = number < len(parts)
        if part == b"cut":
            scope[ABORT]()
            return
        await send({"type": "http.response.body", "body": part, "more_body": more})


async def connected() -> tuple[asyncio.AbstractServer, asyncio.StreamReader, asyncio.StreamWriter]:
    """Serve the application and open a connection to it."""
    config = uvicorn.Config(
        application,
        loop="none",
        log_config=None,
        interface="asgi3",
        timeout_keep_alive=IDLE_SECONDS,  # type: ignore[arg-type] # a float will do
    )
    config.load()
    protocol = protocol_for(BOUNDS, Hosts("127.0.0.1", ()), Proxies(()), MemoryBudgets())
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    return server, reader, writer


async def answered(*paths: bytes, form: bytes = REQUEST) -> bytes:
    """Send requests without waiting for answers; return everything received until the end."""
    server, reader, writer = await connected()
    writer.write(b"".join(form % path for path in paths))
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        server.close()


@pytest.mark.parametrize("path", ["whole", "parts", "closing"])
def test_answers_of_a_known_length(path: str) -> None:
    """However the application divides an answer, it is the same on the wire."""
    received = asyncio.run(answered(path.encode()))
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.count(b"content-length: 4") == 1
    assert body == b"body"


def test_answers_follow_each_other() -> None:
    """Whole answers, those in parts and those of unknown length can share one connection."""
    received = asyncio.run(answered(b"whole", b"chunks", b"parts", b"closing", b"whole"))
    assert received.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert received.count(b"body") == 3
    assert received.count(b"2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n") == 1
    assert received.count(b"connection: close") == 1


OLD_REQUEST = b"GET /%s HTTP/1.0\r\n\r\n"


def test_old_clients_get_no_chunks() -> None:
    """To HTTP/1.0 an answer of unknown length is sent as is, and ends with the connection."""
    received = asyncio.run(answered(b"chunks", form=OLD_REQUEST))
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head and b"connection: close" in head
    assert body == b"body"


@pytest.mark.parametrize("form", [REQUEST, OLD_REQUEST])
def test_an_answer_that_is_cut_is_an_error(form: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A client sees a broken connection, also where the end of the connection ends the answer.

    It is not logged as an error: clients that read too slowly could fill the log.
    """
    with pytest.raises(ConnectionResetError):
        asyncio.run(answered(b"cut", form=form))
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("path", ["injected", "injected-name"])
def test_no_line_can_be_injected_into_a_head(path: str) -> None:
    """A header with a line break is never sent."""
    assert b"set-cookie" not in asyncio.run(answered(path.encode()))


def test_no_more_than_the_content_length_is_sent() -> None:
    """An answer longer than its content-length does not run into the next one."""
    assert b"and more" not in asyncio.run(answered(b"longer", b"whole"))


def test_only_an_idle_connection_is_closed() -> None:
    """The time begins with the last answer: a client that keeps asking is never cut off."""

    async def scenario() -> float:
        server, reader, writer = await connected()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while loop.time() < begun + 3 * IDLE_SECONDS:
            writer.write(REQUEST % b"whole")
            assert (await reader.readuntil(b"body")).endswith(b"body")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), IDLE_SECONDS / 3)
        last = loop.time()
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        server.close()
        return loop.time() - last

    assert asyncio.run(scenario()) > IDLE_SECONDS / 2


def test_the_private_methods_of_uvicorn_that_are_overridden() -> None:
    """Uvicorn may rename them in any release, or begin to use a private name of ours.

    Their behavior is checked by the tests of idle connections and of consecutive requests.
    """
    assert overridden(GuardedProtocol, HttpToolsProtocol) == {"_unset_keepalive_if_required"}
    assert overridden(Cycle, RequestResponseCycle) == set()
