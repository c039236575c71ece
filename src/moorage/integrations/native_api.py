"""The native API for programs that hold many requests at once, with asyncio.

Connections stay open between requests.
"""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from moorage.client.calling import answer_of
from moorage.client.tokens import FileValue
from moorage.client.transport import (
    ANSWER_BYTES_MAX,
    TOKEN_HEADER,
    UnreachableError,
    refusal_of,
    shown_url,
)
from moorage.integrations.answers import json_of, read_answer
from moorage.integrations.connection_errors import reason_of
from moorage.wire.operations.operation import Operation
from moorage.wire.pages import PAGE_MAX

A = TypeVar("A")

VALUES_MAX = 20_000_000
"""Values in one answer: Moorage sends long ones, but does not lie."""

SECONDS_MAX = 20.0
"""How long to wait for the server, beyond what the request itself asks it to wait."""

WAITING_MAX = 1_300
"""Connections on which a request waits for its grant."""

CONNECTIONS_MAX = 200
"""Connections for everything else, so that no number of requests that wait can keep a unit from
being released. The server's own limit per address is 2,000 by default."""


class NativeApi:
    """The native API of one server. An async context manager: it has open connections.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def __init__(self, url: str, token: str | Callable[[], str] | None) -> None:
        """Prepare to ask; a token that may change is a function, called for each request."""
        self._url = url.rstrip("/")
        self._token = token

    async def __aenter__(self) -> Self:
        self._waiting = self._opened(WAITING_MAX)
        self._session = self._opened(CONNECTIONS_MAX)
        return self

    def _opened(self, limit: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=limit))

    def _headers(self, body: Any) -> dict[str, str]:
        headers = {} if body is None else {"Content-Type": "application/json"}
        if (token := self._token) is not None:
            headers[TOKEN_HEADER] = token if isinstance(token, str) else token()
        return headers

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._waiting.close()
        await self._session.close()

    async def _call(
        self,
        operation: Operation[A],
        *variables: str,
        body: Any = None,
        **query: str | float | None,
    ) -> A:
        """Call an operation; `variables`, `query` are as in `Operation.address`."""
        address = operation.address(*variables, query=query)
        content = await self._content(operation.method, address, body, query.get("wait"))
        return answer_of(operation, content)

    async def _pages(
        self, operation: Operation[A], *variables: str, **asked: str | float | None
    ) -> AsyncIterator[A]:
        """Yield the pages of a list; each names the cursor of the next one."""
        cursor: str | None = None
        while True:
            page: Any = await self._call(
                operation, *variables, **asked, cursor=cursor, limit=PAGE_MAX
            )
            yield page
            if (cursor := page.next) is None:
                return

    async def _content(self, method: str, path: str, body: Any, wait: str | float | None) -> Any:
        """Send a request; return the JSON of the answer, None if it has no body."""
        address = f"{self._url}{path}"
        seconds = SECONDS_MAX + float(wait or 0.0)
        session = self._session if wait is None else self._waiting
        headers = self._headers(body)
        status, content = await self._answer(session, method, address, body, headers, seconds)
        if status == HTTPStatus.UNAUTHORIZED and isinstance(self._token, FileValue):
            before, headers[TOKEN_HEADER] = headers[TOKEN_HEADER], self._token(again=True)
            if headers[TOKEN_HEADER] != before:
                status, content = await self._answer(
                    session, method, address, body, headers, seconds
                )
        if not 200 <= status < 300:
            raise refusal_of(status, content if isinstance(content, dict) else {})
        return content

    async def _answer(
        self,
        session: aiohttp.ClientSession,
        method: str,
        address: str,
        body: Any,
        headers: dict[str, str],
        seconds: float,
    ) -> tuple[int, Any]:
        """Send a request once; return status and content. Raises UnreachableError."""
        try:
            async with session.request(
                method,
                address,
                data=None if body is None else msgspec.json.encode(body),
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as answer:
                sent = await read_answer(answer, ANSWER_BYTES_MAX)
                return answer.status, json_of(sent, VALUES_MAX) if sent.strip() else None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            reason = f"no answer from {shown_url(self._url)}: {reason_of(error)}"
            raise UnreachableError(reason) from error
