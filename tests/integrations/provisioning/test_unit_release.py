"""A unit is released only once nothing of its work goes on or can still begin.

The state machine plays a host, readers that are slow, processes that are killed between any two
steps, and requests that start work late. A release that goes by less evidence must be seen to fail.
"""

from dataclasses import dataclass, replace
from typing import Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from moorage.integrations.provisioning.unit_release import (
    GRANT_GRACE_SECONDS,
    WIRE_GRACE_SECONDS,
    NotSentError,
    RequestOutcome,
    WorkState,
    answered,
    found_busy,
    is_over_after_answer,
    is_over_after_reading,
    outcome_of,
    sent,
)

RPC_SECONDS = 60
"""The longest time from a request until its work begins."""


class Release(Protocol):
    """Decides by what is known, noted before a reading, and by what the reading shows."""

    def __call__(self, noted: WorkState, *, busy: bool) -> bool: ...


@dataclass
class Sending:
    """A request that the host has got: when its work begins and ends; None: it is refused."""

    begins: int | None
    ends: int = 0


class Host(RuleBasedStateMachine):
    """One host, one lease after the other, and truth about its work."""

    release: Release = staticmethod(is_over_after_reading)

    @staticmethod
    def guard(noted: WorkState, now: WorkState) -> bool:
        """The server releases only if the record still has the version that was noted."""
        return noted.version == now.version

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.work: list[Sending] = []
        self.under_way: dict[str, Sending] = {}
        self.state: WorkState | None = None
        self.stepped_at = 0
        self.readings: list[WorkState] = []
        """Readers that have noted the state, and have not read yet."""
        self.names = iter(range(10**6))

    def released(self) -> None:
        """Check that nothing is released while anything works, or may begin."""
        for one in self.work:
            assert one.begins is None or one.ends <= self.now, "released while it works"
        self.state, self.under_way = None, {}

    def step(self, state: WorkState) -> None:
        """Store a step."""
        if self.state is None or state.version != self.state.version:
            self.stepped_at = self.now
        self.state = state

    @rule(seconds=st.integers(0, 100))
    def time_passes(self, seconds: int) -> None:
        """Time passes."""
        self.now += seconds

    @precondition(lambda self: self.state is None)
    @rule()
    def grant(self) -> None:
        """The host gets a unit."""
        self.state, self.work, self.readings = WorkState(), [], []
        self.stepped_at = self.now

    @precondition(lambda self: self.state is not None)
    @rule(begins=st.none() | st.integers(0, RPC_SECONDS), lasts=st.integers(0, 300))
    def send(self, begins: int | None, lasts: int) -> None:
        """A process stores that it sends a request, and sends it; it may be killed at once."""
        assert self.state is not None
        name = str(next(self.names))
        self.step(sent(self.state, name))
        start = None if begins is None else self.now + begins
        one = Sending(start, 0 if start is None else start + lasts)
        self.work.append(one)
        self.under_way[name] = one

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), lost=st.booleans())
    def answer(self, data: st.DataObject, lost: bool) -> None:
        """An answer arrives: 202 only once the work has begun; or a server error at any time."""
        assert self.state is not None
        name = data.draw(st.sampled_from([*self.under_way]))
        one = self.under_way.pop(name)
        if lost or (one.begins is not None and one.begins > self.now):
            status = data.draw(st.sampled_from([None, 500, 503, 504]))
        else:
            status = 202 if one.begins is not None else data.draw(st.sampled_from([400, 404, 409]))
        self.step(answered(self.state, name, outcome_of(status)))
        if is_over_after_answer(self.state):
            self.released()

    @precondition(lambda self: self.state is not None)
    @rule()
    def begin_reading(self) -> None:
        """A reader notes the version, and begins to read."""
        assert self.state is not None
        self.readings.append(replace(self.state, age=float(self.now - self.stepped_at)))

    @precondition(lambda self: self.readings)
    @rule(data=st.data())
    def end_reading(self, data: st.DataObject) -> None:
        """It reads, and acts on what it has seen."""
        noted = self.readings.pop(data.draw(st.integers(0, len(self.readings) - 1)))
        busy = any(
            one.begins is not None and one.begins <= self.now < one.ends for one in self.work
        )
        current = self.state is not None and self.guard(noted, self.state)
        if current and self.release(noted, busy=busy):
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


def not_busy(noted: WorkState, *, busy: bool) -> bool:
    """A release that takes a server error, or silence, for the end of a request."""
    return not busy


class NoGuard(Host):
    """A release by any reading, also by one that began before the last step."""

    @staticmethod
    def guard(noted: WorkState, now: WorkState) -> bool:
        return True


class NoGrace(Host):
    """A release that does not wait for requests without an answer."""

    release = staticmethod(not_busy)


@pytest.mark.parametrize("naive", [NoGuard, NoGrace])
def test_less_evidence_is_not_enough(naive: type[Host]) -> None:
    """A control: both naive rules release hosts that work; it ends at the first such story."""
    with pytest.raises(AssertionError, match="released while it works"):
        run_state_machine_as_test(naive, settings=settings(SETTINGS, max_examples=8_000))


def test_every_lease_ends() -> None:
    """Without requests, without answers, and after short work that nobody has seen."""
    lone = WorkState()
    assert not is_over_after_reading(replace(lone, age=GRANT_GRACE_SECONDS - 1), busy=False)
    assert is_over_after_reading(replace(lone, age=GRANT_GRACE_SECONDS), busy=False)
    silent = sent(lone, "a")
    assert not is_over_after_reading(replace(silent, age=WIRE_GRACE_SECONDS - 1), busy=False)
    assert is_over_after_reading(replace(silent, age=WIRE_GRACE_SECONDS), busy=False)
    short = answered(silent, "a", RequestOutcome.ACCEPTED)
    assert not is_over_after_answer(short)
    assert is_over_after_reading(short, busy=False)
    assert not is_over_after_reading(short, busy=True)
    refused = answered(silent, "a", RequestOutcome.REFUSED)
    assert is_over_after_answer(refused)
    assert not is_over_after_answer(lone)


def test_a_host_that_was_found_busy() -> None:
    """Is released by the first later reading that shows it is not, and never by an answer."""
    found = found_busy(WorkState())
    assert is_over_after_reading(found, busy=False)
    assert not is_over_after_reading(found, busy=True)
    refused = answered(sent(found, "a"), "a", RequestOutcome.REFUSED)
    assert not is_over_after_answer(refused)


def test_an_answer_belongs_to_a_request() -> None:
    """One that was not sent, or has its answer, is an error of the caller."""
    one = sent(WorkState(), "a")
    for wrong in (WorkState(), answered(one, "a", RequestOutcome.ACCEPTED)):
        with pytest.raises(NotSentError, match="Request a"):
            answered(wrong, "a", RequestOutcome.ACCEPTED)
