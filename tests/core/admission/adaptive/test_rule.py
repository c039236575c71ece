"""Which outcomes are evidence, and when the limit takes a step."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.adaptive import rule
from moorage.core.admission.adaptive.texts import step_text
from moorage.core.admission.adaptive.texts import test_text as seen_text
from moorage.core.admission.model import (
    Pool,
)
from moorage.core.admission.pacing import pacing_default
from moorage.core.admission.requests import Proof
from moorage.core.clock import HOUR, MINUTE, SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.pool_values import Adaptation, Adaptive, Busy, Counts, Step
from tests.core.admission.build import START, Refused, World
from tests.core.admission.hands.test_handing_over import accept, offer

HOLD = 20 * MINUTE
GOOD_IN_A_ROW = 47
BAD_IN_A_ROW = 3
ACTING = Adaptive(1, 100, "act")


def started(limit: int = 10, settings: Adaptive = ACTING, **more: Any) -> World:
    """Return a world with an adaptive pool `p`."""
    world = World()
    world.pool("p", limit, adaptive=settings, **({"hold": HOLD} | more))
    return world


def state(world: World) -> Adaptation:
    """Return the state of the pool's test."""
    found = world.facts.pools["p"].adaptation
    assert found is not None
    return found


class Jobs:
    """Jobs that keep a pool full: each that ends makes room for the next."""

    def __init__(self, world: World, units: int | None = None) -> None:
        self.world = world
        self.count = 0
        self.running: list[str] = []
        self.fill(world.facts.pools["p"].spec.limit if units is None else units)

    def fill(self, units: int | None = None) -> None:
        """Start jobs until this many run, or as many as the limit permits."""
        limit = self.world.facts.pools["p"].spec.limit or 0
        while len(self.running) < min(limit, limit if units is None else units):
            self.count += 1
            self.running.append(f"j{self.count}")
            self.world.ask(self.running[-1])

    def end(self, result: Any = "ok", cause: str = "", seconds: float = 60) -> Pool:
        """Let time pass; the oldest job reports, releases, and the next one starts."""
        key = self.running.pop(0)
        self.world.now += round(seconds * SECOND)
        pool = self.world.report(key, result, cause)
        self.world.release(key)
        self.fill()
        return pool


def full(limit: int = 10, settings: Adaptive = ACTING, **more: Any) -> Jobs:
    """Return the jobs of a full adaptive pool; a lease has no hold, so that none ends by itself."""
    return Jobs(started(limit, settings, **({"hold": None} | more)))


def limit_of(jobs: Jobs) -> int | None:
    """Return the limit in force."""
    return jobs.world.facts.pools["p"].spec.limit


def test_good_outcomes_raise_the_limit() -> None:
    """By a tenth, at the 47th in a row and not before; the evidence is kept, a new test begins."""
    jobs = full(50)
    for _ in range(GOOD_IN_A_ROW - 1):
        jobs.end()
    assert limit_of(jobs) == 50
    at = jobs.world.now + 60 * SECOND
    jobs.end()
    assert limit_of(jobs) == 55
    assert len(jobs.running) == 55
    step = state(jobs.world).last
    assert step == Step(Instant(at), "good", 50, 55, Counts(GOOD_IN_A_ROW), True)
    assert state(jobs.world).counts == Counts()


def test_failures_cut_the_limit_at_once() -> None:
    """To seven tenths, at the third in a row, without revoking a lease."""
    jobs = full(50)
    for _ in range(BAD_IN_A_ROW - 1):
        jobs.end("failed")
    assert limit_of(jobs) == 50
    jobs.end("failed")
    assert limit_of(jobs) == 35
    assert jobs.world.facts.pools["p"].occupied == 49


