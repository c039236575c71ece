"""Serves an application of aiohttp on sockets, with limits on its connections."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from socket import socket
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from moorage.integrations import doorkeeper
from moorage.integrations.doorkeeper import Doorkeeper
from moorage.integrations.server_log import server_log


@asynccontextmanager
async def served(
    application: web.Application,
    sockets: Collection[socket],
    most: int,
    tls: ssl.SSLContext | None = None,
    **words: Any,
) -> AsyncIterator[None]:
    """Serve as long as this is entered.

    Args:
        application: what answers.
        sockets: which listen.
        most: connections at the same time.
        tls: how to serve TLS; None: not at all.
        words: for `web.AppRunner`.
    """
    doors: list[Doorkeeper] = []

    @web.middleware
    async def spoken(request: web.Request, handler: Handler) -> web.StreamResponse:
        doors[0].spoke(request.transport)
        return await handler(request)

    application.middlewares.append(spoken)
    runner = web.AppRunner(
        application, handle_signals=False, access_log=None, logger=server_log, **words
    )
    await runner.setup()
    server = runner.server
    assert server is not None
    door = Doorkeeper(server, lambda: [one.transport for one in server.connections], most)
    doors.append(door)
    loop = asyncio.get_running_loop()
    patience = None if tls is None else doorkeeper.HANDSHAKE_SECONDS
    listeners = [
        await loop.create_server(door, sock=one, ssl=tls, ssl_handshake_timeout=patience)
        for one in sockets
    ]
    try:
        yield
    finally:
        await closed(listeners)
        await runner.cleanup()


async def closed(listeners: Collection[asyncio.Server]) -> None:
    """Accept no more connections; those that are open stay.

    asyncio forgets a connection that it accepts in the turn of the loop in which its server is
    closed (CPython's issue 109564), and its client would wait until the process ends.
    """
    loop = asyncio.get_running_loop()
    for one in listeners:
        for listener in one.sockets:
            loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)
    for one in listeners:
        one.close()
