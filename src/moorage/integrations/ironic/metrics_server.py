"""Serves the metrics of a process to Prometheus."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from socket import socket

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from moorage.integrations.server_log import server_log


@asynccontextmanager
async def metrics_served(
    registry: CollectorRegistry, sockets: Collection[socket]
) -> AsyncIterator[None]:
    """Answer `GET /metrics` on sockets that listen, as long as this is entered."""

    async def shown(_request: web.Request) -> web.Response:
        body = generate_latest(registry)
        return web.Response(body=body, content_type="text/plain", charset="utf-8")

    app = web.Application()
    app.router.add_get("/metrics", shown)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, logger=server_log)
    await runner.setup()
    try:
        for one in sockets:
            await web.SockSite(runner, one).start()
        yield
    finally:
        await runner.cleanup()