def test_throttled_starts_cut_the_limit_at_once() -> None:
    """Three within one hold, even among many good outcomes; not if one is older."""
    jobs = full(50, Adaptive(2, 100, "act", good=0.3, bad=0.6), hold=HOLD)
    for _ in range(2):
        jobs.end("throttled", seconds=70)
        for _ in range(3):
            jobs.end(seconds=1)
    jobs.end("throttled", seconds=70)
    assert limit_of(jobs) == 35
    late = full(50, Adaptive(2, 100, "act", good=0.3, bad=0.6), hold=HOLD)
    late.end("throttled", seconds=70)
    late.end("throttled", seconds=70)
    late.end("throttled", seconds=HOLD / SECOND - 70)
    assert limit_of(late) == 50


def test_nothing_counts_for_one_hold_after_a_change() -> None:
    """Not even many failures: what fails does so early. Later, only leases granted since then."""
    jobs = full(50, hold=HOLD)
    for _ in range(BAD_IN_A_ROW):
        jobs.end("failed")
    assert limit_of(jobs) == 35
    while len(jobs.running) > 35:
        jobs.end(seconds=1)
    old = jobs.running[-1]
    for _ in range(10):
        jobs.end("failed", seconds=61)
    assert limit_of(jobs) == 35
    assert state(jobs.world).counts == Counts()
    world = jobs.world
    world.now = state(world).frozen_until - SECOND
    world.report(jobs.running[-1], "failed")
    assert state(world).counts == Counts()
    world.now += SECOND
    world.report(old, "failed")
    assert state(world).counts == Counts()
    world.report(jobs.running[-2], "failed")
    assert state(world).counts == Counts(failed=1)


def test_an_outcome_of_a_quiet_pool_is_no_evidence() -> None:
    """79 % of the limit in use: nothing happens, however many fail. With 80 % it does."""
    quiet = full(100, settings=Adaptive(2, 100, "act"))
    assert limit_of(quiet) == 100
    world = started(100, hold=None)
    for units, cuts in ((79, False), (80, True)):
        jobs = Jobs(world, units)
        for number in range(BAD_IN_A_ROW):
            key = jobs.running[number]
            world.now += 60 * SECOND
            world.report(key, "failed")
        assert (world.facts.pools["p"].spec.limit == 70) is cuts
        if not cuts:
            assert state(world).aside == BAD_IN_A_ROW
        for key in jobs.running:
            world.release(key)
        world.facts.leases.clear()
        world.facts.asked.clear()


def test_neither_the_grant_nor_the_report_decides() -> None:
    """The first and the last job of a rush were alone then, but ran in a full pool in between."""
    world = started(5, hold=None)
    world.ask("first")
    world.now += 10 * SECOND
    for number in range(4):
        world.ask(f"j{number}")
    world.now += 100 * SECOND
    for number in range(3):
        world.release(f"j{number}")
    world.now += 10 * SECOND
    world.report("first", "failed")
    assert state(world).counts == Counts(failed=1)
    world.now += 100 * SECOND
    world.report("j3", "failed")
    assert (state(world).counts, state(world).aside) == (Counts(failed=1), 1)


def test_the_life_of_a_lease_counts_not_the_time_until_the_report() -> None:
    """A hold ends the lease, the job goes on, and the pool becomes empty before it reports."""
    world = started(1, hold=60 * SECOND)
    world.ask("a")
    world.wait(3_600)
    world.report("a", "failed")
    assert state(world).counts == Counts(failed=1)


def test_a_lease_that_was_handed_over_was_granted_to_its_first_owner() -> None:
    """So what was started at another limit is no evidence for this one."""
    jobs = full(10)
    old, other = jobs.running[:2]
    jobs.world.now += MINUTE
    for _ in range(BAD_IN_A_ROW):
        jobs.world.report(jobs.running.pop(), "failed")
    assert limit_of(jobs) == 7
    jobs.world.now += HOUR
    since = jobs.world.now - START
    offer(jobs.world, old, proof=Proof("me"))
    accept(jobs.world, old)
    jobs.world.report("b", "failed")
    assert (state(jobs.world).counts, state(jobs.world).aside) == (Counts(), 1)
    offer(jobs.world, other, proof=Proof("me"))
    accept(jobs.world, other, "c")
    jobs.world.report("c")
    assert state(jobs.world).lasted == (since,), "it has run since its first grant"


