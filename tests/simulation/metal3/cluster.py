"""A cluster in memory: the doubles of its API server and of metal3's operator, without sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import urlencode

import aiohttp

from moorage.integrations.metal3.admission_decision import pauses
from moorage.integrations.metal3.hosts import OWN, PAUSED
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import Program
from tests.support.bmo_double.book import BUSY
from tests.support.bmo_double.memory_nodes import SECONDS, MemoryNodes
from tests.support.bmo_double.nodes import Seen
from tests.support.bmo_double.operator import Operator, Settings
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import Answered, Kubernetes, Object
from tests.support.kubernetes_double.admission import Asked
from tests.support.kubernetes_double.kinds import HOSTS
from tests.support.kubernetes_double.reads import Reads
from tests.support.kubernetes_double.requests import Received
from tests.support.kubernetes_double.server import KubernetesDouble
from tests.support.kubernetes_double.status import Refused
from tests.support.kubernetes_double.storage import Change
from tests.support.kubernetes_double.writes import Writes

GOVERNOR = "governor"
NAMESPACE = "metal3"
ADMISSION = "admissionregistration.k8s.io/v1"
POLICY: Object = {
    "apiVersion": ADMISSION,
    "kind": "MutatingAdmissionPolicy",
    "metadata": {"name": "pause"},
    "spec": {},
}
BINDING: Object = {
    "apiVersion": ADMISSION,
    "kind": "MutatingAdmissionPolicyBinding",
    "metadata": {"name": "pause"},
    "spec": {"policyName": "pause"},
}


class Cluster:
    """The API server. `away`: it answers nobody. `stored` is called with each write of a host."""

    def __init__(self, stored: Callable[[str, Change], None]) -> None:
        self.double = KubernetesDouble(engine=_paused)
        self.double.put(POLICY)
        self.double.put(BINDING)
        number = count(1)
        storage = self.double.storage
        self.writes = Writes(storage, self.double.admission, lambda: f"uid-{next(number):04}")
        self.reads = Reads(storage)
        self.away = False
        self.cuts = 0
        self._stored = stored

    def host(self, name: str) -> Object | None:
        """Return a host as it is stored; None: there is none."""
        return self.double.storage.get((HOSTS.group, HOSTS.plural, NAMESPACE, name))

    def forget(self) -> None:
        """Cut all watches and forget the history: each gets 410 if it has missed something."""
        self.cuts += 1
        self.double.forget()

    async def answer(
        self, user: str, method: str, path: str, kind: str, body: bytes
    ) -> tuple[int, Any]:
        """Carry out a request; return status and object."""
        headers = {"content-type": kind, "user-agent": f"{user}/1"}
        request = Received(method, path, headers, body, user)
        storage = self.double.storage
        version = storage.version
        try:
            return 200, await self._carried_out(request)
        except Refused as refused:
            return refused.code, refused.body
        finally:
            for change in storage.after(version):
                if change.key[:2] == (HOSTS.group, HOSTS.plural):
                    self._stored(user, change)

    async def _carried_out(self, request: Received) -> Any:
        match request.verb:
            case "get":
                return self.reads.get(request)
            case "list":
                return self.reads.page(request)
            case "create":
                return await self.writes.create(request)
            case "update":
                return await self.writes.update(request)
            case "patch":
                return await self.writes.patch(request)
            case "delete":
                return self.writes.delete(request)
        raise AssertionError(request.verb)


def _paused(_policy: Object, asked: Asked, wanted: Object) -> Object:
    """Do what the policy does; its CEL is held to the same decision by `make metal3`."""
    if asked.target.kind is not HOSTS or asked.target.part:
        return wanted
    if pauses(wanted, asked.old, asked.user, GOVERNOR, asked.manager):
        wanted["metadata"]["annotations"] = {
            **(wanted["metadata"].get("annotations") or {}),
            PAUSED: OWN,
        }
    return wanted


class VirtualKubernetes(Kubernetes):
    """The client of the tests and of the operator's double, in memory."""

    def __init__(self, world: Any, user: str) -> None:
        super().__init__("", name=user)
        self._world, self._user = world, user

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request; return the object in the answer. Raises Answered."""
        kind = more.pop("type", "application/json")
        sent = b"" if body is None else json.dumps(body).encode()
        await self._travel()
        path = f"{path}?{urlencode(more)}" if more else path
        status, found = await self._world.cluster.answer(self._user, method, path, kind, sent)
        await self._travel()
        if status >= 400:
            raise Answered(status, found)
        return found

    async def watch(self, path: str, **query: Any) -> AsyncIterator[Object]:
        """Yield the events of a watch until it is cut."""
        await self._travel()
        cluster = self._world.cluster
        words = urlencode({"watch": "1", **query})
        request = Received("GET", f"{path}?{words}", {}, b"", self._user)
        cuts = cluster.cuts
        async for event in cluster.reads.watch(request):
            if cluster.cuts != cuts or cluster.away:
                raise aiohttp.ClientPayloadError
            yield event

    async def _travel(self) -> None:
        await passed(self._world.random.uniform(0.0005, 0.03))
        if self._world.cluster.away:
            raise aiohttp.ClientConnectionError


class WatchedNodes(MemoryNodes):
    """Nodes that say when they begin to work and when they work no more."""

    failures: dict[str, int]
    """How many of the next deployments of a node fail."""
    began: Callable[[str], None]
    over: Callable[[str], None]
    deploys: Callable[[str], None]
    """Is called when a node begins to get an image, after `began`."""

    def fails_now(self, name: str) -> bool:
        left = self.failures.get(name, 0)
        self.failures[name] = max(0, left - 1)
        return left > 0

    def _set(self, node: Seen) -> None:
        was = self.book.states.get(node.name) in BUSY
        super()._set(node)
        if node.state in BUSY and not was:
            self.began(node.name)
        if node.state == "deploying":
            self.deploys(node.name)
        if was and node.state not in BUSY:
            self.over(node.name)


def nodes_of(world: Any, scale: float) -> WatchedNodes:
    """Return nodes whose work takes this many times its usual seconds."""
    nodes = WatchedNodes(
        Agenda(1.0), {state: seconds * scale for state, seconds in SECONDS.items()}
    )
    nodes.failures = {}
    return nodes


class Operating(Program):
    """metal3's operator."""

    def __init__(self, world: Any, settings: Settings) -> None:
        super().__init__(world, "bmo")
        self.settings = settings

    def _start(self) -> None:
        self.process.start(self._run())

    async def _run(self) -> None:
        api, nodes = VirtualKubernetes(self.world, "bmo"), self.world.nodes
        self.operator = Operator(api, nodes.agenda, nodes, self.settings)
        with suppress(asyncio.CancelledError):
            async with self.operator:
                await asyncio.Event().wait()
