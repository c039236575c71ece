"""Consumers start in the order of their places, when what all of them hold is there."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.errors import Code
from moorage.core.fleet.model import Goal, Phase
from moorage.core.fleet.starts import ConsumerPlace, Reason, Start, may_start, unconfirmed
from moorage.core.ids import ConsumerId, ProviderId
from tests.core.fleet.build import BIG, C1, C2, C3, N0, N1, ROOT, SMALL, Refused, World, part, ready


def place(
    consumer: ConsumerId, since: int, provider: ProviderId = N0, **amounts: int
) -> ConsumerPlace:
    """Return a place, by default of 10 units of `SMALL`."""
    return ConsumerPlace(consumer, provider, since, amounts or {SMALL: 10})


def start(
    world: World, consumer: ConsumerId, *places: ConsumerPlace, boot: str = "boot-1"
) -> Start:
    """Ask whether a consumer may start; the order of the places must not matter."""
    answers = [may_start(world.agent(), boot, consumer, order) for order in permutations(places)]
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def test_places_are_served_in_their_order() -> None:
    """Of three consumers with 10 units each, the first two start on 25 units."""
    world = ready(25)
    places = [place(C2, 1), place(C3, 2), place(C1, 3)]
    answers = {one: start(world, one, *places) for one in (C1, C2, C3)}
    assert {one for one, answer in answers.items() if answer.may_start} == {C2, C3}
    assert answers[C1] == Start(
        False, Reason.NOT_THERE, {N0: {SMALL: 10}}, {N0: {SMALL: 20}}, {N0: {SMALL: 25}}
    )
    assert answers[C2].ahead == {N0: {SMALL: 0}}


def test_equal_places_are_in_the_order_of_consumers() -> None:
    """Consumers of one request have the same generation: their UUIDs give an order."""
    world = ready(10)
    places = [place(C2, 1), place(C1, 1)]
    assert [start(world, one, *places).may_start for one in (C1, C2)] == [True, False]


def test_every_class_must_be_there() -> None:
    """A consumer waits for the one class of the one part that is not there."""
    world = World()
    world.create()
    world.register(parts=[part("numa0", **{SMALL: 50, BIG: 5}), part("numa1")])
    world.report({N0: {SMALL: 50, BIG: 0}, N1: {SMALL: 50}})
    own = [place(C1, 2, **{SMALL: 10, BIG: 1}), place(C1, 1, N1)]
    answer = start(world, C1, *own)
    assert (answer.may_start, answer.reason) == (False, Reason.NOT_THERE)
    assert answer.needed == {N0: {SMALL: 10, BIG: 1}, N1: {SMALL: 10}}
    world.report({N0: {SMALL: 50, BIG: 1}, N1: {SMALL: 50}})
    assert start(world, C1, *own).may_start
    assert not start(world, C1, *own, place(C2, 0, N1, **{SMALL: 41})).may_start


def test_what_others_do_not_need_in_common_does_not_count() -> None:
    """Places of other classes, on other parts, and later ones do not matter."""
    world = ready(10)
    others = [place(C2, 1, BIG=99), place(C2, 1, ROOT), place(C3, 9)]
    answer = start(world, C1, place(C1, 5), *others)
    assert (answer.may_start, answer.ahead) == (True, {N0: {SMALL: 0}})


def test_classes_that_the_agent_does_not_manage() -> None:
    """A consumer without managed classes may start at once."""
    world = ready(0)
    answer = start(world, C1, place(C1, 1, ROOT, VCPU=4), place(C1, 2, N0, VCPU=1))
    assert answer == Start(True, Reason.THERE, {}, {}, {})


def test_only_in_the_current_boot() -> None:
    """A consumer starts in the boot that the server knows."""
    world = ready()
    world.register("boot-2")
    for boot, code in (("boot-1", Code.SUPERSEDED_BOOT), ("boot-3", Code.STALE_BOOT)):
        with Refused(code):
            start(world, C1, place(C1, 1), boot=boot)


def test_only_with_a_place() -> None:
    """Without a place nothing may start."""
    with Refused(Code.PLACE_NOT_FOUND):
        start(ready(), C1, place(C2, 1))


def test_a_place_on_a_vanished_part_is_not_there() -> None:
    """A part that is no longer registered has nothing."""
    world = ready()
    world.register(parts=[part("numa1")])
    assert start(world, C1, place(C1, 1)).reason is Reason.NOT_THERE


def rebooted() -> World:
    """Return a world in its second boot, which began at generation 5 of the part."""
    world = ready()
    world.register("boot-2", born={N0: 5})
    return world


def test_an_unconfirmed_consumer_waits_for_the_machine() -> None:
    """A place from before the boot waits until the machine is prepared, even if it is there."""
    world = rebooted()
    world.report(50, phase=Phase.PREPARING)
    old, new = place(C1, 5), place(C2, 6)
    assert start(world, C1, old, new, boot="boot-2").reason is Reason.UNCONFIRMED
    assert start(world, C2, old, new, boot="boot-2").may_start
    world.report(30)
    assert world.agent().readiness == "degraded"
    assert start(world, C1, old, new, boot="boot-2").may_start


def test_a_confirmed_consumer_does_not_wait() -> None:
    """A consumer that a report of this boot has listed waits only for its amounts."""
    world = rebooted()
    world.report(9, phase=Phase.PREPARING, consumers=frozenset({C1}))
    assert start(world, C1, place(C1, 5), boot="boot-2").reason is Reason.NOT_THERE
    world.report(10, phase=Phase.PREPARING)
    assert start(world, C1, place(C1, 5), boot="boot-2").may_start


def test_who_is_unconfirmed() -> None:
    """Old places on parts of the machine make a consumer unconfirmed, until it is reported."""
    world = rebooted()
    places = [place(C3, 5), place(C2, 6), place(C1, 1), place(C2, 1, ROOT)]
    assert unconfirmed(world.agent(), places) == [C1, C3]
    world.report(1, consumers=frozenset({C3}))
    assert unconfirmed(world.agent(), places) == [C1]


claims = st.lists(st.integers(1, 20), min_size=1, max_size=8)


@given(claims, st.integers(0, 100), st.data())
def test_those_who_may_start_fit_together(amounts: list[int], there: int, data: Any) -> None:
    """Those that may start are the first ones, and what they hold together is there."""
    world = ready(there, wanted=0)
    order = data.draw(st.permutations(range(len(amounts))))
    names = [ConsumerId(f"{n:08d}-cccc-4ccc-8ccc-cccccccccccc") for n in order]
    places = [place(names[n], n + 1, **{SMALL: amount}) for n, amount in enumerate(amounts)]
    may = [may_start(world.agent(), "boot-1", name, places).may_start for name in names]
    assert may == sorted(may, reverse=True)
    started = sum(amount for amount, one in zip(amounts, may, strict=True) if one)
    assert started <= there
    if not all(may):
        assert started + amounts[may.index(False)] > there


@pytest.mark.parametrize("readiness", ["preparing", "failed"])
def test_a_failed_machine_starts_what_is_there(readiness: str) -> None:
    """The order and the amounts decide for new places, not the readiness."""
    world = World()
    world.create()
    world.register(parts=[part("numa0", **{SMALL: 50, BIG: 5})])
    world.goal(Goal(amount=5), BIG)
    phase = Phase.DONE if readiness == "failed" else Phase.PREPARING
    world.report({N0: {SMALL: 10, BIG: 0}}, phase=phase)
    assert world.agent().readiness == readiness
    assert start(world, C1, place(C1, 1)).may_start
