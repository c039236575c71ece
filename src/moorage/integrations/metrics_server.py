"""Serves the metrics of a process to Prometheus, and says whether it lives and works."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from http import HTTPStatus
from socket import socket

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from moorage.integrations.web_server import served

CONNECTIONS_MAX = 100

READY_SECONDS = 60.0
"""A governor of which no pass has succeeded for longer is not ready. The alert has the same."""


def ready_seconds(interval: float) -> float:
    """Return how old the last pass of a governor that is ready may be."""
    return max(READY_SECONDS, 3 * interval)


@asynccontextmanager
async def metrics_served(
    registry: CollectorRegistry,
    sockets: Collection[socket],
    not_ready: Callable[[], str | None] | None = None,
) -> AsyncIterator[None]:
    """Answer requests on sockets that listen, as long as this is entered.

    `GET /metrics`, and with `not_ready` also `GET /healthz` and `GET /readyz`: it returns why the
    process does not work as it should; None: it does. Health says only that the process answers:
    to start it again helps nobody while something else does not answer it.
    """

    async def shown(_request: web.Request) -> web.Response:
        body = generate_latest(registry)
        return web.Response(body=body, content_type="text/plain", charset="utf-8")

    async def healthy(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_request: web.Request) -> web.Response:
        why = None if not_ready is None else not_ready()
        if why is None:
            return web.Response(text="ok\n")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text=f"{why}\n")

    app = web.Application()
    app.router.add_get("/metrics", shown)
    if not_ready is not None:
        app.router.add_get("/healthz", healthy)
        app.router.add_get("/readyz", ready)
    async with served(app, sockets, CONNECTIONS_MAX):
        yield
