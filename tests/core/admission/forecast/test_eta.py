"""Estimates equal the truth where that is known, only count down, and become overdue."""

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.admission.forecast.eta import (
    PLAYED_MAX,
    SLOW,
    Estimate,
    Holder,
    LinePlace,
    Outlook,
)
from moorage.core.admission.forecast.statistics import percentile
from moorage.core.admission.forecast.why import Evidence
from moorage.core.admission.model import Pacing
from moorage.core.clock import SECOND, Instant
from tests.core.admission.build import START, World
from tests.core.admission.forecast.test_why import standing_of

HOUR = 3_600 * SECOND
LIMITS = st.integers(1, 5)
SPECS = st.fixed_dictionaries(
    {
        "cooldown": st.sampled_from([0, 0, 3 * SECOND]),
        "pacing": st.sampled_from([None, Pacing(2 * SECOND), Pacing(7 * SECOND, 3)]),
    }
)
MARGIN = 2e-6
"""Seconds by which a rounded duration may differ."""

PAUSES = st.sampled_from([None, None, 1, 20.5, 90])
"""Seconds until a pause ends that begins once all jobs have arrived; None: there is none."""

JOBS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 15), st.sampled_from([0, 0, 5])),
    min_size=1,
    max_size=14,
)
"""Units, seconds since the previous job, priority."""


def first_of(world: World, since: int, pasts: tuple[float, ...] = ()) -> Estimate:
    """Return the estimate for the first ticket, while one lease since `since` has all units."""
    pool = world.facts.pools["p"]
    holder = Holder(pool.occupied, Instant(since), None)
    outlook = Outlook(pool, 1, [1], pasts, [holder])
    return outlook.of("free", 0, (), world.moment.at, LinePlace(1, 1), 1)


@given(LIMITS, SPECS, JOBS, st.integers(1, 40), st.booleans(), PAUSES)
@settings(deadline=None, max_examples=60)
def test_with_constant_holds_an_estimate_is_the_truth(
    limit: int,
    described: dict[str, int | Pacing | None],
    jobs: list[tuple[int, int, int]],
    hold: int,
    is_past_known: bool,
    pause: float | None,
) -> None:
    """Once all jobs have arrived, the grant time of each is estimated exactly, despite a pause.

    Every earlier estimate gives the same time, and never a time in the past.
    """
    world = World()
    world.pool("p", limit, hold=hold * SECOND, **described)
    evidence = {"p": Evidence((float(hold),) * 7 if is_past_known else ())}
    for n, (units, since, priority) in enumerate(jobs):
        world.wait(since)
        world.ask(f"j{n}", {"p": min(units, limit)}, priority=priority)
    if pause is not None:
        world.pause("p", seconds=pause)
    estimates: dict[str, set[float]] = {}
    while waiting := [key for key, lease in world.facts.leases.items() if lease.state == "waiting"]:
        for key in waiting:
            found = standing_of(world, key, evidence).eta_seconds
            assert found is not None
            assert 0 <= found[0] == found[1]
            estimates.setdefault(key, set()).add(world.now + round(found[0] * SECOND))
        world.wait(3.3)
    for key, moments in estimates.items():
        assert moments == {world.lease(key).granted_at}, key


@given(
    st.lists(st.floats(0.1, 1_000), max_size=30).map(sorted),
    st.lists(st.tuples(st.integers(0, 900), st.none() | st.integers(1, 900)), max_size=6),
    st.lists(st.integers(1, 3), min_size=1, max_size=12),
    st.lists(st.integers(1, 300), min_size=1, max_size=8),
)
def test_while_nothing_changes_estimates_only_count_down(
    held: list[float],
    holders: list[tuple[int, int | None]],
    line: list[int],
    pauses: list[int],
) -> None:
    """For every place and any past leases, an estimate is not negative and its start never rises.

    Its end rises only when a holder outlasts the 90th percentile, since its end is then unknown.
    Tickets that depend on such holders are `overdue` as long as these stay.
    """
    world = World()
    world.pool("p", 6)
    if holders:
        world.ask("x", {"p": len(holders)})
    pool = world.facts.pools["p"]
    holding = [
        Holder(1, Instant(START - since * SECOND), None if more is None else START + more * SECOND)
        for since, more in sorted(holders, key=lambda it: -it[0])
    ]
    slow = percentile(held, SLOW) if held else 0.0
    at, places = START, [LinePlace(n, sum(line[:n])) for n in range(1, len(line) + 1)]
    before: tuple[int, list[Estimate]] | None = None
    for pause in [0, *pauses]:
        at += pause * SECOND
        outlook = Outlook(pool, 6, line, held, holding)
        now = [
            outlook.of("free", 6 - pool.occupied, (), Instant(at), place, own)
            for place, own in zip(places, line, strict=True)
        ]
        late = sum(
            holder.hold_until is None and at - holder.granted_at > slow * SECOND
            for holder in holding
        )
        for was, found in zip(before[1] if before else now, now, strict=True):
            assert found.seconds is None or 0 <= found.seconds[0] <= found.seconds[1]
            if was.seconds is None:
                assert found == was
            elif found.seconds is None:
                assert found.overdue
                assert before is not None
                assert late > before[0]
            else:
                assert found.seconds[0] <= was.seconds[0] + MARGIN
                if before is not None and late == before[0]:
                    assert found.seconds[1] <= was.seconds[1] + MARGIN
        before = late, now


