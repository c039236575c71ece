"""Serves an application of aiohttp on sockets, with limits on its connections."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from socket import socket
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from moorage.integrations import doorkeeper
from moorage.integrations.doorkeeper import Doorkeeper


class _WithoutRefused(logging.Filter):
    """Drops what aiohttp says of requests that are not HTTP.

    It would be a traceback for each, with the line that is not valid: perhaps a token.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is of anything else."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


server_log = logging.getLogger("moorage.integrations.server")
server_log.addFilter(_WithoutRefused())


KEEPALIVE_SECONDS = 75.0
"""By default aiohttp keeps a silent connection for an hour."""


class WebServer:
    """An application that is served, see `opened`."""

    def __init__(self, runner: web.AppRunner, listeners: Collection[asyncio.Server]) -> None:
        self._runner = runner
        self._listeners = listeners

    async def close_listeners(self) -> None:
        """Accept no more connections; those that are open stay.

        asyncio forgets a connection that it accepts in the turn of the loop in which its server is
        closed (CPython's issue 109564), and its client would wait until the process ends.
        """
        loop = asyncio.get_running_loop()
        for one in self._listeners:
            for listener in one.sockets:
                loop.remove_reader(listener.fileno())
        await asyncio.sleep(0)
        for one in self._listeners:
            one.close()

    async def close_connections(self) -> None:
        """End all connections, after the requests that are being answered."""
        await self._runner.cleanup()


async def opened(
    application: web.Application,
    sockets: Collection[socket],
    most: int,
    tls: ssl.SSLContext | None = None,
    *,
    keepalive: float = KEEPALIVE_SECONDS,
    **words: Any,
) -> WebServer:
    """Begin to serve.

    Args:
        application: what answers.
        sockets: which listen.
        most: connections at the same time.
        tls: how to serve TLS; None: not at all.
        keepalive: seconds that a connection may be silent after an answer.
        words: for `web.AppRunner`.
    """
    doors: list[Doorkeeper] = []

    @web.middleware
    async def spoken(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        doors[0].spoke(transport, has_body=request.body_exists)
        try:
            return await handler(request)
        finally:
            if request.content.at_eof():
                doors[0].answered(transport)

    application.middlewares.append(spoken)
    runner = web.AppRunner(
        application,
        handle_signals=False,
        access_log=None,
        logger=server_log,
        keepalive_timeout=keepalive,
        **words,
    )
    await runner.setup()
    server = runner.server
    assert server is not None
    door = Doorkeeper(server, lambda: [one.transport for one in server.connections], most)
    doors.append(door)
    loop = asyncio.get_running_loop()
    patience = None if tls is None else doorkeeper.HANDSHAKE_SECONDS
    listeners: list[asyncio.Server] = []
    found = WebServer(runner, listeners)
    try:
        for one in sockets:
            listeners.append(
                await loop.create_server(door, sock=one, ssl=tls, ssl_handshake_timeout=patience)
            )
    except BaseException:
        await found.close_listeners()
        await found.close_connections()
        raise
    return found


@asynccontextmanager
async def served(
    application: web.Application,
    sockets: Collection[socket],
    most: int,
    tls: ssl.SSLContext | None = None,
    **words: Any,
) -> AsyncIterator[None]:
    """Serve as long as this is entered; see `opened`."""
    server = await opened(application, sockets, most, tls, **words)
    try:
        yield
    finally:
        await server.close_listeners()
        await server.close_connections()
