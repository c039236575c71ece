"""Pacing spreads grants over time without slowing an idle pool, and never delays a release."""

from collections import Counter
from itertools import pairwise

import pytest

from moorage.core.admission.model import Pacing
from moorage.core.admission.pacing import AHEAD_MAX, jitter, pacing_default, paid, permitted
from moorage.core.admission.requests import NEVER
from moorage.core.clock import SECOND, Instant
from tests.core.admission.build import START, World

HOLD = 20 * 60 * SECOND


@pytest.mark.parametrize(("burst", "first", "most"), [(1, 3, 3), (5, 7, 7)])
def test_250_jobs_at_once_start_as_paced(burst: int, first: int, most: int) -> None:
    """With limit 50, hold 20 min and interval 24 s, starts per minute obey burst and rate."""
    world = World(page=16)
    pacing = pacing_default(50, HOLD)
    assert pacing == Pacing(24 * SECOND, 5)
    world.pool("p", 50, hold=HOLD, pacing=Pacing(24 * SECOND, burst))
    for n in range(250):
        world.ask(f"j{n}", ttl=NEVER)
    world.wait(101 * 60)
    starts = sorted(lease.granted_at or 0 for lease in world.facts.leases.values())
    per_minute = Counter((start - START) // (60 * SECOND) for start in starts)
    assert per_minute[0] == first
    assert max(per_minute.values()) == most
    assert starts[0] == START
    assert starts[-1] - START <= 100 * 60 * SECOND


def test_an_idle_pool_does_not_crawl() -> None:
    """The default burst lets a tenth of the limit start at once in an idle pool."""
    world = World()
    world.pool("p", 50, hold=HOLD, pacing=pacing_default(50, HOLD))
    for n in range(5):
        world.ask(f"a{n}")
    assert len(world.holders()) == 5
    world.ask("b")
    assert len(world.holders()) == 5
    assert world.facts.pools["p"].wake_at == START + 24 * SECOND


def test_the_interval_is_kept_and_jitter_only_adds() -> None:
    """Two grants are at least an interval apart, and at most an interval and the jitter."""
    world = World()
    world.pool("p", 100, pacing=Pacing(10 * SECOND, 1, 5 * SECOND))
    for n in range(20):
        world.ask(f"a{n}", ttl=3_600 * SECOND)
    world.wait(400)
    starts = sorted(lease.granted_at or 0 for lease in world.facts.leases.values())
    gaps = [later - start for start, later in pairwise(starts)]
    assert len(starts) == 20
    assert all(10 * SECOND <= gap <= 15 * SECOND for gap in gaps)
    assert len(set(gaps)) > 10


def test_a_ticket_pays_for_all_its_units() -> None:
    """After a grant of three units the next ticket waits for three intervals."""
    world = World()
    world.pool("p", 10, pacing=Pacing(10 * SECOND))
    world.ask("three", {"p": 3})
    world.ask("one")
    assert world.facts.pools["p"].wake_at == START + 30 * SECOND
    world.wait(30)
    assert world.states()["one"] == "g"


def test_pacing_does_not_block_a_release() -> None:
    """Units are freed at once, even if pacing delays their next grant."""
    world = World()
    world.pool("p", 1, pacing=Pacing(10 * SECOND))
    world.ask("a")
    world.ask("b")
    world.release("a")
    assert world.states() == {"a": "released", "b": "w"}
    assert world.facts.pools["p"].occupied == 0
    world.wait(10)
    assert world.states()["b"] == "g"


def test_a_gang_is_paced_by_each_of_its_pools() -> None:
    """While one pool's pacing delays a gang, its units of the other pool are set aside."""
    world = World()
    world.pool("x", 5, pacing=Pacing(10 * SECOND))
    world.pool("y", 1)
    world.ask("first", {"x": 1})
    world.ask("gang", {"x": 1, "y": 1})
    world.ask("single", {"y": 1})
    assert world.states() == {"first": "g", "gang": "w", "single": "w"}
    world.wait(10)
    assert world.states() == {"first": "g", "gang": "g", "single": "w"}


def test_a_shorter_interval_takes_effect_at_once() -> None:
    """The wait that earlier grants have caused is cut to the new interval."""
    world = World()
    world.pool("p", 10, pacing=Pacing(3_600 * SECOND))
    world.ask("a")
    world.ask("b")
    world.pool("p", 10, pacing=Pacing(5 * SECOND))
    world.wait(5)
    assert world.states()["b"] == "g"


def test_pacing_delays_are_bounded() -> None:
    """Pacing never delays grants by more than `AHEAD_MAX`, whatever the units and intervals."""
    world = World()
    pool = world.pool("p", 2_000_000_000, pacing=Pacing(31_622_400 * SECOND))
    assert paid(pool, 2_000_000_000, Instant(START), 1) == START + AHEAD_MAX


def test_how_many_are_permitted_at_once() -> None:
    """The burst is permitted at once, less the units whose interval is not over."""
    world = World()
    pool = world.pool("p", 10, pacing=Pacing(10 * SECOND, 3))
    assert permitted(pool, Instant(START), 9) == 3
    world.ask("a")
    assert permitted(world.facts.pools["p"], Instant(START), 9) == 2
    world.ask("b", {"p": 2})
    assert permitted(world.facts.pools["p"], Instant(START), 9) == 0
    assert permitted(world.facts.pools["p"], Instant(START + 10 * SECOND), 9) == 1


def test_jitter_is_the_same_for_the_same_seed() -> None:
    """Jitter is repeatable, within its bound, differs by arrival, and is 0 if not configured."""
    drawn = [jitter("p", arrival, 1_000) for arrival in range(200)]
    assert drawn == [jitter("p", arrival, 1_000) for arrival in range(200)]
    assert min(drawn) >= 0
    assert max(drawn) <= 1_000
    assert len(set(drawn)) > 100
    assert jitter("p", 1, 0) == 0
