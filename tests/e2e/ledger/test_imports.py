"""Imports on real servers: what else is refused, kills at any point, what the event loop bears."""

import asyncio
import json
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid5

import pytest

from bench.loop import holding, probes
from bench.loop.import_probes import rows
from bench.wire import ask, request
from moorage.client.client import Client
from moorage.client.imports import rows_body
from moorage.client.transport import RefusedError, UnreachableError
from moorage.wire.imports import (
    ConsumerRow,
    InventoryRow,
    NameRow,
    ProviderRow,
    RowsGone,
    RowsWanted,
)
from tests.e2e.support.server import Server, serve
from tests.support import cluster

SOURCE = "another ledger"
CHUNK = 50
KILLS = 6


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/m.sqlite"
        return
    url = cluster.fresh()
    yield url
    cluster.shared().drop(cluster.database_of(url))


REFUSED = frozenset(
    {
        "POST /v1/providers:bulk",
        "POST /v1/providers/{id}/drain",
        "POST /v1/providers/{id}/resume",
        "DELETE /v1/providers/{id}",
        "POST /v1/claims",
        "POST /v1/reports",
        "POST /v1/reshapes",
        "POST /v1/reshapes:plan",
    }
)
"""The routes of the native API that the probes ask to change the ledger."""


MACHINE = str(UUID(int=77))
PARTS = [
    {
        "provider": str(uuid5(UUID(MACHINE), "numa0")),
        "name": "numa0",
        "classes": {"CUSTOM_HUGEPAGES_2MB": {"eligible": 1_000}},
    }
]


def test_everything_else_is_refused(database: str) -> None:
    """During an import Placement answers 503, and so does what would change the ledger."""
    much = probes.Sizes.of(0)
    with serve(database, "--auth", "noauth2", "--no-access-log") as server:
        imports = client(server).imports
        imports.begin(SOURCE)
        answers = asyncio.run(sent(server.url, [*probes.placement(much), *native(much)]))
        found: dict[str, set[str | None]] = {}
        for one, status, body in answers:
            if one.route == "/":
                assert status == 200
            elif not one.route.startswith("/v1/"):
                assert status == 503, (one.method, one.route, body)
                assert b"is being imported" in body, one
                assert SOURCE.encode() not in body, one
            else:
                code = json.loads(body).get("code") if status >= 400 else None
                found.setdefault(f"{one.method} {one.route}", set()).add(code)
        refused = {route for route, codes in found.items() if "importing" in codes}
        assert refused == REFUSED
        call(server, "PUT", f"/v1/agents/{MACHINE}", {"group": "new"})
        path = f"/v1/agents/{MACHINE}/register"
        registered = {"boot_id": "boot", "facts": {"hostname": "host"}, "parts": PARTS}
        status, refusal = call(server, "POST", path, registered)
        assert (status, refusal["code"]) == (503, "importing"), refusal
        assert listed(client(server)) == RowsWanted(), "something has changed the ledger"
        shown = got(server.url, "/resource_providers")
        assert shown[0] == 503
        assert shown[1]["retry-after"] == "1"
        assert got(server.url, "/readyz")[0] == 200
        assert b"is being imported" in got(server.url, "/readyz")[2]
        assert imports.under_way().source == SOURCE
        imports.finish()
        assert got(server.url, "/resource_providers")[0] == 200
        assert got(server.url, "/readyz")[2] == b"ok\n"


def native(much: probes.Sizes) -> list[probes.Probe]:
    """Return the probes of the native API, apart from those of the import itself."""
    own = ("/v1/import", "/v1/import/rows", "/v1/import:finish")
    return [one for one in probes.v1(much) if one.route not in own]


async def sent(url: str, asked: list[probes.Probe]) -> list[tuple[probes.Probe, int, bytes]]:
    """Send requests one after another."""
    return [(one, *await ask(url, one.raw)) for one in asked]


