"""A real Moorage and governors as processes, on a real API server, beside a double of the operator.

The operator's double works on the real API; its nodes are in memory, and its time runs faster. What
pauses hosts is installed before. Governors have the token of the service account of the manifests,
so exactly its rights.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import aiohttp

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import Lease, PoolWanted
from tests.e2e.support.server import serve
from tests.integrations.metal3.govern.processes.world import POOL, SHORT_GRACE
from tests.kubernetes.cluster import KubernetesCluster
from tests.support.bmo_double.hosts import PAUSED, annotations, state
from tests.support.bmo_double.memory_nodes import MemoryNodes
from tests.support.bmo_double.operator import Operator, Settings
from tests.support.ironic_double.agenda import Agenda
from tests.support.kubernetes_client import MERGE, Answered, Kubernetes, Object, host, hosts_in

ALL = hosts_in("metal3")
IMAGE = "http://images/a.qcow2"
SCALE = 60.0
LOOK_SECONDS = 0.2
CLASS_NAME = re.compile(r"\b[A-Z]\w*(Error|Exception)\b|Traceback")
"""What no line for people has: the name of a class of Python's."""


class World:
    """All of one test. Asynchronous context manager. `hosts` has what a watch shows of each."""

    def __init__(
        self,
        cluster: KubernetesCluster,
        folder: Path,
        *,
        limit: int,
        failing: float = 0.0,
        url: str | None = None,
    ) -> None:
        """`url`: where all clients reach the API server; by default its own address."""
        self.cluster, self._folder, self._limit = cluster, folder, limit
        self._url = url or cluster.url
        self._stack = AsyncExitStack()
        self.nodes = MemoryNodes(Agenda(SCALE), failing=failing)
        self.hosts: dict[str, Object] = {}
        self.shown: Callable[[str, Object], None] = lambda name, found: None
        """Is called with each version of a host that the watch shows."""
        self._changed = asyncio.Event()
        self.log = folder / "governors.log"

    async def __aenter__(self) -> Self:
        database = self._folder / "moorage.sqlite"
        self.moorage = await asyncio.to_thread(serve, database)
        self._stack.callback(self.moorage.stop)
        secret = Path(f"{database}.token").read_text().strip()
        transport = Transport(self.moorage.url, secret)
        self.admission = Admission(transport)
        self.admission.pool_put(POOL, PoolWanted(limit=self._limit, expire="keep", ttl=60.0))
        wanted = {"name": "govern", "role": "governor", "scope": {"pool": [POOL]}}
        self.token = transport.request("POST", "/v1/tokens", wanted)["token"]
        self.api = await self._stack.enter_async_context(self._client("people"))
        bmo = await self._stack.enter_async_context(self._client("bmo"))
        self.operator = Operator(bmo, self.nodes.agenda, self.nodes, Settings(workers=8))
        await self._stack.enter_async_context(self.operator)
        watching = asyncio.create_task(self._watch())
        self._stack.push_async_callback(_ended, watching)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await asyncio.to_thread(self._remove_hosts)

    def _remove_hosts(self) -> None:
        """Remove all hosts: nothing works on them any more."""
        for one in self.cluster.call("GET", ALL)["items"]:
            path = f"{ALL}/{one['metadata']['name']}"
            self.cluster.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
            self.cluster.call("DELETE", path)

    def _client(self, name: str) -> Kubernetes:
        return Kubernetes(self._url, token=self.cluster.token, name=name, tls=self.cluster.tls)

    async def _watch(self) -> None:
        """Follow all hosts; after a lost connection all are listed again."""
        async with self._client("observer") as api:
            while True:
                with suppress(aiohttp.ClientError, OSError, Answered, ValueError):
                    listed = await api.get(ALL)
                    self.hosts = {one["metadata"]["name"]: one for one in listed["items"]}
                    version = listed["metadata"]["resourceVersion"]
                    async for event in api.watch(ALL, resourceVersion=version):
                        if event["type"] in ("ADDED", "MODIFIED"):
                            found = event["object"]
                            name = found["metadata"]["name"]
                            self.hosts[name] = found
                            self.shown(name, found)
                        elif event["type"] == "DELETED":
                            self.hosts.pop(event["object"]["metadata"]["name"], None)
                        self._changed.set()
                await self._more()

    async def _more(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), LOOK_SECONDS)
        self._changed.clear()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds; it is looked at after each change, and at times."""
        while not holds():
            await self._more()

    @asynccontextmanager
    async def governor(self, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield `moorage metal3 govern` as a process, which is killed at the end."""
        config = self.cluster.kubeconfig_of("moorage", "moorage", self._url)
        words = ("metal3", "govern", "--kubeconfig", str(config), "--pool", POOL)
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", SHORT_GRACE, *words),
                *("--url", self.moorage.url, "--interval", "0.5", *options),
                env={**os.environ, "MOORAGE_TOKEN": self.token},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def create(self, names: Iterable[str]) -> None:
        """Create hosts with an image, as people do."""
        await asyncio.gather(*(self.api.create(ALL, host(name, image=IMAGE)) for name in names))

    def provisioned(self, names: Iterable[str]) -> bool:
        """Return whether hosts have their image."""
        return all(state(self.hosts.get(name, EMPTY)) == "provisioned" for name in names)

    def number(self, names: Iterable[str]) -> int:
        """Return how many hosts have their image."""
        return sum(self.provisioned([name]) for name in names)

    def unpaused(self, names: Iterable[str]) -> bool:
        """Return whether no host has a pause."""
        return not any(PAUSED in annotations(self.hosts.get(name, EMPTY)) for name in names)

    def leases(self) -> list[Lease]:
        """Return all leases by which hosts have units."""
        return list(self.admission.leases(POOL, "granted"))

    def check_log(self) -> None:
        """Governors have said nothing false of rights or hosts, and name no class."""
        said = self.log.read_text()
        for wrong in ("cannot be changed", "get no events", "are started"):
            assert wrong not in said, said
        assert not CLASS_NAME.search(said), said

    def report(self) -> str:
        """Return what there is, for an error."""
        states = {name: state(one) for name, one in self.hosts.items()}
        return f"{json.dumps(states)}\n{self.log.read_text()[-4_000:]}"


EMPTY: Object = {"metadata": {}}


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
