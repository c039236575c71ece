"""Measures reports of a group of reporters: all nodes unchanged, then all changed, beside claims.

    python -m bench.reporters [--postgres] [--nodes 15000] [--seconds 10] [--rounds 5]

prints one line for each measurement, and fails if a target is missed. Claims go to other hosts, as
fast as four connections can; each round measures them alone and beside reports, and the median of
the ratios counts, since one round of a shared machine proves nothing. Then 1,000 nodes are moved to
another member by one call, and one of three reporters is killed. `others used` is the share of the
processors that other programs had.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bench.reporters import takeover
from bench.reporters.targets import Others, Targets
from bench.target import Moorage, Storage
from bench.wire import Outcome, Work, ask, bounded, drive, request
from tests.support.cluster import Cluster

GROUP, MEMBER, OTHER = "bench", "one", "two"
CHUNK = 1_000
"""Nodes in one request."""

CONNECTIONS = 4
HOSTS = 200
EVERYTHING = 1_000_000
MOVED = 1_000
MOVED_SECONDS = 1.0
UNCHANGED_SECONDS, CHANGED_SECONDS = 5.0, 15.0
SLOWER = 2.0
"""How many times as long as alone the slowest claims may take beside reports."""


@dataclass(frozen=True)
class Latency:
    """Of claims, in milliseconds."""

    count: int
    p50: float
    p99: float

    def __str__(self) -> str:
        return f"{self.count} claims, p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms"


class Run:
    """One running service, and the reporter that talks to it."""

    def __init__(self, target: Moorage, nodes: int, seconds: float, rounds: int) -> None:
        self.url = target.urls[0]
        self.nodes = [f"{n:08d}-0000-4000-8000-00000000beef" for n in range(nodes)]
        self.hosts = [f"{n:08d}-0000-4000-8000-00000000cafe" for n in range(HOSTS)]
        self.seconds = seconds
        self.rounds = rounds
        self.token = ""
        self._consumers = count()
        self.totals = count(1)
        """Each report that is to change nodes takes the next one."""

    async def send(self, method: str, path: str, body: Any) -> Any:
        """Send one request that must succeed; return its answer."""
        answer = await ask(self.url, request(method, path, json.dumps(body).encode()))
        assert answer.status < 300, answer
        return json.loads(answer.body)

    async def revision(self) -> str:
        """Return the revision of the ledger."""
        answer = await ask(self.url, request("GET", "/v1/providers?limit=1"))
        revision: str = json.loads(answer.body)["as_of"]
        return revision

    async def join(self, member: str) -> str:
        """Join as a member; return its token."""
        path = f"/v1/reporter-groups/{GROUP}/members/{member}"
        joined = await self.send("PUT", path, {"instance": str(uuid.uuid4()), "ttl": 3_600})
        token: str = joined["token"]
        return token

    async def prepare(self) -> None:
        """Join, and load the hosts of the claims."""
        self.token = await self.join(MEMBER)
        hosts = [
            {"uuid": host, "name": host, "inventories": {"VCPU": {"total": EVERYTHING}}}
            for host in self.hosts
        ]
        await self.send("POST", "/v1/providers:bulk", {"providers": hosts})

    def report(self, nodes: list[str], total: int, member: str, token: str) -> dict[str, Any]:
        """Return a report of nodes, with this total."""
        described = [
            {
                "uuid": node,
                "name": node,
                "inventories": {"CUSTOM_BAREMETAL_GOLD": {"total": total}},
                "traits": ["CUSTOM_RACK_7"],
                "aggregates": [],
            }
            for node in nodes
        ]
        return {"group": GROUP, "member": member, "token": token, "nodes": described}

    def reports(self, total: int) -> Iterator[Work]:
        """Return the requests that report every node once, with this total."""
        for first in range(0, len(self.nodes), CHUNK):
            nodes = self.nodes[first : first + CHUNK]
            whole = self.report(nodes, total, MEMBER, self.token)
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

    async def reported(self, what: str, total: int) -> float:
        """Report all nodes, and print how long that took."""
        outcome = await drive([self.url], self.reports(total), 1)
        assert set(outcome.statuses) == {200}
        print(f"{what}: {len(self.nodes)} nodes in {outcome.elapsed:.2f} s", flush=True)
        return outcome.elapsed

    async def claimed(self) -> Latency:
        """Claim for some time, and nothing else."""
        work = bounded(self.claims(), self.seconds, 100, EVERYTHING)
        return _latency(await drive([self.url], work, CONNECTIONS))

    async def claimed_beside(self, meanwhile: Iterator[Work]) -> tuple[Latency, float]:
        """Claim while other work is done; return how long that took, too."""
        busy = True

        def until() -> Iterator[Work]:
            for one in self.claims():
                if not busy:
                    return
                yield one

        claiming = asyncio.create_task(drive([self.url], until(), CONNECTIONS))
        other = await drive([self.url], meanwhile, 1)
        busy = False
        assert set(other.statuses) == {200}
        return _latency(await claiming), other.elapsed


def _latency(outcome: Outcome) -> Latency:
    seconds = sorted(outcome.seconds)
    p50, p99 = (
        1_000 * seconds[min(len(seconds) - 1, int(len(seconds) * share))] for share in (0.5, 0.99)
    )
    assert set(outcome.statuses) <= {200, 204}, set(outcome.statuses)
    return Latency(len(seconds), p50, p99)


async def measured(run: Run, targets: Targets) -> None:
    """Measure reports, alone and beside claims."""
    await run.prepare()
    created = next(run.totals)
    await run.reported("created", created)
    before = await run.revision()
    took = await run.reported("unchanged", created)
    targets.check("  its time", took < UNCHANGED_SECONDS, f"less than {UNCHANGED_SECONDS:g} s")
    same = await run.revision() == before
    targets.check("  its writes", same, "the revision stays")
    changed = next(run.totals)
    await run.reported("changed", changed)
    unchanged = [*run.reports(changed)] * 10
    await beside(run, targets, "ten unchanged reports", (unchanged for _ in range(run.rounds)))
    changes = (list(run.reports(next(run.totals))) for _ in range(run.rounds))
    await beside(run, targets, "a report that changes all", changes)


async def beside(run: Run, targets: Targets, what: str, rounds: Iterator[list[Work]]) -> None:
    """Measure claims alone and beside reports, round by round; judge by the medians."""
    ratios, took = [], []
    for reports in rounds:
        alone = await run.claimed()
        slowed, elapsed = await run.claimed_beside(iter(reports))
        ratios.append(slowed.p99 / alone.p99)
        took.append(elapsed)
        print(f"  alone {alone}; beside {what} {slowed}; {elapsed:.2f} s", flush=True)
    every = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    ratio, elapsed = median(ratios), median(took)
    found = f"claims beside {what}: p99 {ratio:.2f} times that alone ({every})"
    targets.check(found, ratio <= SLOWER, f"at most {SLOWER:g} times")
    limit = CHANGED_SECONDS if "changes" in what else 10 * UNCHANGED_SECONDS
    targets.check(f"  reports: {elapsed:.2f} s", elapsed < limit, f"less than {limit:g} s")


async def moved(run: Run, targets: Targets) -> None:
    """Move nodes of one member to another by one call; then its report counts, and no other."""
    other = await run.join(OTHER)
    nodes = run.nodes[:MOVED]
    path = f"/v1/reporter-groups/{GROUP}/pins"

    async def outcomes(member: str, token: str) -> dict[str, Any]:
        """Report the nodes, changed, as a member."""
        body = run.report(nodes, next(run.totals), member, token)
        found: dict[str, Any] = await run.send("POST", "/v1/reports", body)
        return found

    await run.send("POST", path, {"nodes": nodes, "member": MEMBER})
    assert (await outcomes(OTHER, other))["refused"] == MOVED, "they are not its own yet"
    began = perf_counter()
    await run.send("POST", path, {"nodes": nodes, "member": OTHER})
    took = perf_counter() - began
    what = f"{MOVED} of {len(run.nodes)} nodes moved by one call in {took:.3f} s"
    targets.check(what, took < MOVED_SECONDS, f"less than {MOVED_SECONDS:g} s")
    new, old = await outcomes(OTHER, other), await outcomes(MEMBER, run.token)
    kept = new["updated"] == MOVED and old["codes"] == {"not_owner": MOVED}
    told = "the new owner's report is accepted, the old one's refused"
    targets.check(f"  {new['updated']} accepted, {old['refused']} refused", kept, told)


def main() -> int:
    """Run all measurements on one engine; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.reporters", description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    targets = Targets()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = stack.enter_context(Cluster()) if options.postgres else None
        storages = [Storage(Path(folder), name, cluster) for name in ("reporters", "takeover")]
        for storage in storages:
            if cluster is not None:
                cluster.create(storage.name)
        others = Others(storages[0].roots())
        with Moorage(storages[0]) as target:
            run = Run(target, options.nodes, options.seconds, options.rounds)
            asyncio.run(measured(run, targets))
            asyncio.run(moved(run, targets))
            print(others, flush=True)
        with Moorage(storages[1]) as target:
            others = Others(storages[1].roots())
            takeover.measured(target.urls[0], options.nodes, targets)
            print(others, flush=True)
    return int(targets.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
