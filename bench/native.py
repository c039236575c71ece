"""What the native API does in one request: report many hosts, choose and claim."""

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
    """One report of the first `count` hosts, just as they were loaded."""
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
    """Claim where one server fits, endlessly; the service chooses the host."""
    body = {
        "groups": [{"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}],
        "choose": choose,
        "consumer_type": "INSTANCE",
        "project_id": "bench",
        "user_id": "bench",
    }
    return _repeated(request("POST", CLAIMS, json.dumps(body).encode()))


async def claims(bench: Bench) -> None:
    """The schedule loop in one request each. Packing is the last: it fills hosts."""
    for choose in ("random", "spread", "pack"):
        await bench.line(
            f"schedule in one request, {choose}",
            choices(choose),
            CONNECTIONS,
            versus="schedule loop",
        )


async def reports(bench: Bench, count: int) -> None:
    """Report hosts without changes, alone and while claims run."""
    count = min(count, bench.fleet.size)
    whole = report(bench.fleet, count)
    answer = await bench.ask(whole)
    unchanged = json.loads(answer.body).get("unchanged") if answer.status == 200 else answer
    before = await _generations(bench, count)
    await bench.line(
        "refresh in bulk",
        _repeated(whole),
        1,
        note=f"{count} hosts in one request, compared per host",
        items=count,
        versus="refresh node by node",
    )
    same = before == await _generations(bench, count)
    told = f"{unchanged} of {count} unchanged; generations {'the same' if same else 'differ'} after"
    bench.check("unchanged hosts left alone", unchanged == count and same, told)
    await _beside_claims(bench, whole)


async def _generations(bench: Bench, count: int) -> list[int]:
    """The generations of some of the hosts that are reported."""
    found = []
    for host in islice(bench.fleet.hosts(), 0, count, max(1, count // 10)):
        answer = await bench.ask(request("GET", f"/resource_providers/{host[0].uuid}"))
        found.append(json.loads(answer.body)["generation"])
    return found


def _repeated(one: bytes) -> Iterator[bytes]:
    while True:
        yield one


async def _beside_claims(bench: Bench, whole: bytes) -> None:
    """Claims while the report comes again and again."""
    reporting = True

    def endless() -> Iterator[Work]:
        while reporting:
            yield whole

    reported = asyncio.create_task(bench.drive(endless(), 1))
    work = questions.disjoint_claims(bench.numbers, bench.fleet)
    try:
        await bench.line(
            "mixed: claims beside bulk reports", work, CONNECTIONS, note="CPU of both per claim"
        )
    finally:
        reporting = False
        outcome = await reported
    slowest = 1_000 * max(outcome.seconds)
    told = f"{len(outcome.seconds)} reports meanwhile, the slowest took {slowest:.0f} ms"
    bench.check("reports go on beside claims", set(outcome.statuses) == {200}, told)
