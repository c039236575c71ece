"""Requests of the native API that do several things at once: bulk reports, claims that choose."""

import asyncio
import json
from collections.abc import Iterator
from itertools import islice

from bench import questions
from bench.fleet import Fleet
from bench.measure import Bench
from bench.wire import Work, request

BULK, CLAIMS = "/v1/providers:bulk", "/v1/claims"
CONNECTIONS = 8


def report(fleet: Fleet, count: int) -> bytes:
    """Return one report of the first `count` hosts, exactly as they were loaded."""
    hosts = islice(fleet.hosts(), count)
    items = [
        {
            "uuid": provider.uuid,
            "name": provider.name,
            "parent": provider.parent,
            "inventories": provider.inventories,
            "traits": provider.traits,
            "aggregates": provider.aggregates,
        }
        for host in hosts
        for provider in host
    ]
    return request("POST", BULK, json.dumps({"providers": items}).encode())


def choices(choose: str) -> Iterator[bytes]:
    """Return endless claims for one server each; the service chooses the host."""
    body = {
        "groups": [{"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}],
        "choose": choose,
        "consumer_type": "INSTANCE",
        "project_id": "bench",
        "user_id": "bench",
    }
    return _repeat(request("POST", CLAIMS, json.dumps(body).encode()))


async def claims(bench: Bench) -> None:
    """Measure the schedule loop in one request. `pack` is the last because it fills hosts."""
    for choose in ("random", "spread", "pack"):
        await bench.line(
            f"schedule in one request, {choose}",
            choices(choose),
            CONNECTIONS,
            versus="schedule loop",
        )


async def reports(bench: Bench, count: int) -> None:
    """Measure reports of unchanged hosts, first alone, then during claims."""
    count = min(count, bench.fleet.size)
    body = report(bench.fleet, count)
    answer = await bench.ask(body)
    unchanged = json.loads(answer.body).get("unchanged") if answer.status == 200 else answer
    before = await _generations(bench, count)
    await bench.line(
        "refresh in bulk",
        _repeat(body),
        1,
        note=f"{count} hosts in one request, compared per host",
        items=count,
        versus="refresh node by node",
    )
    same = before == await _generations(bench, count)
    told = f"{unchanged} of {count} unchanged; generations {'the same' if same else 'differ'}"
    bench.check("unchanged hosts are not written", unchanged == count and same, told)
    await _reports_during_claims(bench, body)


async def _generations(bench: Bench, count: int) -> list[int]:
    """Return the generations of a sample of the reported hosts."""
    found = []
    for host in islice(bench.fleet.hosts(), 0, count, max(1, count // 10)):
        answer = await bench.ask(request("GET", f"/resource_providers/{host[0].uuid}"))
        found.append(json.loads(answer.body)["generation"])
    return found


def _repeat(one: bytes) -> Iterator[bytes]:
    while True:
        yield one


async def _reports_during_claims(bench: Bench, body: bytes) -> None:
    """Measure claims while the same report is sent repeatedly."""
    reporting = True

    def endless() -> Iterator[Work]:
        while reporting:
            yield body

    reported = asyncio.create_task(bench.drive(endless(), 1))
    work = questions.disjoint_claims(bench.numbers, bench.fleet)
    try:
        await bench.line(
            "mixed: claims and bulk reports", work, CONNECTIONS, note="CPU of both per claim"
        )
    finally:
        reporting = False
        outcome = await reported
    slowest = 1_000 * max(outcome.seconds)
    told = f"{len(outcome.seconds)} reports during the claims, the slowest took {slowest:.0f} ms"
    bench.check("bulk reports succeed during claims", set(outcome.statuses) == {200}, told)
