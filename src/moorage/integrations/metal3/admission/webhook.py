"""Serves the webhook: `POST /pause` answers reviews, `GET /healthz` says that it runs."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from socket import socket

from aiohttp import web

from moorage.integrations.answers import json_of
from moorage.integrations.metal3.admission.certificates import Certificates
from moorage.integrations.metal3.admission.review import ReviewError, answered
from moorage.integrations.web_server import served

BODY_BYTES_MAX = 3 << 20
"""Bytes of a review: two hosts, of which each has at most 1.5 MiB in etcd."""

BODY_SECONDS = 4.0
"""How long a body may take; the API server waits 5 seconds for the answer."""

SMALL_BYTES = 1 << 16
"""Bytes of a body that needs no turn: most are shorter, and a connection has buffers as large."""

LARGE_MAX = 16
"""Larger bodies that are read at the same time; others wait for their turn. Slow clients, which
need no rights, can use up these turns; reviews with small bodies are answered nevertheless."""

VALUES_MAX = 200_000
"""Values in a review: each takes some 100 bytes of memory, and holds the event loop."""

CONNECTIONS_MAX = 1_000
"""API servers open one for each review under way."""

KEEPALIVE_SECONDS = 75.0
CLOSE_SECONDS = 5.0


class Webhook:
    """Answers reviews. `governor` is the user name of the governor."""

    def __init__(self, governor: str) -> None:
        """Prepare."""
        self._governor = governor
        self._large = asyncio.Semaphore(LARGE_MAX)

    def application(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post("/pause", self._review)
        app.router.add_get("/healthz", self._healthy)
        return app

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _review(self, request: web.Request) -> web.Response:
        async with AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await self._read(request, turn)
            except TimeoutError:
                text = f"the body must be here within {BODY_SECONDS:.0f} seconds\n"
                return web.Response(status=HTTPStatus.REQUEST_TIMEOUT, text=text)
            except ConnectionError:
                # Nobody reads this: without it, the log would have a traceback.
                return web.Response(status=HTTPStatus.BAD_REQUEST)
            return self._answered(body)

    async def _read(self, request: web.Request, turn: AsyncExitStack) -> bytes:
        """Read a body; `turn` ends when the answer is there."""
        body = bytearray()
        async for piece in request.content.iter_any():
            before = len(body)
            body += piece
            if len(body) > BODY_BYTES_MAX:
                raise web.HTTPRequestEntityTooLarge(BODY_BYTES_MAX, len(body))
            if before <= SMALL_BYTES < len(body):
                await turn.enter_async_context(self._large)
        return bytes(body)

    def _answered(self, body: bytes) -> web.Response:
        # One after the other: the memory of decoded reviews does not add up.
        try:
            return web.json_response(answered(json_of(body, VALUES_MAX), self._governor))
        except ReviewError as error:
            text = f"{error}\n"
        except ValueError as error:
            text = f"the body must be JSON: {error}\n"
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=text)


@asynccontextmanager
async def webhook_served(
    governor: str, certificate: Path, key: Path, sockets: Collection[socket]
) -> AsyncIterator[None]:
    """Serve the webhook on sockets that listen, as long as this is entered.

    Raises PemError.
    """
    offered = Certificates(certificate, key)
    async with served(
        Webhook(governor).application(),
        sockets,
        CONNECTIONS_MAX,
        offered.server,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=CLOSE_SECONDS,
    ):
        yield
