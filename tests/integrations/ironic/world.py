"""A real Moorage server, a double of Ironic whose time a test moves, and governors of both."""

import asyncio
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.ironic.governor import Governor
from moorage.integrations.ironic.nodes import NodeReader
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.ironic.wishes import WANT
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import Lease, PoolWanted
from tests.e2e.support.server import Server, serve
from tests.support import warm
from tests.support.ironic_double.fleet import Node
from tests.support.ironic_double.server import IronicDouble

POOL = "deploy"
DEPLOY_SECONDS = 300.0
Play = Callable[["World"], Awaitable[None]]

PATIENCE_SECONDS = 30.0
"""How long a test waits for what must happen."""


@dataclass
class World:
    """Both sides of a governor."""

    server: Server
    double: IronicDouble
    operator: Admission
    token: str
    rules: Rules

    @asynccontextmanager
    async def governor(
        self,
        *,
        project_wishes: bool = False,
        double: IronicDouble | None = None,
        name: str | None = None,
    ) -> AsyncIterator[Governor]:
        """Yield one more governor, by default of the world's Ironic; it ends as after SIGTERM."""
        async with self.host_leases(double, name) as (host_leases, nodes):
            governor = Governor(host_leases, nodes, self.rules, project_wishes=project_wishes)
            try:
                yield governor
            finally:
                await governor.close()

    @asynccontextmanager
    async def host_leases(
        self, double: IronicDouble | None = None, name: str | None = None
    ) -> AsyncIterator[tuple[HostLeases, NodeReader]]:
        """Yield access to the leases, and to the nodes, by default of the world's Ironic."""
        async with (
            LeaseApi(self.server.url, self.token) as api,
            NodeReader((double or self.double).url) as nodes,
        ):
            yield HostLeases(api, name), nodes

    def node(self, number: int) -> Node:
        """Return a node."""
        return self.double.fleet.find(f"node-{number}")

    def wish(self, *numbers: int, target: str = "active") -> None:
        """Let nodes wish for something."""
        for number in numbers:
            self.extra(number)[WANT] = {"target": target}

    def extra(self, number: int) -> dict[str, Any]:
        """Return the field `extra` of a node."""
        extra: dict[str, Any] = self.node(number).members.setdefault("extra", {})
        return extra

    def entered(self, state: str) -> list[str]:
        """Return which nodes have entered a state, each as often as it has."""
        return [name for _, name, entered in self.double.busy_history if entered == state]

    async def started(self, number: int, progress: Callable[[], Awaitable[object]]) -> None:
        """Return when Ironic has begun this many deployments."""
        await until(lambda: len(self.entered("deploying")) == number, progress)

    @asynccontextmanager
    async def process(self, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield `moorage ironic govern` as a process of its own, which is killed at the end."""
        words = ["--ironic", self.double.url, "--url", self.server.url, "--pool", POOL]
        process = await warm.fork_async(
            ["ironic", "govern", *words, *options], {**os.environ, "MOORAGE_TOKEN": self.token}
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def leases(self, state: str = "granted") -> list[Lease]:
        """Return leases, of whatever owner."""
        return list(self.operator.leases(POOL, state))


@asynccontextmanager
async def world(
    folder: Path, nodes: int, limit: int, *, ttl: float = 60.0, agent: bool = False
) -> AsyncIterator[World]:
    """Yield a world with nodes that are available, and a pool."""
    database = folder / "moorage.sqlite"
    with serve(database) as server:
        secret = Path(f"{database}.token").read_text().strip()
        transport = Transport(server.url, secret)
        operator = Admission(transport)
        operator.pool_put(POOL, PoolWanted(limit=limit, expire="keep", ttl=ttl))
        scope = {"pool": [POOL, f"{POOL}/*"]}
        wanted = {"name": "govern", "role": "governor", "scope": scope}
        made = transport.request("POST", "/v1/tokens", wanted)
        async with IronicDouble(nodes, agent=agent) as double:
            yield World(server, double, operator, made["token"], Rules.of_pool(POOL))


def played(
    nodes: int, limit: int, *, ttl: float = 60.0, agent: bool = False
) -> Callable[[Play], Callable[[Path], None]]:
    """Make a test of a coroutine that gets a world."""

    def decorate(play: Play) -> Callable[[Path], None]:
        @functools.wraps(play)
        def test(tmp_path: Path) -> None:
            async def run() -> None:
                async with world(tmp_path, nodes, limit, ttl=ttl, agent=agent) as it:
                    await play(it)

            asyncio.run(run())

        del test.__dict__["__wrapped__"]  # pytest would look for its parameters
        return test

    return decorate


async def until(condition: Callable[[], bool], progress: Callable[[], Awaitable[object]]) -> None:
    """Return when a condition holds; `progress` is awaited in between. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await progress()
