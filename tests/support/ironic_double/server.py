"""Speaks HTTP for the double: Ironic's API, faults, the log of requests, and control by tests."""

import asyncio
import json
from collections import Counter
from dataclasses import asdict
from email.utils import format_datetime
from typing import Any
from uuid import uuid4

from aiohttp import web

from tests.support.ironic_double import errors
from tests.support.ironic_double.agenda import Agenda
from tests.support.ironic_double.api import Api, Reply, reply_of
from tests.support.ironic_double.documents import LEAST, NEWEST
from tests.support.ironic_double.faults import DROP, NO_WORKER, PROXY, Fault, Faults
from tests.support.ironic_double.fleet import Fleet, date
from tests.support.ironic_double.requests import VERSION, Received
from tests.support.listening import Listener

CONTROL = "/_double/"
REQUEST_ID = ("OpenStack-Request-Id", "X-OpenStack-Request-Id")
LARGEST_BODY = 64 * 1024 * 1024
HTML = "<html><head><title>503 Service Temporarily Unavailable</title></head></html>\r\n"


class IronicDouble:
    """A double of Ironic on a free port. Asynchronous context manager.

    `fleet` has the nodes and what they did, `requests` what was received, `faults` what is to go
    wrong. With a `scale`, that many virtual seconds pass per second; without, `advance` moves time.
    `token`: requests without it are refused.
    """

    def __init__(
        self,
        nodes: int = 0,
        *,
        state: str = "available",
        scale: float | None = None,
        agent: bool = False,
        limit: int = 1_000,
        token: str | None = None,
        port: int = 0,
    ) -> None:
        self.agenda = Agenda(scale)
        self.fleet = Fleet(self.agenda, agent=agent, limit=limit)
        self.faults = Faults()
        self.requests: list[Received] = []
        self.down_until = 0.0
        self._arrived = asyncio.Event()
        self._api, self._token, self._port = Api(self.fleet), token, port
        for number in range(1, nodes + 1):
            name = f"node-{number}"
            self.fleet.add({"name": name, "driver": "fake-hardware"}, state)

    async def start(self) -> None:
        """Listen; `url` is its address from then on."""
        self.agenda.catch_up()
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._handle)
        application.on_response_prepare.append(_without_type)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._listener = Listener(self._port)
        await web.SockSite(self._runner, self._listener).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End it, with all connections."""
        await self._listener.stop(self._runner)

    async def __aenter__(self) -> "IronicDouble":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass; then what has waited for it goes on."""
        self.agenda.advance(seconds)
        await asyncio.sleep(0)

    async def received(self, kind: str, number: int = 1) -> None:
        """Return when this many requests of a kind have arrived, answered or not."""
        while self.counts[kind] < number:
            await self._arrived.wait()

    def outage(self, seconds: float) -> None:
        """Answer 503 to everything, for this long."""
        self.down_until = self.agenda.now + seconds

    @property
    def busy_history(self) -> list[tuple[float, str, str]]:
        """When which node has entered which state."""
        return [(change.time, change.node, change.state) for change in self.fleet.history]

    @property
    def counts(self) -> Counter[str]:
        """How many requests of each kind were received."""
        return Counter(request.kind for request in self.requests)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        self.agenda.catch_up()
        if http.raw_path.startswith(CONTROL):
            return await self._control(http)
        headers = {name.lower(): value for name, value in http.headers.items()}
        body = await http.read()
        request = Received(self.agenda.now, http.method, http.raw_path, headers, body)
        self.requests.append(request)
        self._arrived.set()
        self._arrived = asyncio.Event()
        reply = self._barred(request) or await self._with_faults(request)
        if reply is None:
            if http.transport is not None:
                http.transport.abort()
            return web.Response(status=500)
        reply.headers.setdefault("Date", format_datetime(date(self.agenda.now), usegmt=True))
        return _response(reply, request)

    def _barred(self, request: Received) -> Reply | None:
        """Return why a request is not even looked at; None: it is."""
        if self.agenda.now < self.down_until:
            return Reply(503, {"error_message": "Service Unavailable"}, versioned=False)
        if self._token is not None and request.headers.get("x-auth-token") != self._token:
            text = "The request you have made requires authentication."
            members = {"error": {"code": 401, "title": "Unauthorized", "message": text}}
            return reply_of(errors.Refused(401, members, versions="no"), request)
        return None

    async def _with_faults(self, request: Received) -> Reply | None:
        """Return the answer; None: the connection is closed without one."""
        fault = self.faults.next(request.kind, request.node)
        if fault is None:
            return self._api.answer(request)
        reply = None
        if fault.work == "late":
            self.agenda.at(fault.late, lambda: self._api.answer(request))
        if fault.work == "first":
            reply = self._api.answer(request)
        if fault.wait > 0:
            last = fault.work == "last"
            late = await self.agenda.wait(
                fault.wait, lambda: self._api.answer(request) if last else None
            )
            reply = reply or late
        elif fault.work == "last":
            reply = self._api.answer(request)
        if fault.answer == DROP:
            return None
        if fault.answer == PROXY:
            return Reply(503, HTML, versioned=False)
        if fault.answer == NO_WORKER:
            return reply_of(errors.no_worker(), request)
        if fault.answer is not None or reply is None:
            return reply_of(errors.of_status(fault.answer or 500), request)
        return reply

    async def _control(self, http: web.Request) -> web.Response:
        """Do what a test in another process wants of the double."""
        wanted: dict[str, Any] = json.loads(await http.read() or b"{}")
        match http.path.removeprefix(CONTROL):
            case "advance":
                await self.advance(wanted["seconds"])
            case "fault":
                self.faults.pending.append(Fault(**wanted))
            case "outage":
                self.outage(wanted["seconds"])
            case "restart":
                self.fleet.restart()
            case "lock":
                self.fleet.lock(**wanted)
            case "fail":
                self.fleet.find(wanted["node"]).fails = True
            case "seconds":
                self.fleet.seconds.update(wanted)
            case "touch":
                for node in [*self.fleet.nodes.values()][:: wanted.get("every", 1)]:
                    node.power = wanted.get("power", node.power)
                    self.fleet.touch(node, **wanted.get("members", {}))
            case "history":
                pass
            case _:
                raise web.HTTPNotFound
        return web.json_response(self._history() if http.method == "GET" else {})

    def _history(self) -> dict[str, Any]:
        return {
            "now": self.agenda.now,
            "busiest": self.fleet.busiest,
            "changes": [asdict(change) for change in self.fleet.history],
            "counts": self.counts,
            "requests": [request.log() for request in self.requests],
        }


def _response(reply: Reply, request: Received) -> web.Response:
    headers = {**dict.fromkeys(REQUEST_ID, f"req-{uuid4()}"), **reply.headers}
    if reply.versioned:
        prefix = VERSION.removesuffix("Version")
        headers[f"{prefix}Minimum-Version"] = f"1.{LEAST}"
        headers[f"{prefix}Maximum-Version"] = f"1.{NEWEST}"
        if reply.status != 406 or request.supported:
            headers[VERSION] = f"1.{request.minor}"
    if reply.body is None:
        return web.Response(status=reply.status, headers=headers)
    if isinstance(reply.body, str):
        headers["Content-Type"] = "text/html"
        return web.Response(status=reply.status, headers=headers, body=reply.body.encode())
    headers["Content-Type"] = "application/json"
    return web.Response(status=reply.status, headers=headers, body=json.dumps(reply.body).encode())


async def _without_type(_: web.Request, response: web.StreamResponse) -> None:
    """Ironic names no type of an empty body."""
    if response.content_length == 0 or response.status in (202, 204):
        response.headers.popall("Content-Type", None)
