"""A real nova whose databases are those of the double, and what both answer."""

import asyncio
import json
import os
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from moorage.integrations.nova.asking import MINOR
from moorage.integrations.nova.facts import (
    UNKNOWN,
    hypervisor_of,
    migration_of,
    server_of,
    service_of,
)
from moorage.integrations.nova.pacing import Answer, Send
from tests.reporters.nova_process import Nova
from tests.support.ironic import ROOT
from tests.support.nova_double.database import Database
from tests.support.nova_double.server import PASSWORD, SECRET, NovaDouble

PYTHON = Path(os.environ.get("NOVA_PYTHON", ROOT / ".venv-nova/bin/python"))
"""The interpreter that has nova."""

NOVA_SIDE = "tests.real_nova.nova_side"
LINKS = "_links"
LIMIT = 20
"""Entries in a page: lists of hypervisors have several."""


def _server(shown: Any) -> Any:
    """Return a server; of its status an audit only reads whether its cell answers."""
    one = server_of(shown)
    flavor = None if one.flavor is None else dict(sorted(one.flavor.items()))
    return replace(one, status=UNKNOWN if one.is_unknown else "", flavor=flavor)


READERS: dict[str, Callable[[Any], Any]] = {
    "services": service_of,
    "hypervisors": hypervisor_of,
    "hypervisor": hypervisor_of,
    "migrations": migration_of,
    "servers": _server,
    "server": _server,
}
"""What an audit reads of a member of an answer."""


class RealNova:
    """A real nova at `url`. Asynchronous context manager; `double` has the Keystone."""

    def __init__(self, double: NovaDouble, folder: Path) -> None:
        self._double, self._folder = double, folder

    async def __aenter__(self) -> "RealNova":
        folder = self._folder / "nova"
        folder.mkdir()
        keystone = f"{self._double.url}/v3"
        self._nova = Nova(PYTHON, keystone, str(folder), folder / "log", NOVA_SIDE)
        words = {"password": PASSWORD, "limit": LIMIT}
        served = await self._ask("serve", words)
        self.url = f"{served['url']}/v2.1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._nova.close()

    async def _ask(self, what: str, argument: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._nova.ask, what, argument)

    async def become(self, database: Database) -> None:
        """Make its databases those of the double, and its cells as they are."""
        await self._ask("down", [])
        await self._ask("put", state_of(database))
        await self.follow(database)

    async def follow(self, database: Database) -> None:
        """Let the same cells be away as those of the double."""
        await self._ask("down", [cell.name for cell in database.cells if cell.is_down])

    async def send(self, path: str) -> Answer:
        """Answer a request as `NovaConnection.send` does."""
        return await asyncio.to_thread(self._send, path)

    def _send(self, path: str) -> Answer:
        headers = {"X-Auth-Token": SECRET, "OpenStack-API-Version": f"compute 2.{MINOR}"}
        try:
            with urlopen(Request(f"{self.url}{path}", headers=headers), timeout=60) as answer:
                return Answer(answer.status, json.load(answer))
        except HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, json.loads(refusal.read() or b"null"))


def state_of(database: Database) -> dict[str, Any]:
    """Return the rows of the databases as JSON has them."""
    flavors = {uuid: one for cell in database.cells for uuid, one in cell.instances.items()}
    flavors |= database.requests
    return {
        "cells": [
            {
                "name": cell.name,
                "services": [asdict(one) for one in cell.services.values()],
                "nodes": [asdict(one) for one in cell.nodes.values()],
                "instances": [asdict(one) for one in cell.instances.values()],
                "migrations": [asdict(one) for one in cell.migrations.values()],
            }
            for cell in database.cells
        ],
        "hosts": {host: cell.name for host, cell in database.hosts.items()},
        "mappings": [
            {
                "uuid": uuid,
                "project": one.project,
                "cell": one.cell and one.cell.name,
                "queued_for_delete": one.queued_for_delete,
            }
            for uuid, one in database.mappings.items()
        ],
        "requests": [asdict(one) for one in database.requests.values()],
        "specs": [asdict(flavors[uuid]) for uuid in sorted(database.specs & flavors.keys())],
    }


def paths_of(database: Database, strangers: Collection[str] = ()) -> list[str]:
    """Return everything that an audit may ask; `strangers`: UUIDs that Nova may not know."""
    servers = {*database.mappings, *strangers}
    servers.update(uuid for cell in database.cells for uuid in cell.instances)
    nodes = [uuid for cell in database.cells for uuid in cell.nodes]
    return [
        *("/os-services?binary=nova-compute", "/os-hypervisors/detail", "/os-migrations"),
        *(f"/os-hypervisors/{uuid}" for uuid in [*nodes, *strangers]),
        *(f"/servers/detail?all_tenants=1&host={host}" for host in [*database.hosts, "nobody"]),
        *(f"/servers/{uuid}" for uuid in sorted(servers)),
        *(f"/servers/{uuid}/os-instance-actions" for uuid in sorted(servers)),
    ]


async def whole(send: Send, path: str) -> Answer:
    """Return an answer with the entries of all its pages, or the first page that is refused."""
    entries: list[Any] = []
    target = path
    while True:
        answer = await send(target)
        if answer.status != HTTPStatus.OK:
            return answer
        pages = [name for name in answer.content if name.endswith(LINKS)]
        member = pages[0].removesuffix(LINKS) if pages else next(iter(answer.content))
        if isinstance(answer.content[member], list):
            entries += answer.content[member]
        if not pages:
            content = {member: entries} if entries else answer.content
            return Answer(answer.status, content)
        query = urlsplit(answer.content[pages[0]][0]["href"]).query
        target = f"{path.partition('?')[0]}?{query}"


def said(answer: Answer) -> Any:
    """Return what an audit takes from an answer: no more than that must be the same."""
    status, content = answer.status, answer.content
    if status != HTTPStatus.OK:
        return status, isinstance(content, dict) and "itemNotFound" in content
    ((member, value),) = content.items()
    read = READERS.get(member, bool)
    found = sorted(map(repr, map(read, value))) if isinstance(value, list) else read(value)
    return status, member, found
