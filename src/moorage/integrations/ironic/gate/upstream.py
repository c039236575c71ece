"""Sends requests on to Ironic, byte for byte."""

import itertools
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import ClientResponse
from multidict import CIMultiDict
from yarl import URL

from moorage.integrations.connection_errors import reason_of
from moorage.integrations.connections import CONNECT_SECONDS
from moorage.integrations.ironic.gate.answers import VERSIONS, HttpAnswer
from moorage.integrations.ironic.gate.heads import end_to_end
from moorage.integrations.ironic.nodes import (
    VERSION,
    VERSION_HEADER,
    node_target,
    version_numbers,
    version_of,
)
from moorage.integrations.no_retry import no_retry

ANSWER_SECONDS = 300.0
"""How long Ironic may be silent: an answer that it streams, and its `rpc_response_timeout`."""

IDLE_SECONDS = 5.0
"""How long a connection is kept; shorter than Ironic's server keeps it (10 s), so that a request
does not meet a connection that is just being closed."""

CONNECTIONS_MAX = 400
OWN_HEADERS = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")
"""Headers that aiohttp would add."""

REPEATABLE = frozenset({"GET", "HEAD"})

Body = AsyncIterator[bytes] | bytes | None


class AwayError(Exception):
    """Ironic cannot be reached: the request was not sent."""


class Upstream:
    """Connections to one Ironic. An async context manager.

    Readings without a body share connections; every other request has its own, so that it cannot
    meet one that Ironic is closing, and a body that Ironic does not read cannot be taken for the
    request of another client. `versions` are the version headers of Ironic's last answer.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        self._base = URL(self.url)
        self._tls: ssl.SSLContext | bool = tls or True
        self.versions: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        kinds = itertools.product((False, True), repeat=2)
        self._sessions = {
            (whole, shared): self._session(force_close=not shared) for whole, shared in kinds
        }
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._sessions.values():
            await session.close()

    def _session(self, *, force_close: bool) -> aiohttp.ClientSession:
        kept = None if force_close else IDLE_SECONDS
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=CONNECTIONS_MAX,
                force_close=force_close,
                ssl=self._tls,
                keepalive_timeout=kept,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=OWN_HEADERS,
            timeout=aiohttp.ClientTimeout(
                total=None,
                # Also for a turn among the connections: what is sent much later than it was stored
                # could start work after its unit was released.
                connect=CONNECT_SECONDS if force_close else None,
                sock_connect=CONNECT_SECONDS,
                sock_read=ANSWER_SECONDS,
            ),
            max_line_size=32 << 10,
            max_field_size=32 << 10,
        )

    @asynccontextmanager
    async def open(
        self,
        method: str,
        target: str,
        headers: CIMultiDict[str],
        body: Body,
        *,
        whole: bool = False,
    ) -> AsyncIterator[ClientResponse]:
        """Send a request; yield the answer, whose body is still to be read.

        Args:
            method: as the client sent it.
            target: path and query, as the client sent them.
            headers: end-to-end headers.
            body: pieces of the body; its length is that of the headers, otherwise it is chunked.
            whole: request and answer never wait for a client, so they use other connections:
                clients that send or read slowly may have all of those that are streamed.

        Raises AwayError, LostError, aiohttp.ClientError and TimeoutError.
        """
        shared = method in REPEATABLE and body is None
        session = self._sessions[whole, shared]
        # All of it is a "path" to yarl, which would drop an empty query.
        address = URL.build(
            scheme=self._base.scheme,
            host=self._base.raw_host or "",
            port=self._base.port,
            path=self._base.raw_path.rstrip("/") + target,
            encoded=True,
        )
        try:
            async with session.request(
                method,
                address,
                headers=_spelt_alike(headers),
                data=body,
                allow_redirects=False,
                middlewares=() if shared else (no_retry,),
            ) as answer:
                for name in VERSIONS:
                    if name in answer.headers:
                        self.versions[name] = answer.headers[name]
                yield answer
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise AwayError(f"Ironic cannot be reached: {reason_of(error)}") from error

    async def send(
        self, method: str, target: str, headers: CIMultiDict[str], body: Body = None
    ) -> HttpAnswer:
        """Send a request and read the whole answer. Raises as `open` does."""
        async with self.open(method, target, headers, body, whole=True) as answer:
            content = await answer.read()
            passed = end_to_end(answer.raw_headers)
            return HttpAnswer(answer.status, answer.reason or "", passed, content)

    async def node(
        self, ident: str, fields: Sequence[str], headers: CIMultiDict[str]
    ) -> HttpAnswer:
        """Read a node for a client; `headers` are its credentials. Raises as `open` does."""
        given = headers.copy()
        given[VERSION_HEADER] = version = await self.version()
        given["Accept"] = "application/json"
        return await self.send("GET", node_target(ident, fields, version), given)

    async def version(self) -> str:
        """Return the API version in which nodes are read: permissions do not depend on it."""
        if VERSIONS[1] not in self.versions:
            await self.send("GET", "/v1", CIMultiDict({"Accept": "application/json"}))
        return version_of(self.versions.get(VERSIONS[1], "")) or "{}.{}".format(*VERSION)

    def speaks(self, version: str | None) -> bool:
        """Return whether Ironic surely accepts a client's version header."""
        if version is None or version.strip().lower() == "latest":
            return True
        asked = version_numbers(version.strip())
        least, newest = (version_numbers(self.versions.get(name, "")) for name in VERSIONS)
        return bool(asked and least and newest and least <= asked <= newest)

    def headers(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Return the version headers of an answer to a client."""
        found = dict(self.versions)
        if VERSIONS[0] in found:
            found[VERSION_HEADER] = asked.get(VERSION_HEADER, found[VERSIONS[0]])
        return found


def _spelt_alike(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """Return headers whose duplicates have one spelling: of others, aiohttp sends only the last."""
    spelling: dict[str, str] = {}
    return CIMultiDict(
        (spelling.setdefault(name.lower(), name), value) for name, value in headers.items()
    )
