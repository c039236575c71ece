"""An Ironic whose answers are twisted on their way: what a broken or hostile one could send."""

import json
from collections.abc import Callable
from typing import Any, Self

import aiohttp
from aiohttp import web

Twist = Callable[[str, Any], Any]
"""Gets the path and the document of an answer; returns the document that is sent, its bytes, or
a whole answer."""

PASSED = ("Date", "X-OpenStack-Ironic-API-Maximum-Version")


class TwistedIronic:
    """Passes requests on to an Ironic, and twists the answers. Asynchronous context manager."""

    def __init__(self, ironic: str, twist: Twist | None = None) -> None:
        self._ironic = ironic
        self.twist = twist
        self.asked: list[str] = []
        """The targets of all requests."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, http: web.Request) -> web.Response:
        self.asked.append(http.path_qs)
        headers = {name: value for name, value in http.headers.items() if name != "Host"}
        async with self._session.get(f"{self._ironic}{http.path_qs}", headers=headers) as answer:
            status, body = answer.status, await answer.read()
            passed = {name: answer.headers[name] for name in PASSED if name in answer.headers}
        if self.twist is not None and http.path != "/v1":
            twisted = self.twist(http.path, json.loads(body))
            if isinstance(twisted, web.Response):
                return twisted
            body = twisted if isinstance(twisted, bytes) else json.dumps(twisted).encode()
        return web.Response(status=status, headers=passed, body=body)
