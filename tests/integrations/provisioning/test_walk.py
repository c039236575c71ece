"""A unit is released only once nothing of its episode works or can still begin.

The state machine plays a host, readers that are slow, processes that are killed between any two
steps, and requests that start work late. A release that goes by less evidence must be seen to fail.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from moorage.integrations.provisioning.walk import (
    GRANT_GRACE_SECONDS,
    WIRE_GRACE_SECONDS,
    Episode,
    NotSentError,
    Reading,
    RequestOutcome,
    answered,
    is_over_after_answer,
    is_over_after_reading,
    outcome_of,
    sent,
)

RPC_SECONDS = 60
"""The longest time from a request until its work begins."""

Release = Callable[[Episode, Reading], bool]


@dataclass
class Sending:
    """A request that the host has got: when its work begins and ends; None: it is refused."""

    begins: int | None
    ends: int = 0


class Host(RuleBasedStateMachine):
    """One host, one episode after the other, and truth about its work."""

    release: Release = staticmethod(is_over_after_reading)

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.work: list[Sending] = []
        self.under_way: dict[str, Sending] = {}
        self.episode: Episode | None = None
        self.readings: list[tuple[int, int]] = []
        """Readers that have noted version and time, and have not read yet."""
        self.names = iter(range(10**6))

    def released(self) -> None:
        """Check that nothing is released while anything works, or may begin."""
        for one in self.work:
            assert one.begins is None or one.ends <= self.now, "released while it works"
        self.episode, self.under_way = None, {}

    @rule(seconds=st.integers(0, 100))
    def time_passes(self, seconds: int) -> None:
        """Time passes."""
        self.now += seconds

    @precondition(lambda self: self.episode is None)
    @rule()
    def grant(self) -> None:
        """The host gets a unit."""
        self.episode, self.work, self.readings = Episode(self.now), [], []

    @precondition(lambda self: self.episode is not None)
    @rule(begins=st.none() | st.integers(0, RPC_SECONDS), lasts=st.integers(0, 300))
    def send(self, begins: int | None, lasts: int) -> None:
        """A process stores that it sends a request, and sends it; it may be killed at once."""
        assert self.episode is not None
        name = str(next(self.names))
        self.episode = sent(self.episode, name, self.now)
        start = None if begins is None else self.now + begins
        one = Sending(start, 0 if start is None else start + lasts)
        self.work.append(one)
        self.under_way[name] = one

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), lost=st.booleans())
    def answer(self, data: st.DataObject, lost: bool) -> None:
        """An answer arrives: 202 only once the work has begun; or a server error at any time."""
        assert self.episode is not None
        name = data.draw(st.sampled_from([*self.under_way]))
        one = self.under_way.pop(name)
        if lost or (one.begins is not None and one.begins > self.now):
            status = data.draw(st.sampled_from([None, 500, 503, 504]))
        else:
            status = 202 if one.begins is not None else data.draw(st.sampled_from([400, 404, 409]))
        self.episode = answered(self.episode, name, outcome_of(status))
        if is_over_after_answer(self.episode):
            self.released()

    @precondition(lambda self: self.episode is not None)
    @rule()
    def begin_reading(self) -> None:
        """A reader notes the version, and begins to read."""
        assert self.episode is not None
        self.readings.append((self.episode.version, self.now))

    @precondition(lambda self: self.readings)
    @rule(data=st.data())
    def end_reading(self, data: st.DataObject) -> None:
        """It reads, and acts on what it has seen."""
        version, at = self.readings.pop(data.draw(st.integers(0, len(self.readings) - 1)))
        busy = any(
            one.begins is not None and one.begins <= self.now < one.ends for one in self.work
        )
        if self.episode is not None and self.release(self.episode, Reading(version, at, busy)):
            self.released()


SETTINGS = settings(
    max_examples=400,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much],
)


def test_nothing_is_released_while_it_works() -> None:
    """Whatever the order of steps, kills and readings."""
    run_state_machine_as_test(Host, settings=SETTINGS)


def not_busy(_: Episode, reading: Reading) -> bool:
    """A release by any reading that shows the host not busy."""
    return not reading.busy


def answered_and_not_busy(episode: Episode, reading: Reading) -> bool:
    """A release that takes a server error, or silence, for the end of a request."""
    return not reading.busy and reading.version == episode.version


@pytest.mark.parametrize("naive", [not_busy, answered_and_not_busy])
def test_less_evidence_is_not_enough(naive: Release) -> None:
    """A control: both naive rules release hosts that work."""

    class Naive(Host):
        release = staticmethod(naive)

    with pytest.raises(AssertionError, match="released while it works"):
        run_state_machine_as_test(Naive, settings=SETTINGS)


def test_every_episode_ends() -> None:
    """Without requests, without answers, and after short work that nobody has seen."""
    lone = Episode(0.0)
    assert not is_over_after_reading(lone, Reading(0, GRANT_GRACE_SECONDS - 1, busy=False))
    assert is_over_after_reading(lone, Reading(0, GRANT_GRACE_SECONDS, busy=False))
    silent = sent(lone, "a", 5.0)
    assert not is_over_after_reading(silent, Reading(1, 4.0 + WIRE_GRACE_SECONDS, busy=False))
    assert is_over_after_reading(silent, Reading(1, 5.0 + WIRE_GRACE_SECONDS, busy=False))
    short = answered(silent, "a", RequestOutcome.ACCEPTED)
    assert not is_over_after_answer(short)
    assert is_over_after_reading(short, Reading(2, 6.0, busy=False))
    assert not is_over_after_reading(short, Reading(2, 6.0, busy=True))
    refused = answered(silent, "a", RequestOutcome.REFUSED)
    assert is_over_after_answer(refused)
    assert not is_over_after_answer(lone)


def test_an_answer_belongs_to_a_request() -> None:
    """One that was not sent, or has its answer, is an error of the caller."""
    one = sent(Episode(0.0), "a", 0.0)
    for wrong in (Episode(0.0), answered(one, "a", RequestOutcome.ACCEPTED)):
        with pytest.raises(NotSentError, match="Request a"):
            answered(wrong, "a", RequestOutcome.ACCEPTED)
