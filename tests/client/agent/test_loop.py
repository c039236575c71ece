"""The runner of the agent: its threads, with a server and a machine that are functions."""

import io
import os
import signal
import threading
from typing import Any

import pytest

from moorage.client.agent.api_types import Failure, Observation
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.loop import ALL_THERE, Loop, StepFunction
from moorage.client.agent.preparation import Goal, Step
from moorage.client.agent.protocol import Machine, Protocol, Request
from moorage.client.run.progress import Progress
from moorage.client.transport import RefusedError
from moorage.systemd.notifier import Notifier
from tests.client.agent.conversation import BOOT, CLASS, NUMA0
from tests.client.agent.fleet_server import FleetServer, Refusal
from tests.systemd.systemd_double import NotifySocket

SECONDS = 30.0


class Running:
    """A loop; `send` asks a server that is an object."""

    def __init__(self, step: StepFunction, systemd: dict[str, str] | None = None) -> None:
        self.server = FleetServer()
        self.server.next_in = 0.05
        self.text = io.StringIO()
        self.threads: set[str] = set()
        protocol = Protocol(Machine(BOOT, "host", "6.1", "1.0"), Backoff(0.01, 0.1))
        notifier = Notifier(systemd or {}, pytest.fail)
        self.loop = Loop(protocol, self.send, step, Progress(self.text), notifier)

    def send(self, request: Request) -> Any:
        """Send a request, in the thread of the requests."""
        self.threads.add(threading.current_thread().name)
        try:
            return self.server.take(request.kind, request.body)
        except Refusal as refusal:
            raise RefusedError(refusal.status, refusal.code, refusal.code, "-") from None


def seen(goal: Goal | None, pages: int, failure: Failure | None = None) -> Observation:
    """Return an observation of one pool, after the first pass."""
    generation = None if goal is None else goal.generation
    return Observation((NUMA0,), {NUMA0.provider: {CLASS: pages}}, generation, True, failure)


def test_orders_that_come_during_a_step_are_worked_on_at_once() -> None:
    """The step before them knew nothing to do, and would have waited."""
    goals: list[Goal | None] = []
    registered = threading.Event()

    def step(goal: Goal | None, now: float) -> Step:
        goals.append(goal)
        if goal is not None and goal.generation == 1:
            running.server.want(**{CLASS: 7})
            assert registered.wait(SECONDS)  # new orders arrive meanwhile
        if goal is not None and goal.generation == 2:
            running.server.decommissioned = True
        return Step(seen(goal, 0), 3600.0)

    running = Running(step)
    take = running.server.take

    def noticing(kind: str, body: Any) -> Any:
        answer = take(kind, body)
        if kind == "alive" and answer["desired_generation"] == 2:
            running.server.directives = ["register"]
            registered_again.append(kind)
        if kind == "register" and registered_again:
            registered.set()
        return answer

    registered_again: list[str] = []
    running.server.take = noticing  # type: ignore[method-assign] # watches the answers
    assert running.loop.run() == 0
    assert [goal and goal.generation for goal in goals] == [None, 1, 2]
    assert goals[2] == Goal({NUMA0.provider: {CLASS: 7}}, 2)


def test_failures_and_their_end_are_printed() -> None:
    """Each failure once, and that everything is there when it is."""
    failures = [
        Failure("short", "node 0 has 1 of 2 pages", attempt, 1.0, "2026-01-01T00:00:00+00:00")
        for attempt in (1, 2)
    ]

    def step(goal: Goal | None, now: float) -> Step:
        if goal is None:
            return Step(seen(goal, 0), 3600.0)
        if failures:
            return Step(seen(goal, 1, failures.pop(0)), 0.001)
        running.server.decommissioned = True
        return Step(seen(goal, 2), 0.001)

    running = Running(step)
    assert running.loop.run() == 0
    lines = running.text.getvalue().splitlines()
    assert lines.count("moorage: node 0 has 1 of 2 pages") == 1
    assert lines.count(f"moorage: {ALL_THERE}") == 1
    assert "decommissioned" in lines[-1]


@pytest.mark.parametrize("where", ["step", "send"])
def test_a_bug_ends_the_process(where: str) -> None:
    """An unexpected exception is not retried for ever: it ends the agent, which starts again."""

    def step(goal: Goal | None, now: float) -> Step:
        if where == "step":
            raise ZeroDivisionError
        return Step(seen(goal, 0), 3600.0)

    running = Running(step)
    if where == "send":
        running.server.boots = None  # type: ignore[assignment] # breaks the server of the test
    with pytest.raises((ZeroDivisionError, TypeError)):
        running.loop.run()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_loop_after_the_step(number: int, code: int) -> None:
    """The step that runs is finished; no other begins."""
    ended = []

    def step(goal: Goal | None, now: float) -> Step:
        if goal is not None:
            os.kill(os.getpid(), number)
            ended.append(threading.current_thread().name)
        return Step(seen(goal, 0), 3600.0 if goal is None else 0.0)

    before = signal.getsignal(number)
    running = Running(step)
    assert running.loop.run() == code
    assert len(ended) >= 1
    assert threading.main_thread().name not in {*ended, *running.threads}
    assert signal.getsignal(number) == before


def test_what_systemd_is_told() -> None:
    """Ready after the first look at the machine, whatever the server says; then what it does."""
    looked = threading.Event()

    def step(goal: Goal | None, now: float) -> Step:
        if goal is None:
            assert systemd.all_of("READY") == []
            looked.set()
            return Step(seen(goal, 0), 3600.0)
        systemd.wait_for("STATUS", "registered; prepares the machine".__eq__)
        running.server.decommissioned = True
        return Step(seen(goal, 2), 3600.0)

    def send(request: Request) -> Any:
        assert looked.is_set()
        systemd.wait_for("READY")
        return take(request)

    with NotifySocket() as systemd:
        running = Running(step, systemd.variables(60))
        take, running.loop._send = running.send, send
        assert running.loop.run() == 0
        assert systemd.all_of("STATUS")[0] == "not registered yet; prepares the machine"
        assert systemd.all_of("STATUS")[-1].endswith(f"; {ALL_THERE}")
        assert len(systemd.all_of("READY")) == 1


@pytest.mark.parametrize("what", ["send", "step"])
def test_a_request_without_an_answer_is_a_fault_but_not_a_long_step(what: str) -> None:
    """Requests have a time limit, so one that lasts longer hangs; the kernel may need its time."""
    released = threading.Event()
    hung = threading.Event()

    def hang() -> None:
        hung.set()
        assert released.wait(SECONDS)

    def step(goal: Goal | None, now: float) -> Step:
        if goal is not None and what == "step":
            hang()
            running.server.decommissioned = True
        return Step(seen(goal, 0), 3600.0)

    def send(request: Request) -> Any:
        if what == "send" and request.kind == "alive" and not released.is_set():
            hang()
            running.server.decommissioned = True
        return take(request)

    def look() -> None:
        assert hung.wait(SECONDS)
        if what == "send":
            systemd.silent_for("WATCHDOG", 1.0)
        else:
            systemd.wait_for("WATCHDOG", times=len(systemd.all_of("WATCHDOG")) + 5)
        released.set()

    with NotifySocket() as systemd:
        running = Running(step, systemd.variables(0.5))
        take, running.loop._send = running.send, send
        looking = threading.Thread(target=look)
        looking.start()
        assert running.loop.run() == 0
        looking.join()
