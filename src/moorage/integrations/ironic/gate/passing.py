"""Streams requests that are not decided, and writes answers, with nothing added."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

import aiohttp
from aiohttp import web
from aiohttp.hdrs import CONTENT_TYPE, DATE, SERVER
from aiohttp.http import HttpProcessingError
from multidict import CIMultiDict

from moorage.integrations.ironic.gate.answers import HttpAnswer
from moorage.integrations.ironic.gate.heads import end_to_end
from moorage.integrations.ironic.gate.upstream import Upstream

IDLE_SECONDS = 60.0
"""How long a client may be silent within the body of a request, or not read its answer."""

RATE_MIN = 16 << 10
"""Bytes a second of a body, once a client has been waited for longer than that."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Passed(web.StreamResponse):
    """An answer with exactly these headers."""

    def __init__(self, status: int, reason: str, headers: CIMultiDict[str]) -> None:
        super().__init__(status=status, reason=reason, headers=headers)
        self.absent = [name for name in (DATE, SERVER, CONTENT_TYPE) if name not in headers]


async def without_additions(_request: web.Request, response: web.StreamResponse) -> None:
    """Remove the headers that aiohttp has added; a signal handler of the application."""
    if isinstance(response, Passed):
        for name in response.absent:
            response.headers.popall(name, None)


class BodyError(Exception):
    """The body of a request ended too soon; the message says why."""


class Incoming:
    """The body of a request, as it arrives; `broken` says why it ended too soon."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.present = "Content-Length" in request.headers or "Transfer-Encoding" in request.headers
        self.broken = ""

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body. Raises BodyError."""
        request = self._request
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(CONTINUE)
        waited, received = 0.0, 0
        while True:
            began = monotonic()
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    piece = await request.content.readany()
            except TimeoutError:
                self.broken = "The body stopped arriving."
            except (web.RequestPayloadError, HttpProcessingError):
                self.broken = "The body is not valid."
            else:
                waited += monotonic() - began
                received += len(piece)
                if waited > IDLE_SECONDS and received < waited * RATE_MIN:
                    self.broken = "The body arrives too slowly."
            if self.broken:
                raise BodyError(self.broken)
            if not piece:
                return
            yield piece


async def pass_through(request: web.Request, upstream: Upstream) -> web.StreamResponse:
    """Send a request on and stream its answer back. Raises BodyError, and as `Upstream.open` does.

    If the answer breaks off, so does the connection of the client: it must not take a part for all.
    """
    headers = end_to_end(request.raw_headers)
    incoming = Incoming(request)
    body = incoming.pieces() if incoming.present else None
    try:
        async with upstream.open(request.method, request.raw_path, headers, body) as answer:
            return await _streamed(request, answer)
    except aiohttp.ClientError as error:
        if incoming.broken:
            raise BodyError(incoming.broken) from error
        raise


async def _streamed(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    passed = end_to_end(answer.raw_headers)
    response = Passed(answer.status, answer.reason or "", passed)
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_any():
            async with asyncio.timeout(IDLE_SECONDS):  # for a client that does not read
                await response.write(piece)
    except (aiohttp.ClientError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


async def write(request: web.Request, answer: HttpAnswer) -> web.StreamResponse:
    """Write a whole answer."""
    response = Passed(answer.status, answer.reason, answer.headers)
    await response.prepare(request)
    await response.write(answer.body)
    await response.write_eof()
    return response
