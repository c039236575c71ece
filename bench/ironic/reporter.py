"""A reporter's pass over many nodes, and claims meanwhile: `python -m bench.ironic.reporter`.

The nodes are those of a double of Ironic, the server is a real one. Claims go to other hosts, one
after the other on each of four connections.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.request import Request, urlopen

from bench.ironic.gate import READY
from bench.target import Moorage, Storage
from bench.wire import Work, drive, request
from moorage.integrations.ironic.nodes import NodeReader
from moorage.integrations.ironic.report.mapping import FIELDS
from tests.e2e.support.server import Server

NODES = 15_000
CONNECTIONS = 4
HOSTS = [str(uuid.UUID(int=1_000_000 + n)) for n in range(200)]
UNITS = 1_000_000
UNCHANGED_PASSES = 5
TOKEN = {"X-Auth-Token": "admin"}
"""As bench.wire sends it."""


def sent(url: str, path: str, body: Any) -> Any:
    """Send a request that must succeed; return the JSON of the answer."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(
        Request(url + path, data, {"Content-Type": "application/json", **TOKEN})
    ) as answer:
        return json.loads(answer.read())


def claim(number: int) -> Work:
    """Return a claim of one unit."""
    body = {
        "allocations": {HOSTS[number % len(HOSTS)]: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return request("PUT", f"/allocations/{uuid.uuid4()}", json.dumps(body).encode())


class Bench:
    """One double of Ironic and one server."""

    def __init__(self, ironic: str, moorage: str) -> None:
        self.ironic = ironic
        self.moorage = moorage

    def touch(self, **members: Any) -> None:
        """Change all nodes."""
        sent(self.ironic, "/_double/touch", {"power": "power off", "members": members})

    async def read(self) -> float:
        """Return how long it takes only to read all nodes."""
        began = perf_counter()
        async with NodeReader(self.ironic) as nodes:
            await nodes.all(FIELDS)
        return perf_counter() - began

    async def reported(self) -> tuple[float, str]:
        """Report all nodes by the command; return how long that took, and what came of it."""
        began = perf_counter()
        words = ("--ironic", self.ironic, "--url", self.moorage, "--group", "bench", "--once")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "moorage", "ironic", "report", *words),
            *("--token", TOKEN["X-Auth-Token"]),
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0, process.returncode
        return perf_counter() - began, output.decode().strip()

    async def claimed(self, while_: Callable[[], bool]) -> list[float]:
        """Claim as long as a condition holds; return the latencies in milliseconds."""

        def work() -> Iterator[Work]:
            for number in count():
                if not while_():
                    return
                yield claim(number)

        outcome = await drive([self.moorage], work(), CONNECTIONS)
        assert set(outcome.statuses) == {204}, set(outcome.statuses)
        return sorted(1_000 * one for one in outcome.seconds)

    async def measure(self, what: str, passes: int) -> None:
        """Report all nodes some times, with claims meanwhile; print a line of JSON."""
        going = True
        claims = asyncio.create_task(self.claimed(lambda: going))
        for _ in range(passes):
            took, outcome = await self.reported()
            print(json.dumps({"pass": what, "seconds": round(took, 2), "outcome": outcome}))
        going = False
        print(json.dumps({"claims": f"while {what}", **quantiles(await claims)}))


def quantiles(latencies: list[float]) -> dict[str, float]:
    """Return the number, the median and the 99th percentile, in milliseconds."""
    last = len(latencies) - 1
    p50, p99 = (round(latencies[int(last * share)], 1) for share in (0.5, 0.99))
    return {"claims_made": len(latencies), "p50_ms": p50, "p99_ms": p99}


async def run(bench: Bench, seconds: float) -> None:
    """Measure everything."""
    hosts = [
        {"uuid": host, "name": host, "inventories": {"VCPU": {"total": UNITS}}} for host in HOSTS
    ]
    sent(bench.moorage, "/v1/providers:bulk", {"providers": hosts})
    bench.touch(resource_class="baremetal", traits=["CUSTOM_RACK_7"])
    print(json.dumps({"pass": "only read", "seconds": round(await bench.read(), 2)}))
    for what in ("created", "unchanged"):
        took, outcome = await bench.reported()
        print(json.dumps({"pass": what, "seconds": round(took, 2), "outcome": outcome}))
    bench.touch(maintenance=True)
    took, outcome = await bench.reported()
    print(json.dumps({"pass": "changed", "seconds": round(took, 2), "outcome": outcome}))
    until = perf_counter() + seconds
    alone = await bench.claimed(lambda: perf_counter() < until)
    print(json.dumps({"claims": "alone", **quantiles(alone)}))
    await bench.measure("unchanged", UNCHANGED_PASSES)
    bench.touch(maintenance=False)
    await bench.measure("changed", 1)


def main() -> int:
    """Start a double and a server, and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.ironic.reporter", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--seconds", type=float, default=10, help="of claims")
    asked = parser.parse_args()
    command = (sys.executable, "-m", "tests.support.ironic_double", "--nodes", str(asked.nodes))
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(command, ready=READY) as double,
        Moorage(Storage(Path(folder), "reporter", None)) as target,
    ):
        asyncio.run(run(Bench(double.url, target.urls[0]), asked.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
