"""Moorage, a double of Ironic and gates between them and clients, for one test."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen

import aiohttp
from aiohttp import web

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import Lease, PoolWanted
from tests.e2e.support.server import Server
from tests.integrations.ironic.gate import gates
from tests.support.ironic_double.server import IronicDouble
from tests.support.warm import serve

POOL = "deploy"
VERSION = "X-OpenStack-Ironic-API-Version"
UNKNOWN, SDK, COMMAND, OPERATOR = (
    "curl/7.88",
    "openstacksdk/4.22.0 keystoneauth1/5.18.1 python-requests/2.34.2 CPython/3.11.7",
    "python-ironicclient",
    "baremetal-operator gophercloud/v2.1.0",
)


@dataclass(frozen=True)
class Got:
    """An answer: status, headers, and the JSON of its body."""

    status: int
    headers: Any
    content: Any

    @property
    def fault(self) -> str:
        """The text of an error."""
        return str(json.loads(self.content["error_message"])["faultstring"])


class World:
    """All servers of a test. Async context manager."""

    def __init__(self, folder: Path, double: IronicDouble, limit: int = 1) -> None:
        self.double = double
        self._folder = folder
        self._limit = limit
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        database = self._folder / "moorage.sqlite"
        self.moorage = await asyncio.to_thread(serve, database)
        self._stack.push_async_callback(asyncio.to_thread, self.moorage.stop)
        token = Path(f"{database}.token").read_text().strip()
        self.admission = Admission(Transport(self.moorage.url, token))
        self.admission.pool_put(POOL, PoolWanted(limit=self._limit, expire="keep"))
        wanted = {"name": "gate", "role": "governor", "scope": {"pool": [POOL, f"{POOL}/*"]}}
        ask = Request(
            f"{self.moorage.url}/v1/tokens",
            json.dumps(wanted).encode(),
            {"X-Auth-Token": token, "Content-Type": "application/json"},
        )
        with urlopen(ask) as answer:
            self.token = json.loads(answer.read())["token"]
        await self._stack.enter_async_context(self.double)
        many = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self.session = await self._stack.enter_async_context(many)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def gate(
        self, *options: str, moorage: str | None = None, ironic: str | None = None
    ) -> Server:
        """Start a gate, by default of the world's Ironic; it ends with the world."""
        made = await asyncio.to_thread(
            gates.gate,
            ironic or self.double.url,
            *options,
            moorage=moorage or self.moorage.url,
            token=self.token,
        )
        self._stack.push_async_callback(asyncio.to_thread, made.stop)
        return made

    async def ask(
        self,
        url: str,
        node: str,
        target: str,
        agent: str = UNKNOWN,
        version: str = "1.80",
        token: str | None = None,
    ) -> Got:
        """Ask for a provision state."""
        headers = {"User-Agent": agent, VERSION: version}
        if token is not None:
            headers["X-Auth-Token"] = token
        path = f"/v1/nodes/{node}/states/provision"
        async with self.session.put(url + path, json={"target": target}, headers=headers) as got:
            text = await got.read()
            is_json = bool(text) and got.content_type == "application/json"
            return Got(got.status, got.headers.copy(), json.loads(text) if is_json else None)

    async def leases(self, state: str = "granted") -> list[Lease]:
        """Return leases or tickets."""
        return await asyncio.to_thread(lambda: list(self.admission.leases(state=state)))

    async def until(self, holds: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Return when something holds; the test's own time limit ends what never does."""
        async with asyncio.timeout(60.0):
            while not await holds():
                await asyncio.sleep(0)
                await self.tick()

    async def tick(self) -> None:
        """Wait until the double has answered one more request, such as a gate's own."""
        seen = len(self.double.requests)
        while len(self.double.requests) == seen:
            await self.double._arrived.wait()

    async def occupied(self, count: int) -> None:
        """Return when this many leases are granted."""

        async def holds() -> bool:
            return len(await self.leases()) == count

        await self.until(holds)

    async def waiting(self, count: int) -> None:
        """Return when this many tickets wait."""

        async def holds() -> bool:
            return len(await self.leases("waiting")) == count

        await self.until(holds)


@dataclass
class Stop:
    """Where a request to Moorage is stopped: before or after Moorage has carried it out."""

    method: str
    path: str
    after: bool

    def __post_init__(self) -> None:
        self.reached = asyncio.Event()

    def at(self, request: web.Request) -> bool:
        """Return whether a request is the first one that is to be stopped."""
        found = request.method == self.method and re.fullmatch(self.path, request.path)
        return bool(found) and not self.reached.is_set()


class Between:
    """A proxy before Moorage that stops one request for ever. Async context manager.

    `older` seconds are added to the age of each record: as if this time had passed.
    """

    def __init__(self, moorage: str, stop: Stop | None = None) -> None:
        self._moorage, self._stop = moorage, stop
        self.older = 0.0

    def stop_at(self, stop: Stop) -> None:
        """Stop the next such request."""
        self._stop = stop

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._session = aiohttp.ClientSession()
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.Response:
        stop = self._stop if self._stop is not None and self._stop.at(request) else None
        body = await request.read()
        if stop is not None and not stop.after:
            await self._stopped(stop)
        names = ("X-Auth-Token", "Content-Type")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        async with self._session.request(
            request.method, self._moorage + request.raw_path, data=body, headers=headers
        ) as answer:
            content = await answer.read()
        if stop is not None:
            await self._stopped(stop)
        if self.older and b"record_age" in content:
            content = json.dumps(_aged(json.loads(content), self.older)).encode()
        return web.Response(status=answer.status, body=content, content_type=answer.content_type)

    async def _stopped(self, stop: Stop) -> None:
        stop.reached.set()
        await asyncio.Event().wait()


def _aged(content: Any, seconds: float) -> Any:
    if isinstance(content, list):
        return [_aged(one, seconds) for one in content]
    if not isinstance(content, dict):
        return content
    aged = {name: _aged(value, seconds) for name, value in content.items()}
    if aged.get("record_age") is not None:
        aged["record_age"] += seconds
    return aged
