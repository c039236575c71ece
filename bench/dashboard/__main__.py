"""Measures the dashboard with 15,000 nodes and 10,000 tickets: `make bench-dashboard`.

First paint of every page in a real Chromium; then, without a browser, what 200 open pages cost the
service, and the latency of claims beside them, in turn with the same work without pages. Pages are
either 20 addresses that four readers have open several times, or 200 addresses. Lines of JSON.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from bench import machine
from bench.dashboard.open_pages import open_pages
from bench.dashboard.scene import POOLS, Scene, job, pool
from bench.machine import Moment
from bench.questions import disjoint_claims
from bench.target import ROOT
from bench.wire import Outcome, Work, bounded, drive, sign_in
from moorage.serve.files import Files
from tests.e2e.support.server import MOORAGE, serve
from tests.faces.v1.native import Native
from tests.support.cluster import Cluster

PAGES, READERS = 200, 4
ROUNDS = 5
PAINTS = 10
WINDOW_SECONDS = 20.0
SETTLE_SECONDS = 5.0
"""From the opening of the pages until a window begins."""

CHANGES_PER_SECOND = 20
CLAIMERS = 8
LEAST, MOST = 100, 10**9


@dataclass(frozen=True)
class Window:
    """What was measured in some seconds. Shares are of one processor."""

    share: float
    p99: float = 0.0
    p50: float = 0.0
    rate: float = 0.0
    others: float = 0.0
    events: float = 0.0


@dataclass
class Pairs:
    """Windows without and with open pages, which follow each other."""

    without: list[Window] = field(default_factory=list)
    beside: list[Window] = field(default_factory=list)


class Bench:
    """One server and its scene."""

    def __init__(self, scene: Scene, roots: list[int], seconds: float) -> None:
        self.scene = scene
        self.roots = roots
        self.seconds = seconds
        native = scene.native
        tokens = [native.token("admin", name=f"admin {number}") for number in range(READERS)]
        self.sessions = [sign_in(native.url, token) for token in tokens]
        self._numbers = itertools.count(1)

    def jobs(self) -> Iterator[bytes]:
        """Return changes of pools: jobs arrive in all lines and are not released."""
        for number in itertools.count(10**6):
            yield self.scene.send("POST", "/v1/leases", job(pool(number % POOLS), number))

    def claims(self) -> Iterator[bytes]:
        """Return claims, each on another node."""
        return map(self.scene.signed, disjoint_claims(self._numbers, self.scene.fleet))

    async def paced(self, work: Iterator[Work], url: str) -> Outcome:
        """Send some requests a second, one after another."""
        begun, total = time.perf_counter(), Outcome()
        for number in itertools.count(1):
            outcome = await drive([url], itertools.islice(work, 1), 1)
            total.seconds += outcome.seconds
            total.statuses += outcome.statuses
            due = begun + number / CHANGES_PER_SECOND
            if due > begun + self.seconds:
                return total
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        raise AssertionError

    async def window(self, work: Iterator[Work], *, saturated: bool, events: int = 0) -> Window:
        """Measure one window of work."""
        url = self.scene.native.url
        spent, begun = machine.processor_seconds(self.roots), Moment.now()
        own = time.process_time()
        if saturated:
            outcome = await drive([url], bounded(work, self.seconds, LEAST, MOST), CLAIMERS)
        else:
            outcome = await self.paced(work, url)
        ended = Moment.now()
        spent = machine.processor_seconds(self.roots) - spent
        own = time.process_time() - own
        assert all(status < 300 for status in outcome.statuses), outcome.statuses
        elapsed = ended.at - begun.at
        ordered = sorted(outcome.seconds)
        return Window(
            share=spent / elapsed,
            p99=1_000 * ordered[len(ordered) * 99 // 100],
            p50=1_000 * statistics.median(ordered),
            rate=len(ordered) / elapsed,
            others=max(0.0, ended.busy - begun.busy - spent - own) / elapsed,
            events=events / elapsed,
        )

    async def pairs(self, paths: Sequence[str], rounds: int, *, saturated: bool) -> Pairs:
        """Measure windows without pages and beside pages, in turn."""
        work: Iterator[Work] = self.claims() if saturated else self.jobs()
        found = Pairs()
        for _ in range(rounds):
            found.without.append(await self.window(work, saturated=saturated))
            url = self.scene.native.url
            async with open_pages(url, self.sessions, paths, PAGES) as pages:
                await asyncio.sleep(SETTLE_SECONDS)
                before = sum(page.events for page in pages)
                window = await self.window(work, saturated=saturated)
                shown = sum(page.events for page in pages) - before
                found.beside.append(Window(**{**vars(window), "events": shown / self.seconds}))
        return found


def cost_line(name: str, found: Pairs) -> dict[str, object]:
    """Return what open pages cost."""
    shares = [b.share - a.share for a, b in zip(found.without, found.beside, strict=True)]
    return {
        "pages": name,
        "changes/s": CHANGES_PER_SECOND,
        "share of a core, median": f"{statistics.median(shares):.1%}",
        "largest": f"{max(shares):.1%}",
        "events/s": round(statistics.median(one.events for one in found.beside), 1),
        "others used": f"{max(one.others for one in [*found.without, *found.beside]):.1%}",
    }


def claims_line(name: str, found: Pairs) -> dict[str, object]:
    """Return how claims fare beside open pages."""
    ratios = [b.p99 / a.p99 for a, b in zip(found.without, found.beside, strict=True)]
    rates = [b.rate / a.rate for a, b in zip(found.without, found.beside, strict=True)]
    return {
        "claims beside": name,
        "p99 ms without, with": [
            round(statistics.median(one.p99 for one in side), 1)
            for side in (found.without, found.beside)
        ],
        "p99 ratio, median": round(statistics.median(ratios), 2),
        "all": [round(one, 2) for one in ratios],
        "claims/s ratio": round(statistics.median(rates), 2),
        "others used": f"{max(one.others for one in [*found.without, *found.beside]):.1%}",
    }


def painted(scene: Scene, python: Path, chromium: Path, rounds: int) -> None:
    """Measure first paints with the browser's environment."""
    asked = json.dumps({"token": scene.native.secret, "pages": scene.pages()})
    arguments = [str(chromium), scene.native.url, str(rounds)]
    command = [str(python), "-m", "bench.dashboard.first_paint", *arguments]
    subprocess.run(command, input=asked, text=True, check=True, cwd=ROOT)


