"""Which reports count, what they change, and what signs of life must know."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import reports
from moorage.core.fleet.model import Agent, Failure, Goal, MachineReport, Phase, Readiness
from moorage.core.ids import ConsumerId
from moorage.core.limits import (
    CONFIRMED_CONSUMERS_MAX,
    MAX_INT,
    REPORT_GENERATION_MAX,
    REPORTED_CONSUMERS_MAX,
    REPORTS_SKIPPED_MAX,
)
from tests.core.fleet.build import (
    A1,
    BIG,
    C1,
    C2,
    N0,
    N1,
    SMALL,
    Refused,
    World,
    failure,
    part,
    ready,
)


@pytest.fixture
def world() -> World:
    """Return a world with a machine that was asked for 50 units, and has not reported."""
    made = World()
    made.create()
    made.register()
    made.goal(Goal(amount=50))
    return made


def send(world: World, sent: MachineReport) -> Agent:
    """Send a report, and return the agent."""
    world.do(reports.report(world.facts, world.now, A1, sent))
    return world.agent()


def test_a_report_is_taken_over(world: World) -> None:
    """All of a report is stored."""
    sent = world.next(30, consumers=frozenset({C1}), failure=failure())
    generation, at = world.agent().generation, world.now
    agent = send(world, sent)
    assert (agent.report, agent.report_generation, agent.failure) == (sent, 1, failure())
    assert (agent.reported_at, agent.updated_at) == (at, at)
    assert (agent.phase, agent.desired_generation_seen) == (Phase.DONE, 1)
    assert (agent.generation, agent.confirmed) == (
        generation + 1,
        frozenset({C1}),
    )
    assert world.small().actual == 30


def test_a_repeat_changes_nothing(world: World) -> None:
    """A repeated report is accepted without a change, however often and however late."""
    sent = world.next(30)
    before = send(world, sent)
    assert send(world, sent) == before
    world.goal(Goal(amount=60))
    world.register(parts=[part("numa0"), part("numa1")])
    before = world.agent()
    assert send(world, sent) == before


def test_a_repeat_with_a_later_retry_is_a_repeat(world: World) -> None:
    """The next retry is sent as a duration, so a repeat has another time for it."""

    def due(at: int) -> Failure:
        return failure(next_retry_at=Instant(at))

    sent = world.next(30, failure=due(5 * SECOND))
    before = send(world, sent)
    assert send(world, replace(sent, failure=due(9 * SECOND))) == before
    with Refused(Code.REPORT_CONFLICT):
        send(world, replace(sent, failure=failure("other")))
    with Refused(Code.REPORT_CONFLICT):
        send(world, replace(sent, failure=None))


def test_the_same_generation_with_other_content(world: World) -> None:
    """Two different reports of one generation are a conflict, whatever differs."""
    sent = world.next(30)
    before = send(world, sent)
    others: list[dict[str, Any]] = [
        {"actual": {N0: {SMALL: 31}}},
        {"phase": Phase.PREPARING},
        {"consumers": frozenset()},
        {"desired_generation_seen": 0},
    ]
    for other in others:
        with Refused(Code.REPORT_CONFLICT):
            send(world, replace(sent, **other))
    assert world.agent() == before


def test_generations_rise(world: World) -> None:
    """A lower generation is stale; a higher one counts, even if others were skipped."""
    send(world, replace(world.next(1), report_generation=7))
    assert world.agent().report_generation == 7
    for lower in (6, 0, -1):
        with Refused(Code.STALE_REPORT) as refusal:
            send(world, replace(world.next(2), report_generation=lower))
        assert "report 8" in refusal.message
    assert world.report(2)


def test_a_report_cannot_use_up_the_generations(world: World) -> None:
    """Who had a token for a moment cannot keep the machine from reporting for ever."""
    send(world, replace(world.next(1), report_generation=REPORTS_SKIPPED_MAX))
    for far in (2 * REPORTS_SKIPPED_MAX + 2, REPORT_GENERATION_MAX):
        with Refused(Code.INVALID) as refusal:
            send(world, replace(world.next(2), report_generation=far))
        assert f"report {REPORTS_SKIPPED_MAX + 1}" in refusal.message
    assert world.report(2)


def test_confirmed_consumers_do_not_grow_without_bound(world: World) -> None:
    """A machine that lists other consumers in each report does not make its row longer for ever."""
    for first in range(0, 5 * REPORTED_CONSUMERS_MAX, REPORTED_CONSUMERS_MAX):
        listed = frozenset(
            ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc")
            for n in range(first, first + REPORTED_CONSUMERS_MAX)
        )
        agent = send(world, world.next(30, consumers=listed))
        assert listed <= agent.confirmed
        assert len(agent.confirmed) <= CONFIRMED_CONSUMERS_MAX


def test_generations_are_bounded(world: World) -> None:
    """A generation that not every program can read is refused: nothing could follow it."""
    near = replace(world.agent(), report_generation=REPORT_GENERATION_MAX - 1)
    world.facts.agents[A1] = near
    with Refused(Code.INVALID):
        send(world, replace(world.next(1), report_generation=REPORT_GENERATION_MAX + 1))
    agent = send(world, replace(world.next(1), report_generation=REPORT_GENERATION_MAX))
    assert agent.report_generation == REPORT_GENERATION_MAX


def test_reports_of_other_boots(world: World) -> None:
    """Only the current boot reports, whatever the generation."""
    old = world.next(50)
    world.register("boot-2")
    for generation in (-1, 0, 1, 100):
        with Refused(Code.SUPERSEDED_BOOT):
            send(world, replace(old, report_generation=generation))
        with Refused(Code.STALE_BOOT):
            send(world, replace(old, boot_id="boot-3", report_generation=generation))
    assert world.small().actual == 0


def test_a_new_boot_has_no_report_to_repeat(world: World) -> None:
    """The generation of the last report of the previous boot cannot be used again."""
    sent = world.next(50)
    send(world, sent)
    world.register("boot-2")
    with Refused(Code.REPORT_CONFLICT) as refusal:
        send(world, replace(sent, boot_id="boot-2"))
    assert "report 2" in refusal.message


def test_an_agent_registers_before_it_reports() -> None:
    """Without a register there is no boot, and without an agent nothing."""
    world = World()
    with Refused(Code.AGENT_NOT_FOUND):
        reports.report(world.facts, world.now, A1, ready().next(1))
    world.create()
    with Refused(Code.STALE_BOOT):
        send(world, world.next(1))


def test_a_report_is_complete() -> None:
    """A report has every class of every registered part, and no others."""
    world = World()
    world.create()
    world.register(parts=[part("numa0", **{SMALL: 1, BIG: 1}), part("numa1"), part("numa2")])
    world.register(parts=[part("numa0", **{SMALL: 1, BIG: 1}), part("numa1")])
    whole = {N0: {SMALL: 1, BIG: 0}, N1: {SMALL: 0}}
    before = world.agent()
    wrong: list[dict[Any, Any]] = [
        {},
        {N0: {SMALL: 1, BIG: 0}},
        {N0: {SMALL: 1}, N1: {SMALL: 0}},
        {**whole, N0: {SMALL: 1, BIG: 0, "VCPU": 1}},
        {**whole, world.agent().uuid: {SMALL: 1}},
        {**whole, world.agent().uuid: {}},
        {**whole, list(before.parts)[2]: {SMALL: 0}},
    ]
    for actual in wrong:
        with Refused(Code.INVALID):
            world.report(actual)
    assert world.agent() == before
    assert world.report(whole)


@pytest.mark.parametrize(
    "more",
    [
        {"actual": {N0: {SMALL: -1}}},
        {"actual": {N0: {SMALL: MAX_INT + 1}}},
        {"desired_generation_seen": -1},
        {"consumers": frozenset({"vm-1"})},
        {"consumers": frozenset(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc" for n in range(10_001))},
        {"failure": failure("")},
        {"failure": failure("x" * 256)},
        {"failure": failure("a\n")},
        {"failure": failure(message="x" * 1_001)},
        {"failure": failure(message="\x1b")},
        {"failure": failure(attempts=-1)},
        {"failure": failure(attempts=MAX_INT + 1)},
    ],
)
def test_invalid_reports(world: World, more: dict[str, Any]) -> None:
    """An invalid report is refused, and its generation can be used again."""
    with Refused(Code.INVALID):
        send(world, replace(world.next(1), **more))
    assert world.agent().report_generation == 0


def test_more_than_eligible_is_there(world: World) -> None:
    """A report says what is true: more than desired or eligible is no contradiction."""
    world.report(101)
    assert (world.small().actual, world.agent().readiness) == (101, Readiness.READY)


def test_a_higher_desired_generation_seen_is_not_believed(world: World) -> None:
    """After a restore an agent may have seen a later one than the server has."""
    world.report(1, desired_generation_seen=99)
    assert world.agent().desired_generation_seen == world.agent().desired_generation == 1


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(("wanted", "there"), [(50, 50), (50, 49), (50, 0), (0, 0), (0, 7)])
@pytest.mark.parametrize("failed", [False, True])
def test_the_rule_counts_registered_classes(
    phase: Phase, wanted: int, there: int, failed: bool
) -> None:
    """A class that is not registered any more does not make a machine degraded."""
    world = World()
    world.create()
    world.register(parts=[part(), part("numa1")])
    world.goal(Goal(amount=9), provider=N1)
    world.register()
    world.goal(Goal(amount=wanted), provider=N0)
    other = World()
    other.create()
    other.register()
    other.goal(Goal(amount=wanted))
    for one in (world, other):
        one.report(there, phase=phase, failure=failure() if failed else None)
    assert world.agent().readiness is other.agent().readiness


def test_an_amount_that_is_not_desired_is_not_enough() -> None:
    """A machine that has only what nobody wants has failed."""
    world = World()
    world.create()
    world.register(parts=[part("numa0", **{SMALL: 50, BIG: 5})])
    world.goal(Goal(amount=5), BIG)
    world.report({N0: {SMALL: 50, BIG: 0}})
    assert world.agent().readiness is Readiness.FAILED
    world.report({N0: {SMALL: 0, BIG: 1}})
    assert world.agent().readiness is Readiness.DEGRADED


def test_a_restarted_agent_does_not_close_the_machine() -> None:
    """An agent that restarts within a boot reports `preparing` again; the machine stays open."""
    world = ready()
    world.register()
    world.report(50, phase=Phase.PREPARING)
    assert (world.agent().phase, world.agent().readiness) == (Phase.DONE, Readiness.READY)
    world.register("boot-2")
    world.report(50, phase=Phase.PREPARING)
    assert world.agent().readiness is Readiness.PREPARING


def test_a_failure_is_over_when_no_report_has_it(world: World) -> None:
    """The failure is that of the last report."""
    world.report(0, failure=failure())
    assert world.agent().readiness is Readiness.FAILED
    world.report(50)
    assert (world.agent().failure, world.agent().readiness) == (None, Readiness.READY)


def test_confirmed_consumers_accumulate(world: World) -> None:
    """A consumer once listed in this boot stays confirmed; `None` means unknown, not none."""
    world.report(1, consumers=frozenset({C1}))
    world.report(2, consumers=None)
    world.report(3, consumers=frozenset({C2}))
    assert world.agent().confirmed == {C1, C2}
    world.register("boot-2")
    assert world.agent().confirmed == frozenset()


@pytest.mark.parametrize(
    ("boot", "generation", "code"),
    [
        ("boot-2", 1, None),
        ("boot-2", 0, Code.STALE_REPORT),
        ("boot-2", 2, Code.REPORT_CONFLICT),
        ("boot-1", 1, Code.SUPERSEDED_BOOT),
        ("boot-3", 1, Code.STALE_BOOT),
    ],
)
def test_signs_of_life(world: World, boot: str, generation: int, code: Code | None) -> None:
    """A sign of life has the current boot and the last generation, or the agent must register."""
    world.register("boot-2")
    world.report(1)
    if code is None:
        reports.check_alive(world.agent(), boot, generation)
        return
    with Refused(code):
        reports.check_alive(world.agent(), boot, generation)


def test_directives(world: World) -> None:
    """What an agent must do follows from what the server does not have yet."""
    new = World()
    new.create()
    assert reports.directive(new.agent()) == "register"
    assert reports.directive(world.agent()) == "report"
    world.report(1)
    assert reports.directive(world.agent()) == "none"
    world.decommission()
    assert reports.directive(world.agent()) == "inert"
    with Refused(Code.DECOMMISSIONED):
        reports.check_alive(world.agent(), "boot-1", 1)
    with Refused(Code.DECOMMISSIONED):
        send(world, world.next(1))


def test_expunged_machines_are_recorded() -> None:
    """The reports of an expunged machine are stored as those of any other."""
    world = ready()
    world.expunge()
    world.report(20)
    assert (world.small().actual, world.agent().readiness) == (20, Readiness.DEGRADED)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=4), st.data())
def test_the_order_of_reports_does_not_matter(sent: list[int], data: st.DataObject) -> None:
    """In any order, and repeated, the latest report decides what is there."""
    first = ready()
    made = [replace(first.next(amount), report_generation=n + 2) for n, amount in enumerate(sent)]
    order = data.draw(st.lists(st.sampled_from(made), max_size=6))
    for arriving in permutations([*order, made[-1]][:4]):
        world = ready()
        for one in [*arriving, made[-1], *order]:
            try:
                world.do(reports.report(world.facts, world.now, A1, one))
            except Error as refusal:
                assert refusal.code == "stale_report"
        assert world.agent().report == made[-1]
        assert world.agent().parts[N0].classes[SMALL].actual == sent[-1]


def test_what_is_registered_again_must_be_reported_again(world: World) -> None:
    """A class that was dropped and returns within a boot has nothing until a report."""
    world.report(10)
    assert reports.directive(world.agent()) == "none"
    last = world.next(10, report_generation=world.agent().report_generation)
    world.register(parts=[])
    world.register()
    assert reports.directive(world.agent()) == "report"
    with Refused(Code.REPORT_CONFLICT):  # as a repeat it would be accepted, and change nothing
        send(world, last)
    world.report(10)
    assert reports.directive(world.agent()) == "none"
    world.register(parts=[part(**{BIG: 100})])
    assert reports.directive(world.agent()) == "report"
    world.report({N0: {BIG: 1}})
    world.register()
    assert world.agent().parts[N0].classes[SMALL].actual == 0
    assert reports.directive(world.agent()) == "report"
    world.report(10)
    assert reports.directive(world.agent()) == "none"
