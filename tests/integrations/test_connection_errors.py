"""Why a connection failed is said in a few words, and without the token that was sent."""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from moorage.client.transport import UnreachableError
from moorage.integrations.connection_errors import reason_of
from moorage.integrations.ironic.gate.upstream import AwayError
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.no_retry import LostError
from moorage.integrations.provisioning.work_steps import CrowdedError, EndedError
from moorage.integrations.sockets import ListenError, bound

ROOT = Path(__file__).resolve().parents[2]
OWN = (AwayError, LostError, EndedError, CrowdedError)
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


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"
ERRORS = [
    aiohttp.ServerDisconnectedError(f"Token {TOKEN}"),
    aiohttp.ClientOSError(errno.ECONNRESET, "Cannot write"),
    aiohttp.ClientPayloadError(TOKEN),
    aiohttp.ClientConnectorCertificateError(None, UNTRUSTED),  # type: ignore[arg-type] # unused
    ssl.SSLError(1, "wrong version number"),
    asyncio.IncompleteReadError(b"", 4),
    aiohttp.ServerTimeoutError(),
    aiohttp.ClientError(),
    BrokenPipeError(errno.EPIPE, "Broken pipe"),
    socket.gaierror(-2, "Name or service not known"),
    OSError("no number"),
    AwayError("Ironic cannot be reached: Connection refused"),
    LostError("Connection reset by peer"),
    EndedError(),
    CrowdedError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_names_of_classes(error: Exception) -> None:
    """People read a reason in words, and never the name of an error of a library or of ours."""
    for text in (reason_of(error), str(error) if type(error) in OWN else "a reason"):
        assert text and not re.search(r"Error|\berrno\b|[()]", text), text
        assert TOKEN not in text


def test_no_source_shows_names_of_classes() -> None:
    """No text for people is made from the name of an error's class, or from its `repr`."""
    shown = re.compile(r"type\((error|exc)\)\.__name__|\{(error|exc)!r\}|%r\W.*\berror\b")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text().splitlines()
        if shown.search(line)
    }
    assert found == PERMITTED, found - PERMITTED


PERMITTED = {
    # What the block of a user's own program has raised: its text may be secret.
    "src/moorage/client/leasing/holding.py: kind = type(error).__name__",
    # The name is removed.
    'src/moorage/store/sqlite/file.py: text = str(error).removeprefix(f"{type(error).__name__}: ")',
}
