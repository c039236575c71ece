"""Measures the refresh of nova's bare-metal nodes against Moorage and OpenStack Placement.

    python -m bench.reporters.nova [--nodes 500] [--rounds 3] [--engine postgresql]

Nova's own resource tracker and report client do for each node what `update_available_resource`
does with Placement. Both services run at the same time, each on a database of its own, and get the
same cycles in turn, in both orders. More than half of the nodes have an instance. A line has
medians over the rounds: the requests of a cycle, the seconds until they were answered, and the
processor time of the service and its database; then the medians of the ratios of neighbouring
cycles. Nova's own time is what is left of a cycle: no Placement changes it.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine, original
from bench.machine import Moment
from bench.original import Original
from bench.target import ROOT, Moorage, Storage, Target
from bench.wire import drive, request
from tests.reporters.nova_process import Nova
from tests.support.cluster import Cluster

CLASS, TRAIT = "CUSTOM_BAREMETAL", "CUSTOM_RACK_7"
BUSY = 0.6
"""The share of the nodes that have an instance."""

CHANGED = 0.1
"""The share of the nodes whose maintenance begins before the last cycle of a round."""

DISTURBED = 0.05
"""The share of the processors that others may use."""

CREATED, CLAIMED = "nodes are created", "instances have come"
FRESH, EXPIRED = "nothing changed", "associations expired"
SOME, WHOLE = "a tenth changed", "nothing changed, nova < 34"
COLUMNS = ("requests", "requests s", "processor s", "nova's own s")


@dataclass(frozen=True)
class Cycle:
    """One cycle of one side. `others` is the share of the processors that others have used."""

    requests: int
    request_seconds: float
    processor_seconds: float
    own_seconds: float
    others: float


class Side:
    """A service, and a nova-compute that reports to it."""

    def __init__(self, target: Target, python: Path, log: Path) -> None:
        self.target = target
        self.nova = Nova(python, target.urls[0], "admin", log, "bench.reporters.nova_compute")

    def cycle(self, nodes: list[dict[str, Any]], *, expired: bool, whole_tree: bool) -> Cycle:
        """Let nova report all nodes once."""
        before, (services, client) = Moment.now(), self._spent()
        asked = {"nodes": nodes, "expired": expired, "whole_tree": whole_tree}
        told = self.nova.ask("cycle", asked)
        after, ended = Moment.now(), self._spent()
        spent = ended[0] - services
        ours = spent + ended[1] - client
        available = (after.at - before.at) * (os.cpu_count() or 1)
        return Cycle(
            requests=told["requests"],
            request_seconds=told["request_seconds"],
            processor_seconds=spent,
            own_seconds=told["seconds"] - told["request_seconds"],
            others=max(0.0, after.busy - before.busy - ours) / available,
        )

    def _spent(self) -> tuple[float, float]:
        """Return the processor time of the service with its database, and of nova."""
        services = sum(self.target.processor_seconds())
        return services, machine.processor_seconds([self.nova.process.pid])

    def claim(self, nodes: list[dict[str, Any]]) -> None:
        """Place the instances of nodes, as the scheduler does."""
        work = [
            request(
                "PUT",
                f"/allocations/{node['instance_uuid']}",
                json.dumps(
                    {
                        "allocations": {node["uuid"]: {"resources": {CLASS: 1}}},
                        "project_id": "p",
                        "user_id": "u",
                        "consumer_generation": None,
                        "consumer_type": "INSTANCE",
                    }
                ).encode(),
            )
            for node in nodes
        ]
        keeps = self.target.keeps
        outcome = asyncio.run(drive(self.target.urls, iter(work), 1, keeps=keeps))
        assert set(outcome.statuses) == {204}, outcome.sample


class Bench:
    """All sides, the nodes, and what was measured."""

    def __init__(self, sides: list[Side], nodes: int) -> None:
        self.sides = sides
        self.nodes = [
            {
                "uuid": str(uuid.UUID(int=1 + number)),
                "resource_class": "baremetal",
                "provision_state": "available",
                "power_state": "power off",
                "maintenance": False,
                "instance_uuid": None,
                "traits": [TRAIT],
            }
            for number in range(nodes)
        ]
        self.found: defaultdict[str, list[list[Cycle]]] = defaultdict(list)
        """By kind of cycle, for each round: the cycle of each side."""

    def all(self, rounds: int) -> None:
        """Measure everything."""
        self.measure(CREATED, 0)
        busy = self.nodes[: int(BUSY * len(self.nodes))]
        for number, node in enumerate(busy):
            node["instance_uuid"] = str(uuid.UUID(int=(1 << 64) + number))
            node["provision_state"] = "active"
        for side in self.sides:
            side.claim(busy)
        self.measure(CLAIMED, 1)
        for number in range(rounds):
            self.measure(FRESH, number)
            self.measure(EXPIRED, number, expired=True)
            self._change(number)
            self.measure(SOME, number)
            self.measure(WHOLE, number, whole_tree=True)

    def _change(self, number: int) -> None:
        """Begin the maintenance of free nodes, or end it; an instance reserves its node anyway."""
        first = int(BUSY * len(self.nodes))
        for node in self.nodes[first : first + int(CHANGED * len(self.nodes))]:
            node["maintenance"] = number % 2 == 0

    def measure(
        self, kind: str, number: int, *, expired: bool = False, whole_tree: bool = False
    ) -> None:
        """Measure one cycle of each side; every other time the other side is first."""
        found: dict[int, Cycle] = {}
        order = range(len(self.sides))
        for at in order if number % 2 else reversed(order):
            found[at] = self.sides[at].cycle(self.nodes, expired=expired, whole_tree=whole_tree)
        self.found[kind].append([found[at] for at in order])

    def show(self) -> None:
        """Print the table."""
        print(f"{'cycle':<28} {'service':<22}" + "".join(f"{one:>14}" for one in COLUMNS))
        for kind, rounds in self.found.items():
            for at, side in enumerate(self.sides):
                cycles = [each[at] for each in rounds]
                figures = (
                    f"{median(one.requests for one in cycles):>14.0f}",
                    f"{median(one.request_seconds for one in cycles):>14.2f}",
                    f"{median(one.processor_seconds for one in cycles):>14.2f}",
                    f"{median(one.own_seconds for one in cycles):>14.2f}",
                )
                print(f"{kind:<28} {side.target.name:<22}{''.join(figures)}")
            if len(self.sides) > 1:
                self._show_ratio(kind, rounds)

    def _show_ratio(self, kind: str, rounds: list[list[Cycle]]) -> None:
        times = median(theirs.request_seconds / own.request_seconds for own, theirs in rounds)
        spent = median(
            theirs.processor_seconds / max(own.processor_seconds, 1 / machine.TICKS)
            for own, theirs in rounds
        )
        others = max(one.others for each in rounds for one in each)
        note = f"; others used up to {others:.0%} of the machine" if others > DISTURBED else ""
        print(f"{kind:<28} {'ratio':<22}{times:>28.1f}{spent:>14.1f}{note}")


@contextmanager
def database(engine: str, folder: Path) -> Iterator[Cluster | None]:
    """Start a PostgreSQL that syncs its commits, unless the engine is SQLite."""
    if engine == "sqlite":
        yield None
        return
    with Cluster(folder / "cluster", durable=True) as cluster:
        yield cluster


def main() -> int:
    """Start the services and measure; without the original, measure Moorage alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.reporters.nova", description=__doc__)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--nova", type=Path, default=ROOT / ".venv-nova" / "bin" / "python")
    parser.add_argument("--original", type=Path, default=ROOT / ".venv-original")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="moorage-nova-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o711)  # a cluster started by root runs as another user
        cluster = stack.enter_context(database(asked.engine, folder))
        targets: list[Target] = []
        for one in ("moorage", "original"):
            storage = Storage(folder, one, cluster)
            if one == "original" and (reason := original.missing(asked.original)):
                print(f"not measured: {reason}", file=sys.stderr)
                continue
            if cluster is not None:
                cluster.create(one)
            targets.append(
                Moorage(storage) if one == "moorage" else Original(storage, asked.original)
            )
        sides = []
        for number, target in enumerate(targets):
            stack.enter_context(target)
            sides.append(Side(target, asked.nova.absolute(), folder / f"nova-{number}.log"))
            stack.callback(sides[-1].nova.close)
        print(
            json.dumps({"nodes": asked.nodes, "rounds": asked.rounds, **machine.describe(folder)}),
            flush=True,
        )
        bench = Bench(sides, asked.nodes)
        bench.all(asked.rounds)
        bench.show()
    return 0


if __name__ == "__main__":
    sys.exit(main())
