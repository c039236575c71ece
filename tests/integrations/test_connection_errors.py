"""Why a connection failed is said in a few words, and without the token that was sent."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from moorage.client.transport import UnreachableError
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.lease_api import LeaseApi

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


async def _node(url: str) -> None:
    async with NodeReader(url, {"X-Auth-Token": TOKEN}) as nodes:
        await nodes.all(["uuid"])


async def _pool(url: str) -> None:
    async with LeaseApi(url, TOKEN) as api:
        await api.pool("deploy")


async def _asked(answer: bytes, what: Any) -> BaseException | None:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
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
