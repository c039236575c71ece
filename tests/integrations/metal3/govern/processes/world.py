"""A real Moorage, governors as processes, and the doubles of an API server and of an operator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import yaml
from aiohttp import web

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.metal3.admission_webhook import webhook_served
from moorage.integrations.metal3.install import manifest
from moorage.integrations.sockets import bound
from moorage.wire.admission import Lease, PoolWanted
from tests.integrations.metal3.govern.process import governing
from tests.support.admission_cases import GOVERNOR
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import PAUSED, annotations, state
from tests.support.bmo_double.memory_nodes import MemoryNodes
from tests.support.bmo_double.operator import Operator, Settings
from tests.support.certificates import certificate
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import Kubernetes, Object, hosts_in
from tests.support.kubernetes_double.requests import Received
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.warm import serve

ALL = hosts_in("metal3")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
POOL = "deploy"
SHORT_GRACE = (
    "import runpy, sys\n"
    "from moorage.integrations.provisioning import unit_release\n"
    "unit_release.WIRE_GRACE_SECONDS, unit_release.SEND_SECONDS = 6.0, 1.0\n"
    "runpy.run_module('moorage', run_name='__main__')"
)
"""The command, but a request without an answer is believed to arrive for six seconds only, and is
sent within one: otherwise units that a killed process has had stay for a minute and a half."""


class WatchedDouble(KubernetesDouble):
    """An API server that says when a governor's request arrives, and when it is carried out."""

    governed = 0
    """Requests of governors."""
    arrived: Callable[[int], None] = staticmethod(lambda _: None)
    carried_out: Callable[[int], None] = staticmethod(lambda _: None)

    async def _answer(self, http: web.Request, request: Received) -> web.StreamResponse:
        if request.manager in ("bmo", "people", "test", "observer"):
            return await super()._answer(http, request)
        self.governed += 1
        number = self.governed
        self.arrived(number)
        answer = await super()._answer(http, request)
        self.carried_out(number)
        return answer


class World:
    """All of one test. Asynchronous context manager; `pools` has the limit of each."""

    def __init__(
        self,
        folder: Path,
        pools: Mapping[str, int],
        *,
        failing: float = 0.0,
        scale: float = 100.0,
    ) -> None:
        self._folder, self._pools = folder, pools
        self._stack = AsyncExitStack()
        agenda = Agenda(scale)
        self.nodes = MemoryNodes(agenda, failing=failing)
        self.double = WatchedDouble()
        self.versions: list[Object] = []
        """Every version of a host that the observer's watch has shown."""

    async def __aenter__(self) -> Self:
        self._database = self._folder / "moorage.sqlite"
        self.moorage = await asyncio.to_thread(serve, self._database)
        self._stack.callback(self._stop)
        secret = Path(f"{self._database}.token").read_text().strip()
        transport = Transport(self.moorage.url, secret)
        self.admission = Admission(transport)
        for name, limit in self._pools.items():
            self.admission.pool_put(name, PoolWanted(limit=limit, expire="keep", ttl=60.0))
        wanted = {"name": "govern", "role": "governor", "scope": {"pool": [*self._pools]}}
        self.token = transport.request("POST", "/v1/tokens", wanted)["token"]
        await self._stack.enter_async_context(self.double)
        bmo = await self._stack.enter_async_context(Kubernetes(self.double.url, name="bmo"))
        people = Kubernetes(self.double.url, name="people")
        self.api = await self._stack.enter_async_context(people)
        self.operator = Operator(bmo, self.nodes.agenda, self.nodes, Settings(workers=8))
        await self._stack.enter_async_context(self.operator)
        await self._admission()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _admission(self) -> None:
        """Serve our webhook, as the shipped configuration says."""
        folder = self._folder / "tls"
        folder.mkdir()
        trusted = certificate(folder, "DNS:moorage-webhook.moorage.svc", "IP:127.0.0.1")
        sockets = bound("127.0.0.1:0")
        files = folder / "cert.pem", folder / "key.pem"
        await self._stack.enter_async_context(webhook_served(GOVERNOR, *files, sockets))
        values = {
            "namespace": "moorage",
            "failure_policy": "Fail",
            "failure_reason": "",
            "image": "i",
        }
        *_, found = yaml.safe_load_all(manifest("webhook", values))
        found["webhooks"][0]["clientConfig"]["caBundle"] = trusted.bundle
        self.double.admission.services["moorage", "moorage-webhook"] = sockets[0].getsockname()[:2]
        await self.api.create(WEBHOOKS, found)

    def _stop(self) -> None:
        self.moorage.stop()

    async def restart_moorage(self) -> None:
        """Kill Moorage, and start it again at the same address."""
        where = urlsplit(self.moorage.url).netloc
        await asyncio.to_thread(self.moorage.stop)
        self.moorage = await asyncio.to_thread(serve, self._database, "--listen", where)

    @asynccontextmanager
    async def observed(self) -> AsyncIterator[None]:
        """Collect what a watch shows of every version of a host; it may be cut by a test."""

        async def watch() -> None:
            async with Kubernetes(self.double.url, name="observer") as api:
                async for event in api.watch(ALL, timeoutSeconds="1800"):
                    self.versions.append(event["object"])

        task = asyncio.create_task(watch())
        try:
            await self.double.received("watch", "baremetalhosts", 2)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def governor(
        self, *options: str, short_grace: bool = False
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield `moorage metal3 govern` as a process, which is killed at the end."""
        needs = () if "--rules" in options else ("--pool", POOL)
        options = (*needs, "--url", self.moorage.url, "--interval", "0.2", *options)
        program = ("-c", SHORT_GRACE) if short_grace else ("-m", "moorage")
        async with governing(
            self._folder, self.double.url, *options, token=self.token, program=program
        ) as process:
            yield process

    def host(self, name: str) -> Object | None:
        """Return a host as it is stored; None: there is none."""
        return self.double.storage.get(("metal3.io", "baremetalhosts", "metal3", name))

    def number(self, names: list[str], wanted: str) -> int:
        """Return how many of these hosts are in a state."""
        return sum(state(self.host(name) or {}) == wanted for name in names)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds; it is looked at after each write."""
        while not holds():
            await self.double.storage.changed(0.1)

    async def image(self, name: str, url: str | None) -> None:
        """Write an image, and nothing else."""
        await self.api.merge(f"{ALL}/{name}", {"spec": {"image": url and {"url": url}}})

    def leases(self) -> list[Lease]:
        """Return all leases by which hosts have units."""
        return list(self.admission.leases(None, "granted"))

    def check_pauses(self) -> None:
        """In every version that was seen, a host that gets our pause has a reason to, and the
        pause of somebody else stays what it is.
        """
        before: dict[str, str | None] = {}
        for found in self.versions:
            name, now = found["metadata"]["name"], annotations(found).get(PAUSED)
            was = before.get(name)
            if now == "moorage" != was:
                assert hosts.may_be_paused(found), found
            assert was in (None, "moorage") or now == was, found
            before[name] = now