def measure(bench: Bench, rounds: int) -> None:
    """Print what open pages cost, and how claims fare beside them."""
    scene = bench.scene
    kinds = {f"{PAGES} of 20": scene.alike(), f"{PAGES} different": scene.different()}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for name, paths in kinds.items():
            found = runner.run(bench.pairs(paths, rounds, saturated=False))
            print(json.dumps(cost_line(name, found)), flush=True)
        for name, paths in kinds.items():
            found = runner.run(bench.pairs(paths, rounds, saturated=True))
            print(json.dumps(claims_line(name, found)), flush=True)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description=__doc__)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="pairs of windows")
    parser.add_argument("--seconds", type=float, default=WINDOW_SECONDS, help="of a window")
    parser.add_argument("--paints", type=int, default=PAINTS, help="loads of each page; 0: none")
    parser.add_argument("--tiny", action="store_true", help="only check that everything works")
    parser.add_argument(
        "--browser", type=Path, default=ROOT / ".venv-browser" / "bin" / "python", metavar="PYTHON"
    )
    parser.add_argument(
        "--chromium", type=Path, default=ROOT / ".chromium" / "chromium", metavar="FILE"
    )
    return parser.parse_args()


def main() -> int:
    """Fill a ledger and measure everything."""
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="moorage-dashboard-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o711)  # a cluster started by root runs as another user
        database: Path | str = folder / "moorage.sqlite"
        if asked.engine == "postgresql":
            cluster = stack.enter_context(Cluster(folder / "cluster", durable=True))
            cluster.create("dashboard")
            database = cluster.url("dashboard")
        options = {"XDG_STATE_HOME": str(folder)}
        server = stack.enter_context(serve(database, "--no-access-log", moorage=MOORAGE, **options))
        token = Files(database if isinstance(database, str) else f"sqlite:///{database}").token
        sizes = (300, 500) if asked.tiny else ()
        scene = Scene(Native(server.url, token.with_suffix("")), *sizes)
        scene.fill()
        about = {**machine.describe(folder), "code": machine.code(ROOT), "engine": asked.engine}
        about |= {"nodes": scene.fleet.size, "tickets": scene.tickets}
        print(json.dumps(about), flush=True)
        if asked.paints:
            painted(scene, asked.browser.absolute(), asked.chromium.absolute(), asked.paints)
        measure(Bench(scene, [server.pid], asked.seconds), asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