def test_the_time_since_the_grant_counts() -> None:
    """The time since the holder's grant is deducted from the estimate, down to 0."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("x")
    pasts = (100.0,) * 20
    assert first_of(world, START, pasts).seconds == (100, 100)
    world.wait(60)
    assert first_of(world, START, pasts).seconds == (40, 40)
    world.wait(40)
    assert first_of(world, START, pasts).seconds == (0, 0)


def test_a_passed_estimate_is_overdue() -> None:
    """An estimate becomes `overdue` instead of staying 0, even if only the pool's hold is known."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("x")
    world.ask("a")
    pasts = tuple(float(seconds) for seconds in range(100, 201))
    world.wait(191)
    assert first_of(world, START, pasts) == Estimate(overdue=True)
    answer = standing_of(world, "a", {"p": Evidence(pasts)})
    assert (answer.eta_seconds, answer.overdue) == (None, True)
    assert first_of(world, START) == Estimate()
    world.pool("p", 1, ttl=HOUR, hold=190 * SECOND)
    assert first_of(world, START).overdue
    world.pool("p", 1, ttl=HOUR, hold=192 * SECOND)
    assert first_of(world, START).seconds == (0, 1)


def test_a_late_holder_spoils_no_other_estimate() -> None:
    """Only tickets that depend on the late holder's units are overdue."""
    world = World()
    world.pool("p", 2, ttl=HOUR)
    world.ask("late")
    world.wait(150)
    world.ask("x")
    world.ask("a")
    world.ask("all", {"p": 2})
    evidence = {"p": Evidence((100.0,) * 9)}
    assert standing_of(world, "a", evidence).eta_seconds == (0, 100)
    assert standing_of(world, "all", evidence).overdue


def test_a_hold_bounds_the_estimate() -> None:
    """A hold bounds the estimate; past leases that were released early lower its start."""
    world = World()
    world.pool("p", 1, ttl=HOUR)
    world.ask("x", hold=60 * SECOND)
    world.ask("a", hold=60 * SECOND)
    assert standing_of(world, "a").eta_seconds == (60, 60)
    world.wait(15)
    assert standing_of(world, "a").eta_seconds == (45, 45)
    assert standing_of(world, "a", {"p": Evidence((20.0,) * 9)}).eta_seconds == (5, 45)
    world.wait(15)
    assert standing_of(world, "a", {"p": Evidence((20.0,) * 9)}).eta_seconds == (0, 30)
    world.hold("x", None)
    assert standing_of(world, "a").eta_seconds is None


def test_a_ticket_above_the_limit_delays_no_other() -> None:
    """A ticket above the limit is passed over, so estimates behind it remain."""
    world = World()
    world.pool("p", 2, ttl=HOUR)
    world.ask("x", {"p": 2}, hold=10 * SECOND)
    world.ask("wide", {"p": 2})
    world.ask("a")
    world.pool("p", 1, ttl=HOUR)
    assert standing_of(world, "a").eta_seconds == (10, 10)


def test_units_of_holders_that_were_not_read_count_as_the_newest() -> None:
    """Only the oldest of many holders are read; the units of the others are not free."""
    world = World()
    world.pool("p", 3)
    world.ask("x", {"p": 3})
    pool = world.facts.pools["p"]
    outlook = Outlook(pool, 3, [3], (100.0,), [Holder(1, Instant(START - 30 * SECOND), None)])
    assert outlook.of("free", 0, (), Instant(START), LinePlace(1, 3), 3).seconds == (70, 70)
    nobody = Outlook(pool, 3, [3], (100.0,), [])
    assert nobody.of("free", 0, (), Instant(START), LinePlace(1, 3), 3).seconds == (100, 100)


def test_behind_a_thousand_the_pace_is_steady() -> None:
    """Behind `PLAYED_MAX` tickets estimates still rise with the rank, and stay near the truth."""
    world = World()
    world.pool("p", 10, ttl=HOUR)
    world.ask("x", {"p": 10}, hold=60 * SECOND)
    pool = world.facts.pools["p"]
    count = PLAYED_MAX + 500
    holders = [Holder(10, Instant(START), Instant(START + 60 * SECOND))]
    outlook = Outlook(pool, 10, [1] * count, (60.0,), holders)
    last = 0.0
    for rank in (1, 2, PLAYED_MAX - 1, PLAYED_MAX, PLAYED_MAX + 1, count, count + 1):
        found = outlook.of("free", 0, (), Instant(START), LinePlace(rank, rank), 1).seconds
        assert found is not None
        assert last <= found[0] == found[1]
        last = found[0]
        assert abs(last - 60 * -(-rank // 10)) <= 60
