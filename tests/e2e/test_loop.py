"""No callback holds the event loop for long; and what measures that does find one that does."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from bench.fleet import Fleet
from bench.held import Watched
from bench.loop import holding, probes
from tests.support import cluster

SOAK = "MOORAGE_SOAK" in os.environ
HOSTS = probes.LARGE
UNBOUNDED = "GET /allocation_candidates (candidates)"
"""What has no limit names every host; how that is cut into pieces is a matter of the search."""


def test_a_planted_long_piece_is_found() -> None:
    """A callback that works for long is the longest, and is named; those beside it are not."""
    watched = Watched()

    async def planted() -> None:
        began = time.thread_time()
        while time.thread_time() - began < holding.HELD_MILLISECONDS_MAX / 1_000:
            pass

    async def scene() -> None:
        await asyncio.sleep(0)
        watched.taken()
        await asyncio.gather(planted(), asyncio.sleep(0))

    with watched.watching():
        asyncio.run(scene())
    found = watched.taken()
    assert found.milliseconds >= holding.HELD_MILLISECONDS_MAX
    assert "planted" in found.what
    assert found.callbacks > 1
    before = watched.taken().callbacks
    asyncio.run(asyncio.sleep(0))
    assert watched.taken().callbacks == before == 0, "it measures only while it is entered"


def test_every_route_is_asked() -> None:
    """A new route needs a line; the check for it does miss what is left out."""
    asked = probes.everything(probes.Sizes.of(0))
    assert probes.missing(asked) == []
    assert probes.missing(asked[1:]) == ["GET /"]


def test_a_small_fleet_answers_all_of_it(tmp_path: Path) -> None:
    """Every line succeeds, or is refused as it should be, on a loop that is watched."""
    much = probes.Sizes.of(0)

    async def scene(server: holding.Watched) -> list[holding.Line]:
        await holding.made(server.url, probes.reports(Fleet("flat", 40)))
        return await holding.lines(server, much)

    with holding.watched(f"sqlite:///{tmp_path}/m.sqlite", tmp_path) as server:
        found = asyncio.run(scene(server))
    assert len(found) > 80
    wrong = [line for line in found if line.status >= 400 and not refused(line)]
    assert wrong == []
    assert all(line.held.callbacks for line in found)


def refused(line: holding.Line) -> bool:
    """Is it a line that is meant to be refused?"""
    words = ("wrong", "nothing fits", "token)", "{id}")
    return any(word in line.what for word in words)


@pytest.mark.skipif(not SOAK, reason="takes minutes; part of make soak")
@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_nothing_holds_the_loop(tmp_path: Path, engine: str) -> None:
    """With 100,000 hosts no callback uses more than 50 ms of its thread, whatever is asked for."""
    much = probes.Sizes()
    url = cluster.fresh() if engine == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"

    async def scene(server: holding.Watched) -> list[holding.Line]:
        await holding.made(server.url, probes.reports(Fleet("flat", HOSTS)))
        found = await holding.lines(server, much)
        if engine == "postgresql":
            with holding.watched(url, tmp_path) as other:
                found += await holding.following(server, other, url, much)
        return found

    with holding.watched(url, tmp_path) as server:
        found = asyncio.run(scene(server))
    long = [str(line) for line in found if line.held.milliseconds > holding.HELD_MILLISECONDS_MAX]
    assert [line for line in long if not line.startswith(UNBOUNDED)] == []
