"""No callback blocks the event loop for long, and the measurement finds one that does."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from bench.fleet import Fleet
from bench.held import CallbackTimer
from bench.loop import holding, probes
from tests.support import cluster

SOAK = "MOORAGE_SOAK" in os.environ
HOSTS = probes.LARGE
UNBOUNDED = "GET /allocation_candidates (candidates)"
"""The probe without a limit, whose answer names every host and is exempt here."""


def test_a_long_callback_is_found() -> None:
    """The measurement finds and names a long callback, and measures only inside its context."""
    timer = CallbackTimer()

    async def planted() -> None:
        began = time.thread_time()
        while time.thread_time() - began < holding.HELD_MILLISECONDS_MAX / 1_000:
            pass

    async def steps() -> None:
        await asyncio.sleep(0)
        timer.take()
        await asyncio.gather(planted(), asyncio.sleep(0))

    with timer.measuring():
        asyncio.run(steps())
    found = timer.take()
    assert found.milliseconds >= holding.HELD_MILLISECONDS_MAX
    assert "planted" in found.what
    assert found.callbacks > 1
    before = timer.take().callbacks
    asyncio.run(asyncio.sleep(0))
    assert timer.take().callbacks == before == 0, "it measures outside of its context"


def test_every_route_has_a_probe() -> None:
    """Every route has a probe, and `missing` finds a route without one."""
    asked = probes.all_probes(probes.Sizes.of(0))
    assert probes.missing(asked) == []
    assert probes.missing(asked[1:]) == ["GET /"]


def test_all_probes_on_a_small_fleet(tmp_path: Path) -> None:
    """Every probe succeeds, or is refused as expected, on a measured loop."""
    much = probes.Sizes.of(0)

    async def steps(server: holding.MeasuredServer) -> list[holding.Line]:
        await holding.send_all(server.url, probes.reports(Fleet("flat", 40)))
        return await holding.lines(server, much)

    with holding.measured_server(f"sqlite:///{tmp_path}/m.sqlite", tmp_path) as server:
        found = asyncio.run(steps(server))
    assert len(found) > 80
    wrong = [line for line in found if line.status >= 300 and not refused(line)]
    assert wrong == []
    assert all(line.held.callbacks for line in found)


def refused(line: holding.Line) -> bool:
    """Return whether a probe is expected to be refused."""
    words = ("invalid", "nothing fits", "token)", "{id}")
    return any(word in line.what for word in words)


@pytest.mark.skipif(not SOAK, reason="takes minutes; part of make soak")
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_no_callback_blocks_the_loop(tmp_path: Path, engine: str) -> None:
    """With 100,000 hosts no callback uses more than 50 ms of processor time."""
    much = probes.Sizes()
    url = cluster.fresh() if engine == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"

    async def steps(server: holding.MeasuredServer) -> list[holding.Line]:
        await holding.send_all(server.url, probes.reports(Fleet("flat", HOSTS)))
        found = await holding.lines(server, much)
        if engine == "postgresql":
            with holding.measured_server(url, tmp_path) as other:
                found += await holding.follow(server, other, url, much)
        return found

    with holding.measured_server(url, tmp_path) as server:
        found = asyncio.run(steps(server))
    long = [str(line) for line in found if line.held.milliseconds > holding.HELD_MILLISECONDS_MAX]
    assert [line for line in long if not line.startswith(UNBOUNDED)] == []