def test_failures_of_one_cause_count_once_a_minute() -> None:
    """An incident that fails twenty starts at once is one failure; each other cause is another."""
    jobs = full(50, hold=HOLD)
    jobs.end("failed", "quota")
    for _ in range(20):
        jobs.end("failed", "quota", seconds=1)
    assert limit_of(jobs) == 50
    assert state(jobs.world).counts == Counts(failed=21, correlated=20)
    assert rule.totals(state(jobs.world)) == (0, 1)
    jobs.end("failed", "network", seconds=1)
    jobs.end("failed", "quota", seconds=60)
    assert limit_of(jobs) == 35


def test_failures_without_a_cause_are_like_no_other() -> None:
    """The control: twenty of them within a minute cut the limit; throttled ones count once."""
    jobs = full(50)
    for _ in range(BAD_IN_A_ROW):
        jobs.end("failed", seconds=1)
    assert limit_of(jobs) == 35
    slow = full(50, hold=HOLD)
    for _ in range(20):
        slow.end("throttled", seconds=1)
    assert limit_of(slow) == 50
    assert len(state(slow.world).throttled) == 1


def test_good_outcomes_of_a_minute_shrink_with_its_failures() -> None:
    """Eight of a hundred fail in every minute, all of one cause: that is 8 %, not one of 93."""
    jobs = full(50, Adaptive(2, 200, "act"), hold=HOLD)
    for minute in range(20):
        for number in range(100):
            failed = number % 13 == 1 and number < 100
            seconds = 61 if minute and not number else 0.1
            jobs.end("failed" if failed else "ok", "exit code 1" if failed else "", seconds)
        if limit_of(jobs) != 50:
            break
    assert limit_of(jobs) == 35
    assert state(jobs.world).last is not None


def test_a_minute_is_short_in_a_pool_of_short_jobs() -> None:
    """With a hold of ten seconds, failures half a second apart are not the same."""
    jobs = full(50, hold=10 * SECOND)
    for _ in range(BAD_IN_A_ROW):
        jobs.end("throttled", seconds=0.5)
    assert limit_of(jobs) == 35


def test_floor_and_ceiling_hold() -> None:
    """Steps end there; a decision that moves nothing begins a new test, without a freeze."""
    low = full(10, Adaptive(9, 10, "act"))
    for _ in range(BAD_IN_A_ROW):
        low.end("failed")
    assert limit_of(low) == 9
    low.world.now = int(state(low.world).frozen_until)
    for key in low.running:
        low.world.release(key)
    low.running.clear()
    low.fill()
    for _ in range(BAD_IN_A_ROW):
        low.end("failed")
    assert limit_of(low) == 9
    last = state(low.world).last
    assert last is not None
    assert (last.before, last.after, last.acted) == (9, 9, False)
    assert "stays at its floor, 9" in step_text(last)
    high = full(10, Adaptive(1, 10, "act"))
    for _ in range(GOOD_IN_A_ROW):
        high.end()
    assert limit_of(high) == 10
    assert state(high.world).frozen_until <= high.world.now


@pytest.mark.parametrize(
    ("limit", "up", "down"), [(1, 2, 1), (9, 10, 6), (50, 55, 35), (99, 108, 69)]
)
def test_how_large_steps_are(limit: int, up: int, down: int) -> None:
    """A tenth upwards, one at least; seven tenths downwards, one at least."""
    settings = Adaptive(1, 1_000)
    assert (rule.raised(settings, limit), rule.cut(settings, limit)) == (up, down)


