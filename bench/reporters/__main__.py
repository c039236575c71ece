"""Measures reports of a group of reporters: all nodes unchanged, then all changed, beside claims.

    python -m bench.reporters [--postgres] [--nodes 15000] [--seconds 10]

prints one line for each measurement. Claims go to other hosts, as fast as four connections can.
"""

import argparse
import asyncio
import json
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from bench.target import Moorage, Storage
from bench.wire import Outcome, Work, ask, bounded, drive, request
from tests.support.cluster import Cluster

GROUP, MEMBER = "bench", "one"
CHUNK = 1_000
"""Nodes in one request."""

CONNECTIONS = 4
HOSTS = 200
EVERYTHING = 1_000_000


class Run:
    """One running service, and the reporter that talks to it."""

    def __init__(self, target: Moorage, nodes: int, seconds: float) -> None:
        self.url = target.urls[0]
        self.nodes = [f"{n:08d}-0000-4000-8000-00000000beef" for n in range(nodes)]
        self.hosts = [f"{n:08d}-0000-4000-8000-00000000cafe" for n in range(HOSTS)]
        self.seconds = seconds
        self.token = ""
        self._consumers = count()

    async def send(self, method: str, path: str, body: Any) -> Any:
        """Send one request that must succeed; return its answer."""
        answer = await ask(self.url, request(method, path, json.dumps(body).encode()))
        assert answer.status < 300, answer
        return json.loads(answer.body)

    async def prepare(self) -> None:
        """Join, and load the hosts of the claims."""
        path = f"/v1/reporter-groups/{GROUP}/members/{MEMBER}"
        joined = await self.send("PUT", path, {"instance": str(uuid.uuid4()), "ttl": 3_600})
        self.token = joined["token"]
        hosts = [
            {"uuid": host, "name": host, "inventories": {"VCPU": {"total": EVERYTHING}}}
            for host in self.hosts
        ]
        await self.send("POST", "/v1/providers:bulk", {"providers": hosts})

    def reports(self, total: int) -> Iterator[Work]:
        """Return the requests that report every node once, with this total."""
        for first in range(0, len(self.nodes), CHUNK):
            nodes = [
                {
                    "uuid": node,
                    "name": node,
                    "inventories": {"CUSTOM_BAREMETAL_GOLD": {"total": total}},
                    "traits": ["CUSTOM_RACK_7"],
                    "aggregates": [],
                }
                for node in self.nodes[first : first + CHUNK]
            ]
            whole = {"group": GROUP, "member": MEMBER, "token": self.token, "nodes": nodes}
            yield request("POST", "/v1/reports", json.dumps(whole).encode())

    def claims(self) -> Iterator[Work]:
        """Return endless claims on the hosts."""
        for n in self._consumers:
            held = {self.hosts[n % HOSTS]: {"resources": {"VCPU": 1}}}
            body = {
                "allocations": held,
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            path = f"/allocations/{uuid.uuid4()}"
            yield request("PUT", path, json.dumps(body).encode())

    async def reported(self, what: str, total: int) -> None:
        """Report all nodes, and print how long that took."""
        outcome = await drive([self.url], self.reports(total), 1)
        assert set(outcome.statuses) == {200}
        print(f"{what}: {len(self.nodes)} nodes in {outcome.elapsed:.2f} s")

    async def claimed(self, what: str, meanwhile: Iterator[Work] | None = None) -> None:
        """Claim for some time, or while other work is done; print the latency."""
        if meanwhile is None:
            work = bounded(self.claims(), self.seconds, 100, EVERYTHING)
            outcome = await drive([self.url], work, CONNECTIONS)
            print(f"{what}: {_latency(outcome)}")
            return
        busy = True

        def until() -> Iterator[Work]:
            for one in self.claims():
                if not busy:
                    return
                yield one

        claiming = asyncio.create_task(drive([self.url], until(), CONNECTIONS))
        other = await drive([self.url], meanwhile, 1)
        busy = False
        latency = _latency(await claiming)
        print(f"{what}: {latency}; reports: {len(self.nodes)} nodes in {other.elapsed:.2f} s")


def _latency(outcome: Outcome) -> str:
    seconds = sorted(outcome.seconds)
    at = [
        1_000 * seconds[min(len(seconds) - 1, int(len(seconds) * share))] for share in (0.5, 0.99)
    ]
    assert set(outcome.statuses) <= {200, 204}, set(outcome.statuses)
    return f"{len(seconds)} claims, p50 {at[0]:.1f} ms, p99 {at[1]:.1f} ms"


async def measured(run: Run) -> None:
    """Measure everything."""
    await run.prepare()
    await run.reported("created", 1)
    await run.reported("unchanged", 1)
    await run.reported("changed", 2)
    await run.claimed("claims alone")
    unchanged = (work for _ in range(10) for work in run.reports(2))
    await run.claimed("claims beside ten unchanged reports of all", unchanged)
    await run.claimed("claims beside a report that changes all", run.reports(3))


def main() -> None:
    """Run all measurements on one engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = None
        if options.postgres:
            cluster = stack.enter_context(Cluster())
            cluster.create("reporters")
        target = stack.enter_context(Moorage(Storage(Path(folder), "reporters", cluster)))
        asyncio.run(measured(Run(target, options.nodes, options.seconds)))


if __name__ == "__main__":
    main()
