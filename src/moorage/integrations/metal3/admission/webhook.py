"""Serves the webhook: `POST /pause` answers reviews, `GET /healthz` says that it runs."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from socket import socket

from aiohttp import web

from moorage.integrations.answers import json_of
from moorage.integrations.metal3.admission.certificates import Certificates
from moorage.integrations.metal3.admission.review import ReviewError, answered
from moorage.integrations.server_log import server_log

BODY_BYTES_MAX = 3 << 20
"""Bytes of a review: two hosts, of which each has at most 1.5 MiB in etcd."""

BODY_SECONDS = 10.0
"""How long a body may take; the API server waits 5 seconds for the answer."""

REVIEWS_MAX = 64
"""Reviews that are read at the same time; others wait for their turn."""

TURN_SECONDS = 4.0
"""How long: an API server carries out 200 writes at once by default, and refuses a write whose
review was not answered."""

KEEPALIVE_SECONDS = 75.0
CLOSE_SECONDS = 5.0


class Webhook:
    """Answers reviews. `governor` is the user name of the governor."""

    def __init__(self, governor: str) -> None:
        """Prepare."""
        self._governor = governor
        self._free = asyncio.Semaphore(REVIEWS_MAX)

    def application(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post("/pause", self._review)
        app.router.add_get("/healthz", self._healthy)
        return app

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _review(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            text = f"{REVIEWS_MAX} reviews are being read: try again\n"
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=text)
        try:
            return await self._answered(request)
        finally:
            self._free.release()

    async def _answered(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            text = f"the body must be here within {BODY_SECONDS:.0f} seconds\n"
            return web.Response(status=HTTPStatus.REQUEST_TIMEOUT, text=text)
        except ConnectionError:
            return web.Response(status=HTTPStatus.BAD_REQUEST)  # the API server waits no longer
        try:
            # Large bodies are read beside the event loop.
            review = await asyncio.to_thread(json_of, body)
            return web.json_response(answered(review, self._governor))
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
    runner = web.AppRunner(
        Webhook(governor).application(),
        handle_signals=False,
        access_log=None,
        logger=server_log,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=CLOSE_SECONDS,
    )
    await runner.setup()
    try:
        for one in sockets:
            await web.SockSite(runner, one, ssl_context=offered.server).start()
        yield
    finally:
        await runner.cleanup()
