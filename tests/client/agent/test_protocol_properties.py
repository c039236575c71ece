"""Whatever is lost, refused or delayed: the rules of the protocol hold, and the agent converges."""

from contextlib import suppress
from math import inf, nextafter
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.client.agent.api_types import Observation
from moorage.client.agent.backoff import RETRY_AFTER_SECONDS_MAX, Backoff
from moorage.client.agent.protocol import Machine, Protocol, Request
from moorage.client.transport import RefusedError, UnreachableError
from tests.client.agent.conversation import BOOT, CLASS, NUMA0, NUMA1
from tests.client.agent.fleet_server import FleetServer, Refusal

REFUSALS = st.sampled_from(
    [
        (409, "stale_boot"),
        (409, "stale_report"),
        (409, "report_conflict"),
        (404, "agent_not_found"),
        (401, "unauthorized"),
        (503, "busy"),
        (500, "internal"),
    ]
)
PARTS = st.sampled_from([(NUMA0,), (NUMA0, NUMA1)])


class Agent(RuleBasedStateMachine):
    """An agent against a server, with a network that loses requests and answers."""

    @initialize(share=st.floats(0, 1))
    def begin(self, share: float) -> None:
        self.now = 0.0
        self.protocol = Protocol(
            Machine(BOOT, "host", "6.1", "1.0"),
            Backoff(1.0, 60.0, lambda low, high: low + share * (high - low)),
        )
        self.server = FleetServer()
        self.parts: Any = (NUMA0,)
        self.pages, self.done = 0, False
        self.request: Request | None = None
        self.sent: list[Request] = []
        self.known = 0
        self.look()

    def look(self) -> None:
        """Let the agent observe its machine."""
        orders = None if self.protocol.desired is None else self.protocol.desired_generation
        actual = {part.provider: {CLASS: self.pages} for part in self.parts}
        self.protocol.observe(Observation(self.parts, actual, orders, self.done))

    @rule(pages=st.integers(0, 3), done=st.booleans(), parts=PARTS)
    def the_machine_changes(self, pages: int, done: bool, parts: Any) -> None:
        self.pages, self.done, self.parts = pages, self.done or done, parts
        self.look()

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(pages=st.integers(0, 3))
    def an_operator_wants(self, pages: int) -> None:
        self.server.want(**{CLASS: pages})

    @rule(directive=st.sampled_from(["report", "register", "none"]))
    def a_directive_follows(self, directive: Any) -> None:
        self.server.directives.append(directive)

    @rule(generation=st.integers(0, 5))
    def the_database_is_put_back(self, generation: int) -> None:
        self.server.generation = min(generation, self.server.generation)
        self.server.report = None

    @rule(requests=st.integers(1, 5))
    def all_is_well(self, requests: int) -> None:
        """Several requests are sent when they are due, and answered."""
        if self.request is not None:
            self.it_is_answered()
        for _ in range(requests):
            wait = self.protocol.due_in(self.now)
            if wait is None:  # it is decommissioned
                return
            self.now = nextafter(self.now + wait, inf)  # the sum may be rounded down
            self.ask()
            self.it_is_answered()

    @rule()
    def ask(self) -> None:
        """Take the request that is due; there is never a second one."""
        request = self.protocol.next_request(self.now)
        if self.request is not None:
            assert request is None
        elif request is not None:
            if request.kind == "report":
                self.check_generation(request)
            self.request = request
            self.sent.append(request)

    def check_generation(self, request: Request) -> None:
        """A report is one after what the server has said, or a repetition of what it has."""
        generation = request.body["report_generation"]
        assert generation in (self.known, self.known + 1)
        assert generation == self.known + 1 or request in self.sent

    def sending(self) -> Request:
        """Return the outstanding request; it is over."""
        request, self.request = self.request, None
        assert request is not None
        return request

    @precondition(lambda self: self.request is not None)
    @rule()
    def it_is_answered(self) -> None:
        request = self.sending()
        try:
            answer = self.server.take(request.kind, request.body)
        except Refusal as refusal:
            self.refuse(refusal.status, refusal.code)
            return
        self.known = answer.get("report_generation", self.known)
        self.protocol.answered(answer, self.now)
        self.look()

    @precondition(lambda self: self.request is not None)
    @rule(arrived=st.booleans())
    def its_answer_is_lost(self, arrived: bool) -> None:
        request = self.sending()
        if arrived:
            with suppress(Refusal):
                self.server.take(request.kind, request.body)
        self.protocol.failed(UnreachableError("lost"), self.now)
        self.check_delay(0.0)

    @precondition(lambda self: self.request is not None)
    @rule(refusal=REFUSALS, retry_after=st.none() | st.floats(0, 1000))
    def it_is_refused(self, refusal: tuple[int, str], retry_after: float | None) -> None:
        self.sending()
        self.refuse(*refusal, retry_after)
        self.check_delay(min(retry_after or 0.0, RETRY_AFTER_SECONDS_MAX))

    def refuse(self, status: int, code: str, retry_after: float | None = None) -> None:
        error = RefusedError(status, code, code, "-")
        error.retry_after = retry_after
        self.protocol.failed(error, self.now)

    def check_delay(self, asked: float) -> None:
        """The delay is at least what was asked for, and at most a minute more."""
        delay = self.protocol.due_in(self.now)
        assert delay is not None
        assert asked - 1e-6 <= delay <= asked + 60.0 + 1e-6

    @invariant()
    def it_goes_on(self) -> None:
        """No error ends it, and it registers before anything else."""
        assert self.protocol.ended is None
        assert [request.kind for request in self.sent[:1]] in ([], ["register"])

    def teardown(self) -> None:
        """Without further faults, the server has soon what the machine has; then beats suffice."""
        if not hasattr(self, "server"):
            return
        self.server.directives.clear()
        self.all_is_well(12)
        assert self.server.report is not None
        assert self.server.report.actual == {
            part.provider: {CLASS: self.pages} for part in self.parts
        }
        assert self.server.report.phase == ("done" if self.done else "preparing")
        assert self.server.report.desired_generation_seen == self.server.desired_generation
        assert self.sent[-1].kind == "alive"


class Stopped(Agent):
    """The same, until the agent is decommissioned: from then on it sends nothing."""

    @precondition(lambda self: self.request is not None)
    @rule(by_refusal=st.booleans())
    def it_is_decommissioned(self, by_refusal: bool) -> None:
        request = self.sending()
        if by_refusal:
            self.refuse(410, "decommissioned")
        else:
            self.server.directives.insert(0, "inert")
            try:
                answer = self.server.take(request.kind, request.body)
            except Refusal:
                self.refuse(410, "decommissioned")
            else:
                self.protocol.answered(answer, self.now)

    @invariant()
    def it_goes_on(self) -> None:
        if self.protocol.ended is None:
            return
        assert self.protocol.ended.exit_code == 0
        assert self.protocol.due_in(self.now) is None
        assert self.protocol.next_request(self.now + 1e6) is None
        assert self.protocol.desired is None

    def check_delay(self, asked: float) -> None:
        """Other examples check the delays."""

    def teardown(self) -> None:
        """There is no state to converge to."""


TestAgent = Agent.TestCase
TestAgent.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestStopped = Stopped.TestCase
TestStopped.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