def test_advice_changes_nothing() -> None:
    """The limit stays; what it would be, and why, is known."""
    jobs = full(50, Adaptive(2, 100))
    for _ in range(BAD_IN_A_ROW):
        jobs.end("failed")
    assert limit_of(jobs) == 50
    step = state(jobs.world).last
    assert step is not None
    assert (step.before, step.after, step.acted) == (50, 35, False)
    said = "would cut the limit from 50 to 35: too many starts fail: 0 ok, 3 failed, 0 throttled"
    assert step_text(step) == said
    assert state(jobs.world).counts == Counts()
    assert "usually 78 outcomes show that 2 %" in seen_text(Adaptive(2, 100), state(jobs.world))


def test_the_default_pacing_follows_the_limit() -> None:
    """Hold by limit; another pacing stays as an operator has set it."""
    pacing = pacing_default(50, HOLD)
    assert pacing is not None
    jobs = full(50, hold=HOLD, pacing=structs.replace(pacing, burst=50))
    assert len(jobs.running) == 50
    world = jobs.world
    followed = structs.replace(world.facts.pools["p"].spec, pacing=pacing)
    world.facts.pools["p"] = structs.replace(world.facts.pools["p"], spec=followed)
    for key in jobs.running[:3]:
        world.now += 60 * SECOND
        world.report(key, "failed")
    spec = world.facts.pools["p"].spec
    assert (spec.limit, spec.pacing) == (35, pacing_default(35, HOLD))
    other = full(50, hold=HOLD, pacing=structs.replace(pacing, burst=50))
    for key in other.running[:3]:
        other.world.now += 60 * SECOND
        other.world.report(key, "failed")
    assert other.world.facts.pools["p"].spec.pacing == structs.replace(pacing, burst=50)


def test_a_test_without_a_decision_begins_again() -> None:
    """Every 23rd start fails, which is between the rates: old outcomes are dropped after 312."""
    jobs = full(50, hold=HOLD)
    most = rule.most(ACTING)
    assert most == 4 * 78
    for number in range(most - 1):
        jobs.end("failed" if number % 23 == 11 else "ok", seconds=61)
        assert limit_of(jobs) == 50
    assert state(jobs.world).counts.ok > 200
    jobs.end()
    assert state(jobs.world).counts == Counts()


def test_settings_are_checked() -> None:
    """A floor, a ceiling and a limit between them; rates that are far enough apart; no slots."""
    world = World()
    for settings in (
        Adaptive(0, 10),
        Adaptive(6, 10),
        Adaptive(1, 4),
        Adaptive(5, 4),
        Adaptive(1, 10, good=0.0),
        Adaptive(1, 10, good=0.02, bad=0.025),
        Adaptive(1, 10, bad=1.0),
        Adaptive(1, 10, throttled=0),
        Adaptive(1, 10, throttled=21),
    ):
        with Refused(Code.INVALID):
            world.pool("p", 5, adaptive=settings)
    with Refused(Code.INVALID):
        world.pool("p", 5, adaptive=Adaptive(1, 10), per_member=2, member_group="g")
    world.slots("s", "s1")
    with Refused(Code.INVALID):
        world.pool("s", None, adaptive=Adaptive(1, 10))


def test_a_cut_leaves_room_for_the_job_that_has_failed() -> None:
    """Or no job of that size could start, and no outcome would raise the limit again."""
    world = started(10, hold=None)
    for job in range(3):
        world.ask(f"j{job}", {"p": 9})
        world.now += MINUTE
        pool = world.report(f"j{job}", "failed")
        world.release(f"j{job}")
    assert pool.spec.limit == 9
    world.now += HOUR
    world.ask("next", {"p": 9})
    assert world.facts.leases[LeaseId("next")].state == "granted"


def test_a_forced_lease_of_many_units_raises_no_limit() -> None:
    """A cut is never a rise."""
    world = started(10, hold=None)
    for job in range(3):
        world.ask(f"j{job}", {"p": 50}, forced=True)
        world.now += MINUTE
        pool = world.report(f"j{job}", "failed")
    assert pool.spec.limit == 10