def got(url: str, path: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of a page."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("GET", path, headers={"X-Auth-Token": "admin"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def client(server: Server) -> Client:
    """Return an administrator of a server."""
    return Client(server.url, "admin")


def test_leases_without_needs_of_the_ledger_go_on(database: str) -> None:
    """Pools grant units; tickets that need the ledger wait for the end, new ones are refused."""
    wanted = ledger(random.Random(0))
    host = replace(wanted.providers[0], parent=None)
    offered = replace(host.inventories["VCPU"], total=8)
    host = replace(host, inventories={"VCPU": offered}, traits=[])
    with serve(database, "--auth", "noauth2", "--no-access-log") as server:
        one = client(server)
        call(server, "PUT", "/v1/pools/units", {"limit": 5, "ttl": 60, "pacing": None})
        status, waiting = call(server, "POST", "/v1/leases", lease("early", host.uuid))
        assert status == 202, waiting
        one.imports.begin(SOURCE)
        assert call(server, "POST", "/v1/leases", lease("plain"))[0] == 201
        status, refusal = call(server, "POST", "/v1/leases", lease("needy", host.uuid))
        assert (status, refusal["code"]) == (503, "importing")
        one.imports.write(RowsWanted(providers=[host]))
        assert call(server, "POST", "/v1/leases", lease("later"))[0] == 201  # its batch tries all
        status, again = call(server, "POST", "/v1/leases", lease("early", host.uuid))
        assert (status, again["id"], again["state"]) == (202, waiting["id"], "waiting")
        one.imports.finish()
        path = f"/v1/leases/{waiting['id']}?wait=20"
        assert call(server, "GET", path, None)[1]["state"] == "granted"


def lease(key: str, provider: str | None = None) -> dict[str, Any]:
    """Return a request for a lease, perhaps with allocations."""
    wanted: dict[str, Any] = {"needs": [{"pool": "units"}], "key": key}
    if provider is not None:
        wanted["allocations"] = {
            "consumer": str(UUID(int=7)),
            "allocations": {provider: {"VCPU": 1}},
            "project_id": "project",
            "user_id": "user",
        }
    return wanted


def call(server: Server, method: str, path: str, body: Any) -> tuple[int, Any]:
    """Send a request to the native API."""
    raw = b"" if body is None else json.dumps(body).encode()
    answer = asyncio.run(ask(server.url, request(method, path, raw)))
    return answer.status, json.loads(answer.body) if answer.body else None


def ledger(choice: random.Random) -> RowsWanted:
    """Return a ledger of a few hundred rows."""
    began = datetime(2021, 1, 1, tzinfo=UTC)

    def at() -> datetime:
        return began + timedelta(seconds=choice.randrange(10**7), microseconds=choice.randrange(99))

    providers = [
        ProviderRow(
            uuid=str(UUID(int=n + 1)),
            name=f"host {n} ü",
            generation=choice.randrange(9),
            parent=None if n % 3 == 0 else str(UUID(int=n - n % 3 + 1)),
            created_at=at(),
            updated_at=at(),
            inventories={
                name: InventoryRow(total=choice.randrange(9), created_at=at(), updated_at=at())
                for name in ("CUSTOM_GOLD", "VCPU")
            },
            traits=["CUSTOM_FAST", "HW_CPU_X86_AVX"][: choice.randrange(3)],
        )
        for n in range(150)
    ]
    consumers = [
        ConsumerRow(
            uuid=str(UUID(int=10**12 + n)),
            generation=choice.randrange(4),
            project="project",
            user="user",
            type=choice.choice([None, "INSTANCE"]),
            allocations={choice.choice(providers).uuid: {"VCPU": choice.randint(1, 99)}},
            created_at=at(),
            updated_at=at(),
        )
        for n in range(350)
    ]
    words = [[NameRow(name=name, created_at=at(), updated_at=at())] for name in NAMES]
    return RowsWanted(classes=words[0], traits=words[1], providers=providers, consumers=consumers)


NAMES = ("CUSTOM_GOLD", "CUSTOM_FAST")


def lacking(there: RowsWanted, wanted: RowsWanted) -> Iterator[RowsWanted]:
    """Yield chunks of the rows in which a ledger differs from another one."""
    yield RowsWanted(
        classes=differing(there.classes, wanted.classes, "name"),
        traits=differing(there.traits, wanted.traits, "name"),
    )
    providers = differing(there.providers, wanted.providers, "uuid")
    for first in range(0, len(providers), CHUNK):
        yield RowsWanted(providers=providers[first : first + CHUNK])
    consumers = differing(there.consumers, wanted.consumers, "uuid")
    for first in range(0, len(consumers), CHUNK):
        yield RowsWanted(consumers=consumers[first : first + CHUNK])
    kept = {one.uuid for one in wanted.consumers}
    yield RowsWanted(
        gone=RowsGone(consumers=[one.uuid for one in there.consumers if one.uuid not in kept])
    )


def differing(there: list[Any], wanted: list[Any], key: str) -> list[Any]:
    """Return the wanted rows that are not there."""
    known = {getattr(one, key): one for one in there}
    return [one for one in wanted if known.get(getattr(one, key)) != one]


def listed(one: Client) -> RowsWanted:
    """Return all rows of a server."""
    imports = one.imports
    return RowsWanted(
        classes=[*imports.classes()],
        traits=[*imports.traits()],
        providers=[*imports.providers()],
        consumers=[*imports.consumers()],
    )


def test_killed_again_and_again(database: str) -> None:
    """After each kill the same import goes on, and in the end every row is there."""
    choice = random.Random(43)
    wanted = ledger(choice)
    wanted = replace(
        wanted,
        providers=[replace(one, traits=sorted(one.traits)) for one in wanted.providers],
    )
    chunks = 0
    for kill in range(KILLS + 1):
        with serve(database, "--auth", "noauth2", "--no-access-log") as server:
            one = client(server)
            assert one.imports.begin(SOURCE).source == SOURCE
            ends: threading.Timer | None = None
            if kill < KILLS:
                ends = threading.Timer(0.02 + 0.1 * choice.random(), server.stop, [signal.SIGKILL])
                ends.start()
            try:
                for rows_wanted in lacking(listed(one), wanted):
                    one.imports.write(rows_wanted)
                    chunks += 1
            except UnreachableError:
                assert kill < KILLS
            finally:
                if ends is not None:
                    ends.join()
            if kill == KILLS:
                assert listed(one) == wanted
                assert call(server, "POST", "/v1/database/check", {})[1]["differences"] == []
                one.imports.finish()
    with serve(database, "--auth", "noauth2", "--no-access-log") as server:
        assert listed(client(server)) == wanted
        with pytest.raises(RefusedError):
            client(server).imports.under_way()


def test_rows_do_not_hold_the_event_loop(database: str, tmp_path: Path) -> None:
    """The largest chunks, and pages of rows, are worked on in pieces or in threads."""
    hosts = ledger(random.Random(1)).providers[0]
    template = rows_body(RowsWanted(providers=[hosts]))["providers"][0]
    offered = dict.fromkeys(("VCPU", "MEMORY_MB", "DISK_GB"), template["inventories"]["VCPU"])
    uuid = "{:08x}-0000-4000-8000-000000000000"
    providers = [
        {**template, "uuid": uuid.format(n), "name": f"n{n}", "inventories": offered, "traits": []}
        for n in range(1_000)
    ]
    at = "2026-01-31T12:00:00Z"
    many = {f"CUSTOM_{n}": {"total": 1, "created_at": at, "updated_at": at} for n in range(1_500)}
    wide = [{**providers[n], "inventories": many} for n in range(13)]
    sends = [
        request("PUT", "/v1/import", json.dumps({"source": SOURCE}).encode()),
        posted({"providers": wide}),
        posted({"providers": providers}),
        posted({"consumers": rows(1_000)}),
        request("GET", "/v1/ledger-rows?kind=providers"),
        request("GET", "/v1/ledger-rows?kind=consumers"),
        posted({"gone": {"consumers": [one["uuid"] for one in rows(1_000)]}}),
    ]

    async def measured(server: holding.MeasuredServer) -> list[float]:
        found = []
        for one in sends:
            server.take()
            answer = await ask(server.url, one)
            assert answer.status < 300 or b"CUSTOM_0" in answer.body, answer
            found.append(server.take().milliseconds)
        return found

    with holding.measured_server(database, tmp_path) as server:
        held = asyncio.run(measured(server))
    assert max(held) < holding.HELD_MILLISECONDS_MAX, held


def posted(body: Any) -> bytes:
    """Return a request that writes rows."""
    return request("POST", "/v1/import/rows", json.dumps(body).encode())


ODD = {
    "kind=other": 400,
    "after=%00": 400,
    "limit=0": 400,
    "limit=1001": 400,
    "after=%F0%9F%98%80": 200,
    "after=zzz": 200,
}
BODIES: list[tuple[bytes, int]] = [
    (b"[]", 400),
    (b"{}", 204),
    (b'{"gone": 5}', 400),
    (b'{"gone": {"providers": 5}}', 400),
    (b'{"gone": {"providers": ["no uuid"]}}', 400),
    (b'{"providers": {}}', 400),
    (b'{"providers": [5]}', 400),
    (b'{"classes": [{"name": "CUSTOM_A"}]}', 400),
    (b'{"others": []}', 400),
    (b'{"gone": {"traits": [' + b",".join([b'"T"'] * 1_001) + b"]}}", 400),
    (b'{"consumers": [' + b",".join([b"{}"] * 1_001) + b"]}", 400),
    (b'{"consumers": [{"allocations": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]}", 400),
    (b" " * (4 << 20) + b"{}", 413),
]


def test_odd_requests(database: str) -> None:
    """What is no row, or too much, is refused and does not end the server."""
    with serve(database, "--auth", "noauth2", "--no-access-log") as server:
        for query, status in ODD.items():
            assert got(server.url, f"/v1/ledger-rows?{query}")[0] == status, query
        client(server).imports.begin(SOURCE)
        twice = json.dumps({"consumers": [rows(1)[0], rows(1)[0]]}).encode()
        for body, status in [*BODIES, (twice, 400)]:
            answer = asyncio.run(ask(server.url, request("POST", "/v1/import/rows", body)))
            assert answer.status == status, (body[:80], answer)
