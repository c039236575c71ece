"""Speaks HTTP for the double: Nova's API, with a Keystone that has it in its catalog."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.support.listening import Listener
from tests.support.nova_double.api import Api

SECRET = "token-of-an-administrator"
PASSWORD = "correct horse"
VERSION = "OpenStack-API-Version"
ASKED = "compute 2.79"


class NovaDouble:
    """A double of Nova on a free port. Asynchronous context manager.

    `requests` has the paths that were asked, `busiest` the most at one moment. `busy`: how many
    requests are refused first, with 429; `closed`: how many logins are, with 503. `ironic` is the
    address of an Ironic for the catalog, `compute` that of another Nova.
    """

    def __init__(self, api: Api, ironic: str = "") -> None:
        self.api, self.ironic, self.compute = api, ironic, ""
        self.requests: list[str] = []
        self.logins = self.closed = self.busy = self.busiest = 0
        self.valid = SECRET
        self._now = 0
        self.before: Callable[[str], None] = _nothing
        """Called with each path before it is answered."""

    async def __aenter__(self) -> "NovaDouble":
        application = web.Application()
        application.router.add_get("/v3", self._version)
        application.router.add_post("/v3/auth/tokens", self._login)
        application.router.add_get("/v3/auth/tokens", self._validate)
        application.router.add_get("/v2.1/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self._listener = Listener(0)
        await web.SockSite(self._runner, self._listener).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.stop(self._runner)

    def clouds(self, name: str) -> dict[str, Any]:
        """Return a clouds.yaml with this cloud."""
        auth = {
            "auth_url": f"{self.url}/v3",
            "username": "admin",
            "password": PASSWORD,
            "project_name": "admin",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        return {"clouds": {name: {"auth": auth, "region_name": "here"}}}

    async def _version(self, _: web.Request) -> web.Response:
        links = [{"rel": "self", "href": f"{self.url}/v3"}]
        return web.json_response({"version": {"id": "v3.14", "status": "stable", "links": links}})

    async def _login(self, request: web.Request) -> web.Response:
        if self.closed:
            self.closed -= 1
            return web.json_response({"error": {"code": 503, "message": "later"}}, status=503)
        user = (await request.json())["auth"]["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            return web.json_response({"error": {"code": 401, "message": "no"}}, status=401)
        self.logins += 1
        headers = {"X-Subject-Token": self.valid}
        return web.json_response({"token": self._token()}, status=201, headers=headers)

    async def _validate(self, request: web.Request) -> web.Response:
        """Say of whom a token is, as services ask."""
        if request.headers.get("X-Subject-Token") != self.valid:
            return web.json_response({"error": {"code": 404}}, status=404)
        return web.json_response({"token": self._token()})

    def _token(self) -> dict[str, Any]:
        catalog = [
            _service("identity", f"{self.url}/v3"),
            _service("compute", self.compute or f"{self.url}/v2.1"),
        ]
        if self.ironic:
            catalog.append(_service("baremetal", self.ironic))
        domain = {"id": "default", "name": "Default"}
        return {
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "methods": ["password"],
            "catalog": catalog,
            "user": {"id": "u", "name": "admin", "domain": domain},
            "project": {"id": "admin", "name": "admin", "domain": domain},
            "roles": [{"id": name, "name": name} for name in ("admin", "member", "reader")],
        }

    async def _answer(self, request: web.Request) -> web.Response:
        self._now += 1
        self.busiest = max(self.busiest, self._now)
        await asyncio.sleep(0)
        self._now -= 1
        target = request.raw_path.removeprefix("/v2.1")
        if request.headers.get("X-Auth-Token") != self.valid:
            return web.json_response({"error": {"code": 401}}, status=401)
        if request.headers.get(VERSION) != ASKED:
            return web.json_response({"computeFault": {"code": 406}}, status=406)
        if self.busy:
            self.busy -= 1
            return web.json_response({"overLimit": {}}, status=429, headers={"Retry-After": "0"})
        self.requests.append(target)
        self.before(target)
        status, content = self.api.answer(target)
        return web.json_response(content, status=status)


def _nothing(_: str) -> None:
    """Do nothing."""


def _service(kind: str, url: str) -> dict[str, Any]:
    endpoint = {"interface": "public", "region": "here", "region_id": "here", "url": url, "id": "e"}
    return {"type": kind, "name": kind, "id": kind, "endpoints": [endpoint]}
