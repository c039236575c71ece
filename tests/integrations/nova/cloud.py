"""A real Moorage server, and doubles of Nova, Keystone and Ironic beside it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml

from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.wire.ledger import InventoryWanted, ProvidersWanted, ProviderWanted
from tests.e2e.support.server import serve
from tests.support import warm
from tests.support.ironic_double.server import IronicDouble
from tests.support.nova_double.api import Api
from tests.support.nova_double.database import FLAVOR, Cell, Database, Node
from tests.support.nova_double.operations import Holdings, Operations, play
from tests.support.nova_double.server import NovaDouble

CLOUD = "mycloud"
TOTALS = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 4_000}


class Placement:
    """The ledger as Nova writes it: over the Placement API of a Moorage server."""

    def __init__(self, url: str, secret: str) -> None:
        self._url, self._secret = url, secret
        self._held: dict[str, Holdings] = {}

    def write(self, holdings: Mapping[str, Holdings], type_: str | None = None) -> None:
        """See `operations.Ledger`."""
        self._held |= holdings
        body = {
            uuid: {
                "allocations": {at: {"resources": them} for at, them in wanted.items()},
                "project_id": "p1",
                "user_id": "u1",
                **({"consumer_type": type_, "consumer_generation": None} if type_ else {}),
            }
            for uuid, wanted in holdings.items()
        }
        headers = {
            "OpenStack-API-Version": f"placement {'1.38' if type_ else '1.13'}",
            "Content-Type": "application/json",
            "X-Auth-Token": self._secret,
        }
        address = f"{self._url}/allocations"
        with urlopen(Request(address, json.dumps(body).encode(), headers, method="POST")):
            pass

    def read(self, consumer: str) -> Holdings:
        """See `operations.Ledger`."""
        return self._held.get(consumer, {})


@dataclass
class World:
    """All of it."""

    url: str
    secret: str
    folder: Path
    database: Database
    operations: Operations
    placement: Placement
    nova: NovaDouble
    ironic: IronicDouble

    @property
    def ledger(self) -> Ledger:
        """The native API of the ledger."""
        return Ledger(Transport(self.url, self.secret))

    def host(self, name: str) -> Node:
        """Add a host, with its provider."""
        node = self.database.add_host(self.database.cells[0], name)
        self.provide(node.uuid, name, TOTALS)
        return node

    def provide(self, uuid: str, name: str, totals: Mapping[str, int], *more: str) -> None:
        """Add the provider of a compute node; `more`: further traits."""
        wanted = ProviderWanted(
            uuid=uuid,
            name=name,
            inventories={of: InventoryWanted(total=total) for of, total in totals.items()},
            traits=["COMPUTE_NODE", *more],
        )
        made = self.ledger.providers_upsert(
            ProvidersWanted(providers=[wanted], create_vocabulary=True)
        )
        assert made.refused == 0, made

    def server(self, node: Node, flavor: Mapping[str, Any] = FLAVOR) -> str:
        """Return a new server that runs on a node."""
        uuid = self.database.new_uuid()
        play(self.operations.boot(uuid, node, flavor))
        return uuid

    def orphan(self, node: Node) -> str:
        """Return a server that was deleted, but not its allocation."""
        uuid = self.server(node)
        holdings = self.placement.read(uuid)
        play(self.operations.delete(uuid))
        self.placement.write({uuid: holdings})
        return uuid

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the variables of a command."""
        return {
            **os.environ,
            "MOORAGE_URL": self.url,
            "MOORAGE_TOKEN": self.secret,
            "OS_CLIENT_CONFIG_FILE": str(self.folder / "clouds.yaml"),
            **variables,
        }

    async def command(self, *words: str, **variables: str) -> tuple[int, str, str]:
        """Run a command of Moorage's; return its exit code, output and errors."""
        process = await warm.fork_async([*words], self.environment(**variables))
        output, errors = await process.communicate()
        return process.returncode or 0, output.decode(), errors.decode()

    async def audit(self, *words: str) -> tuple[dict[str, Any], str]:
        """Run an audit without pauses; return what it prints as JSON, and on standard error."""
        code, output, errors = await self.command(
            "audit", *words, "--os-cloud", CLOUD, "--settle", "0", "--json"
        )
        assert output, errors
        found: dict[str, Any] = json.loads(output)
        assert code == bool(found["findings"]), errors
        return found, errors


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[World]:
    """Yield a world without hosts."""
    path = folder / "moorage.sqlite"
    with serve(path, "--no-access-log") as server:
        secret = Path(f"{path}.token").read_text().strip()
        database = Database([Cell("cell1"), Cell("cell2")])
        placement = Placement(server.url, secret)
        operations = Operations(database, placement)
        async with IronicDouble() as ironic, NovaDouble(Api(database), ironic.url) as nova:
            (folder / "clouds.yaml").write_text(yaml.safe_dump(nova.clouds(CLOUD)))
            yield World(server.url, secret, folder, database, operations, placement, nova, ironic)


def played(scene: Callable[[World], Awaitable[None]], folder: Path) -> None:
    """Play a scene in a world."""

    async def run() -> None:
        async with world(folder) as it:
            await scene(it)

    asyncio.run(run())
