"""The native API of leases for programs that hold many requests at once, with asyncio.

The same calls as `client.admission`, on connections that stay open.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp

from moorage.client.decoding import decode
from moorage.client.transport import UnreachableError, refusal_of
from moorage.integrations.connection_errors import reason_of
from moorage.wire.admission import Lease, LeasePage, LeaseWanted, Pool
from moorage.wire.pages import PAGE_MAX

T = TypeVar("T")

SECONDS_MAX = 20.0
"""How long to wait for the server, beyond what the request itself asks it to wait."""

WAITING_MAX = 1_300
"""Connections on which a request waits for its grant."""

CONNECTIONS_MAX = 200
"""Connections for everything else, so that no number of requests that wait can keep a unit from
being released. The server's own limit per address is 2,000 by default."""


class LeaseApi:
    """The leases of one server. An async context manager: it has open connections.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers = {} if token is None else {"X-Auth-Token": token}

    async def __aenter__(self) -> Self:
        self._waiting = self._opened(WAITING_MAX)
        self._session = self._opened(CONNECTIONS_MAX)
        return self

    def _opened(self, limit: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            headers=self._headers, connector=aiohttp.TCPConnector(limit=limit)
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._waiting.close()
        await self._session.close()

    async def ask(self, wanted: LeaseWanted, wait: float = 0.0) -> Lease:
        """Request units; wait up to 60 seconds for the grant. It is safe to repeat."""
        return await self._ask(Lease, "POST", "/v1/leases", asdict(wanted), wait=wait or None)

    async def lease(self, lease_id: str, wait: float = 0.0) -> Lease:
        """Return a lease or ticket; wait up to 60 seconds for a ticket to be granted or ended."""
        return await self._ask(Lease, "GET", _lease(lease_id), wait=wait or None)

    async def leases(self, **asked: str | None) -> AsyncIterator[Lease]:
        """Yield leases and tickets: `pool`, `state`, `owner`, `key_prefix` narrow them down."""
        cursor: str | None = None
        while True:
            page = await self._ask(
                LeasePage, "GET", "/v1/leases", **asked, cursor=cursor, limit=PAGE_MAX
            )
            for lease in page.leases:
                yield lease
            if (cursor := page.next) is None:
                return

    async def record_put(self, lease_id: str, record: Mapping[str, Any], version: int) -> Lease:
        """Write the record of a lease; `version` is that of the record which it replaces."""
        body = {"version": version, "record": record}
        return await self._ask(Lease, "PUT", f"{_lease(lease_id)}/record", body)

    async def renew(self, lease_id: str) -> Lease:
        """Extend a lease to its full TTL from now."""
        return await self._ask(Lease, "POST", f"{_lease(lease_id)}/renew", {})

    async def release(self, lease_id: str, record_version: int | None = None) -> Lease:
        """Release a lease, or withdraw a ticket; with a version only while its record has it."""
        return await self._ask(Lease, "DELETE", _lease(lease_id), record_version=record_version)

    async def requeue(self, lease_id: str, key: str, record_version: int) -> Lease:
        """Give the units back and wait at the same place in line."""
        body = {"key": key, "requeue": True, "record_version": record_version}
        return await self._ask(Lease, "POST", f"{_lease(lease_id)}/retry", body)

    async def outcome(self, lease_id: str, result: str, detail: str = "") -> Lease:
        """Report what became of the work: ok, failed or throttled."""
        body = {"result": result, "detail": detail}
        return await self._ask(Lease, "POST", f"{_lease(lease_id)}/outcome", body)

    async def pool(self, name: str) -> Pool:
        """Return a pool."""
        return await self._ask(Pool, "GET", f"/v1/pools/{quote(name)}")

    async def _ask(
        self, kind: type[T], method: str, path: str, body: Any = None, **query: str | float | None
    ) -> T:
        given = {name: value for name, value in query.items() if value is not None}
        address = f"{self._url}{path}?{urlencode(given)}" if given else f"{self._url}{path}"
        seconds = SECONDS_MAX + float(given.get("wait", 0.0))
        session = self._waiting if "wait" in given else self._session
        try:
            async with session.request(
                method,
                address,
                json=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as answer:
                content = await answer.json(content_type=None)
                status = answer.status
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(f"no answer from {self._url}: {reason_of(error)}") from error
        if not 200 <= status < 300:
            raise refusal_of(status, content if isinstance(content, dict) else {})
        return decode(kind, content)


def _lease(lease_id: str) -> str:
    return f"/v1/leases/{quote(lease_id, safe='')}"
