"""Tokens are in no message, whatever a server answers."""

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
