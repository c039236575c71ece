"""A real Moorage server, a double of Ironic, and reporters between them."""

import asyncio
import functools
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.request import Request, urlopen

from moorage.client.ledger import Ledger
from moorage.client.reporting import Reporting
from moorage.client.transport import Transport
from moorage.integrations.ironic.nodes import NodeReader
from moorage.integrations.ironic.report.membership import GroupMember
from moorage.integrations.ironic.report.reporter import Reporter
from moorage.integrations.report_api import ReportApi
from moorage.wire.providers import ProviderShown
from tests.e2e.support.server import Server, serve
from tests.support import warm
from tests.support.ironic_double.fleet import Node
from tests.support.ironic_double.server import IronicDouble

GROUP, CONDUCTORS = "ironic", "conductors"
CLASS = "CUSTOM_BAREMETAL"
TTL = 5.0
Play = Callable[["World"], Awaitable[None]]


@dataclass
class World:
    """Both sides of a reporter."""

    server: Server
    double: IronicDouble
    admin: Transport
    secret: str
    """The token of `admin`."""
    token: str
    """That of reporters."""
    database: Path

    def node(self, number: int) -> Node:
        """Return a node."""
        return self.double.fleet.find(f"node-{number}")

    def change(self, number: int, **members: Any) -> None:
        """Change members of a node a second later, as a client of Ironic's does."""
        self.double.agenda.advance(1.0)
        self.double.fleet.touch(self.node(number), **members)

    def providers(self) -> dict[str, ProviderShown]:
        """Return the whole ledger, by UUID."""
        return {one.uuid: one for one in Ledger(self.admin).providers()}

    def reserved(self, number: int) -> int:
        """Return what the ledger says of a node."""
        return self.providers()[self.node(number).uuid].inventories[CLASS].reserved

    def placement(self, method: str, path: str, content: bytes | None = None) -> None:
        """Send a request of the Placement API."""
        headers = {
            "OpenStack-API-Version": "placement 1.39",
            "Content-Type": "application/json",
            "X-Auth-Token": self.secret,
        }
        with urlopen(Request(f"{self.server.url}{path}", content, headers, method=method)):
            pass

    @property
    def reporting(self) -> Reporting:
        """The groups, for an operator."""
        return Reporting(self.admin)

    def changes(self, after: str, *kinds: str) -> list[dict[str, Any]]:
        """Return all changes after a cursor."""
        found: list[dict[str, Any]] = []
        while True:
            path = f"/v1/watch?after={after}&wait=0&limit=1000&kinds={','.join(kinds)}"
            page = self.admin.request("GET", path)
            found += page["changes"]
            if page["next"] == after:
                return found
            after = page["next"]

    def cursor(self) -> str:
        """Return the present, for `changes`."""
        return Ledger(self.admin).providers_page().as_of

    @asynccontextmanager
    async def reporter(
        self,
        member: str = "a",
        mode: Literal["owner", "beside_nova"] = "owner",
        conductors: str | None = None,
        ironic: str | None = None,
    ) -> AsyncIterator[Reporter]:
        """Yield one more reporter, of which the test makes the passes."""
        async with (
            ReportApi(self.server.url, self.token) as api,
            NodeReader(ironic or self.double.url) as nodes,
        ):
            place = GroupMember(GROUP, member, TTL)
            reporter = Reporter(api, nodes, place, mode, conductors=conductors)
            try:
                yield reporter
            finally:
                await reporter.close()

    async def command(self, *options: str, token: str | None = None) -> tuple[int, str, str]:
        """Run `moorage ironic report` to its end; return its exit code, output and errors."""
        process = await self._started(options, token)
        output, errors = await process.communicate()
        return process.returncode or 0, output.decode(), errors.decode()

    @asynccontextmanager
    async def process(
        self, member: str, *options: str
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """Yield a reporter as a process of its own, which is killed at the end."""
        words = ("--member", member, "--ttl", f"{TTL:g}", "--interval", "0.5", *options)
        process = await self._started(words, None)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def _started(
        self, options: tuple[str, ...], token: str | None
    ) -> asyncio.subprocess.Process:
        words = ["--ironic", self.double.url, "--url", self.server.url, "--group", GROUP]
        return await warm.fork_async(
            ["ironic", "report", *words, *options],
            {**os.environ, "MOORAGE_TOKEN": token or self.token},
        )


@asynccontextmanager
async def world(folder: Path, nodes: int) -> AsyncIterator[World]:
    """Yield a world with nodes that are available and have power, and a token of reporters."""
    database = folder / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        secret = Path(f"{database}.token").read_text().strip()
        admin = Transport(server.url, secret)
        scope = {"group": [GROUP, CONDUCTORS]}
        wanted = {"name": "reporter", "role": "reporter", "scope": scope}
        made = admin.request("POST", "/v1/tokens", wanted)
        async with IronicDouble(nodes) as double:
            for node in double.fleet.nodes.values():
                node.power = "power off"
                node.members["resource_class"] = "baremetal"
            yield World(server, double, admin, secret, made["token"], database)


def played(nodes: int) -> Callable[[Play], Callable[[Path], None]]:
    """Make a test of a coroutine that gets a world."""

    def decorate(play: Play) -> Callable[[Path], None]:
        @functools.wraps(play)
        def test(tmp_path: Path) -> None:
            async def run() -> None:
                async with world(tmp_path, nodes) as it:
                    await play(it)

            asyncio.run(run())

        del test.__dict__["__wrapped__"]  # pytest would look for its parameters
        return test

    return decorate


async def whole(reporter: Reporter) -> None:
    """Make a pass, and a full reading of all nodes."""
    reporter.read_all_soon()
    assert await reporter.tick(), reporter.progress.trouble
    await reporter.read_all_done()
    assert reporter.progress.full_trouble is None


class _Lines(logging.Handler):
    """Keeps the lines of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect what a reporter logs."""
    kept, log = _Lines(), logging.getLogger("moorage.ironic")
    log.addHandler(kept)
    try:
        yield kept.lines
    finally:
        log.removeHandler(kept)
