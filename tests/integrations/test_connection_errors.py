"""Why a connection failed is said in a few words, and without the token that was sent."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from aiohttp import web

from moorage.client.transport import UnreachableError
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.sockets import ListenError, bound

TOKEN = "s3cret"
ANSWERS = (
    b"",
    b"\x00",
    b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x1b]0;",
    b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    b"HEAD\r\n\r\n",
    b"HTTP/1.1 200 HEAD\r\nHEAD\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHEAD\r\n",
    b"HTTP/1.1 500 HEAD\r\nConnection: close\r\n\r\nHEAD",
)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:6385", "this is not an http:// or https:// address"),
    ],
)
def test_reasons(url: str, reason: str) -> None:
    """Operators read the reason, not what the client's library keeps about the connection."""

    async def moorage() -> None:
        async with LeaseApi(url, None) as api:
            await api.pool("deploy")

    async def ironic() -> None:
        async with NodeReader(url) as nodes:
            await nodes.all(["uuid"])

    for ask, kind in ((moorage, UnreachableError), (ironic, IronicError)):
        with pytest.raises(kind) as error:
            asyncio.run(ask())
        text = str(error.value)
        assert text.startswith(f"no answer from {url}: {reason}")
        assert "(" not in text and len(text) < 120


@pytest.mark.parametrize("port", [1, 0])
def test_no_password_of_an_address(port: int) -> None:
    """Neither an address that nobody answers at, nor one that cannot be listened at, shows it."""
    url = f"http://admin:{TOKEN}@127.0.0.1:{port}/ironic?token={TOKEN}#{TOKEN}"
    for ask, kind in ((_pool, UnreachableError), (_node, IronicError)):
        with pytest.raises(kind) as error:
            asyncio.run(ask(url))
        assert f"from http://***@127.0.0.1:{port}/ironic: " in str(error.value)
        assert TOKEN not in str(error.value)
    for address in (f"http://admin:{TOKEN}@127.0.0.1:1", f"admin:{TOKEN}@nowhere.invalid:1", url):
        with pytest.raises(ListenError) as refused:
            bound(address)
        assert TOKEN not in str(refused.value)


def test_ironic_repeats_the_token() -> None:
    """What it says of an error is shown without it, and on one short line."""

    async def twist(*_: Any) -> web.Response:
        fault = {"faultstring": f"Token {TOKEN} is \x1b[31mnot valid." + "x" * 10_000}
        versions = {"X-OpenStack-Ironic-API-Maximum-Version": "1.82"}
        return web.json_response({"error_message": fault}, status=401, headers=versions)

    async def run() -> None:
        application = web.Application()
        application.router.add_get("/{path:.*}", twist)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            await _node(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    with pytest.raises(IronicError, match="answered 401: Token ") as error:
        asyncio.run(run())
    text = str(error.value)
    assert TOKEN not in text and text.isprintable() and len(text) < 400


async def _node(url: str) -> None:
    async with NodeReader(url, {"X-Auth-Token": TOKEN}) as nodes:
        await nodes.all(["uuid"])


async def _pool(url: str) -> None:
    async with LeaseApi(url, TOKEN) as api:
        await api.pool("deploy")


async def _asked(answer: bytes, what: Any) -> BaseException | None:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(answer.replace(b"HEAD", head.replace(b"\r\n", b" ")))
        writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        asking: Coroutine[Any, Any, None] = what(f"http://127.0.0.1:{port}")
        try:
            await asking
        except (IronicError, UnreachableError) as error:
            return error
        except Exception as error:
            if TOKEN in str(error) + repr(error):
                return error
    return None


@pytest.mark.parametrize("what", [_node, _pool])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_token(answer: bytes, what: Any) -> None:
    """Neither with an answer that is not valid, nor with one that breaks off."""
    error = asyncio.run(_asked(answer, what))
    assert error is None or (TOKEN not in str(error) and str(error).isprintable())