def test_what_an_operator_may_change() -> None:
    """Who names the present limit keeps the test; another limit or mode is a new start."""
    jobs = full(50, hold=HOLD)
    first = jobs.world.facts.pools["p"].generation
    for _ in range(BAD_IN_A_ROW):
        jobs.end("failed")
    world = jobs.world
    before = world.facts.pools["p"]
    assert (before.spec.limit, state(world).configured) == (35, 50)
    assert before.generation == first + 1
    assert world.pool("p", 35, adaptive=ACTING, hold=HOLD) == before
    changed = world.pool("p", 35, adaptive=ACTING, hold=HOLD, quota=7)
    assert changed.adaptation == before.adaptation
    narrow = world.pool("p", 35, adaptive=Adaptive(40, 100, "act"), hold=HOLD)
    assert (narrow.spec.limit, state(world).configured) == (40, 50)
    other = world.pool("p", 50, adaptive=Adaptive(40, 100, "act"), hold=HOLD)
    assert (other.spec.limit, state(world).configured) == (50, 50)
    assert state(world).frozen_until == world.now + HOLD
    world.pool("p", 50, adaptive=Adaptive(40, 100), hold=HOLD)
    assert state(world).since == world.now
    assert world.pool("p", 50, hold=HOLD).adaptation is None


def test_a_request_may_wait_for_a_limit_to_return() -> None:
    """What an operator has promised is not refused while the limit is cut."""
    jobs = full(50, hold=HOLD)
    for _ in range(BAD_IN_A_ROW):
        jobs.end("failed")
    jobs.world.ask("large", {"p": 50})
    assert jobs.world.states()["large"] == "w"
    with Refused(Code.UNITS_ABOVE_LIMIT):
        jobs.world.ask("larger", {"p": 51})


def test_a_pool_without_the_setting_is_left_alone() -> None:
    """An outcome does not even change its row."""
    world = World()
    world.pool("p", 1)
    world.ask("a")
    before = world.facts.pools["p"]
    assert world.report("a", "failed") is before


def test_few_busy_times_are_kept() -> None:
    """The shortest ones and the shortest gaps are forgotten; long ones and the present one stay."""
    pool = started(1).facts.pools["p"]
    at = 0
    for number in range(100):
        at += 1_000 if number % 10 else 50_000
        pool = rule.tracked(structs.replace(pool, occupied=1), Instant(at))
        at += 1_000 if number % 10 else 90_000
        pool = rule.tracked(structs.replace(pool, occupied=0), Instant(at))
    pool = rule.tracked(structs.replace(pool, occupied=1), Instant(at + 1))
    assert pool.adaptation is not None
    busy = pool.adaptation.busy
    assert len(busy) == rule.BUSY_MAX
    assert busy[-1].until is None
    assert sum((one.until or at) - one.since for one in busy) == pytest.approx(1_000_000, rel=0.15)
    assert all(a.until is not None and a.until < b.since for a, b in pairwise(busy))


def test_a_time_of_no_length_is_no_busy_time() -> None:
    """Filled and emptied, or emptied and filled, at the same moment: as if nothing had happened."""
    pool = started(1).facts.pools["p"]
    filled = rule.tracked(structs.replace(pool, occupied=1), Instant(5))
    assert filled.adaptation is not None
    assert filled.adaptation.busy == (Busy(Instant(5)),)
    emptied = rule.tracked(structs.replace(filled, occupied=0), Instant(5))
    assert emptied.adaptation is not None
    assert emptied.adaptation.busy == ()
    later = rule.tracked(structs.replace(filled, occupied=0), Instant(9))
    again = rule.tracked(structs.replace(later, occupied=1), Instant(9))
    assert again.adaptation == filled.adaptation
