"""The agent's side of the protocol, without input and output: events in, one request at a time out.

An agent registers, reports what its machine has whenever that changes, and gives signs of life in
between. After any failure it registers again: so it needs no rule for each of them. See
`wire/fleet.py` for the messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.client.agent import api_types
from moorage.client.agent.api_types import (
    AliveAnswer,
    Amounts,
    Observation,
    Orders,
    Part,
    alive_of,
    orders_of,
)
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.plan import NOT_ACCEPTED, Plan
from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.run.durations import spoken
from moorage.client.run.exit_codes import CONFLICT
from moorage.client.transport import RefusedError

REGISTER, REPORT, ALIVE = "register", "report", "alive"
"""Kinds of requests."""

REPORT_SECONDS = 1.0
"""The least time between two reports of progress."""

BEAT_SECONDS_MIN, BEAT_SECONDS_MAX = 0.1, 300.0
"""Bounds of the time between signs of life: a wrong answer must not silence a machine."""

DECOMMISSIONED = "decommissioned"
SUPERSEDED_BOOT = "superseded_boot"
PLAN = "plan"
"""The member of a report that has the plan."""

REPORT_CODES = ("report_conflict", "stale_report")
"""Codes of refusals after which the last report must not be repeated."""

_TEXTS = {REGISTER: "register", REPORT: "report", ALIVE: "give a sign of life"}


class Machine(NamedTuple):
    """What an agent says of its machine when it registers; see `wire.fleet.RegisterRequest`."""

    boot_id: str
    hostname: str
    kernel: str
    version: str
    root: str | None = None
    labels: tuple[tuple[str, str], ...] = ()

    def body(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """Return the body of a register request."""
        return {
            "boot_id": self.boot_id,
            "facts": {
                "hostname": self.hostname,
                "kernel": self.kernel,
                "version": self.version,
            },
            "root": self.root,
            "labels": dict(self.labels),
            "parts": [part.body() for part in parts],
        }


class Request(NamedTuple):
    """A request that is due."""

    kind: str
    body: dict[str, Any]


class End(NamedTuple):
    """Why the agent must stop for ever, and its exit code."""

    exit_code: int
    message: str


class Protocol:
    """What to send next, from the answers so far and the last observation.

    Times are in seconds, by a clock that does not jump. Not thread-safe.
    """

    def __init__(self, machine: Machine, backoff: Backoff, plan: Plan | None = None) -> None:
        """Begin; `plan` is sent with reports until the server has settled or refused it."""
        self._machine = machine
        self._backoff = backoff
        self._plan = Plan(None) if plan is None else plan
        self._seen: Observation | None = None
        self._outstanding: Request | None = None
        self._registered = False
        self._parts: tuple[Part, ...] = ()
        self._generation = 0
        self._last: dict[str, Any] | None = None
        self._repeat = False
        self._register_at = 0.0
        self._report_at = 0.0
        self._beat_at = 0.0
        self.desired: Amounts | None = None
        self.desired_generation = 0
        self.ended: End | None = None
        self.notes: list[str] = []
        """Lines for people that were not printed yet."""

    def observe(self, seen: Observation) -> None:
        """Take what the machine has now; new parts are registered before they are reported."""
        if seen.done and self._seen is not None and not self._seen.done:
            self._report_at = 0.0
        self._seen = seen

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next request; None: not before the next event."""
        if self.ended is not None or self._outstanding is not None or self._seen is None:
            return None
        if self._must_register(self._seen):
            return max(0.0, self._register_at - now)
        due = self._beat_at
        if self._report(now) is not None:
            due = min(due, self._report_at)
        return max(0.0, due - now)

    def next_request(self, now: float) -> Request | None:
        """Return the request to send now, if one is due; it must be answered before the next."""
        if self._seen is None or self.due_in(now) != 0.0:
            return None
        report = self._report(now)
        if self._must_register(self._seen):
            request = self._register(self._seen)
        elif report is not None and self._report_at <= now:
            request = Request(REPORT, report)
            self._last, self._report_at = report, now + REPORT_SECONDS
        else:
            request = Request(ALIVE, self._alive())
        self._outstanding = request
        return request

    def answered(self, values: Any, now: float) -> None:
        """Take the decoded answer to the outstanding request."""
        request, self._outstanding = self._outstanding, None
        assert request is not None
        try:
            if request.kind == ALIVE:
                self._take_alive(alive_of(values), now)
            else:
                self._take_orders(request, orders_of(values), now)
        except StrangeAnswerError as error:
            self._again(str(error), now)

    def failed(self, error: Exception, now: float) -> None:
        """Take the failure of the outstanding request: a refusal, or no answer."""
        request, self._outstanding = self._outstanding, None
        assert request is not None
        retry_after = None
        if isinstance(error, RefusedError):
            retry_after = error.retry_after
            if error.status == 410 and error.code == DECOMMISSIONED:
                self._end(End(0, f"this agent is decommissioned: {error}"))
                return
            if error.code == SUPERSEDED_BOOT:
                self._end(End(CONFLICT, _cloned(self._machine.boot_id, error)))
                return
            if error.code in REPORT_CODES:
                self._last = None
            waits = error.code == NOT_ACCEPTED
            if PLAN in request.body and (waits or self._plan.is_refused_by(error)):
                self._last, self._report_at = None, now
                self.notes += self._plan.postponed(now) if waits else self._plan.refused(error)
                return  # the state of the machine is sent without it, at once
        self._again(f"cannot {_TEXTS[request.kind]}: {error}", now, retry_after)

    def _must_register(self, seen: Observation) -> bool:
        return not self._registered or self._parts != seen.parts

    def _register(self, seen: Observation) -> Request:
        if self._parts != seen.parts:
            self._last = None  # a report names exactly the parts that are registered
        self._registered, self._parts = False, seen.parts
        return Request(REGISTER, self._machine.body(seen.parts))

    def _report(self, now: float) -> dict[str, Any] | None:
        """Return the body of the report that is due; None: the server has everything.

        A report that may not have arrived is repeated as it is.
        """
        seen, last = self._seen, self._last
        if seen is None or seen.desired_generation is None:
            return None  # it was not compared with any orders yet
        if last is not None and last["report_generation"] == self._generation + 1:
            return last
        content = {
            "boot_id": self._machine.boot_id,
            "desired_generation_seen": seen.desired_generation,
            "phase": "done" if seen.done else "preparing",
            "actual": seen.actual,
            "consumers": None if seen.consumers is None else [*seen.consumers],
            "failure": self._failure(seen),
        }
        plan = self._plan.due(now)
        if plan is not None:
            content[PLAN] = plan
        if last == {**content, "report_generation": self._generation}:
            return last if self._repeat else None
        return {**content, "report_generation": self._generation + 1}

    def _failure(self, seen: Observation) -> dict[str, Any] | None:
        """Return what is wrong; a refused plan once the machine is prepared, and has all it can."""
        failure = seen.failure
        if failure is None and seen.done:
            failure = self._plan.failure
        return None if failure is None else failure._asdict()

    def _alive(self) -> dict[str, Any]:
        return {"boot_id": self._machine.boot_id, "report_generation": self._generation}

    def _take_orders(self, request: Request, orders: Orders, now: float) -> None:
        self._generation = orders.report_generation
        if request.kind == REPORT and request.body["report_generation"] != self._generation:
            raise StrangeAnswerError(
                f"the server answered report {request.body['report_generation']} as report"
                f" {self._generation}"
            )
        self.desired, self.desired_generation = orders.desired, orders.desired_generation
        self._beat_at = _beat_at(now, orders.next_in)
        self._backoff.limit(orders.ttl)
        if request.kind == REGISTER:
            self._registered, self._register_at = True, now + REPORT_SECONDS
            self._repeat = True  # the server may have lost the last report
            self.notes.append("registered")
        else:
            self._repeat = False
            if PLAN in request.body:
                self._settle(request, orders)
        self._obey(request.kind, orders.directive, now)

    def _settle(self, request: Request, orders: Orders) -> None:
        """Take what became of the plan; a report without it is then the same report."""
        if orders.plan is None:
            raise StrangeAnswerError("the server does not say what became of the plan")
        self.notes.append(self._plan.settled(orders.plan))
        self._last = {name: value for name, value in request.body.items() if name != PLAN}

    def _take_alive(self, answer: AliveAnswer, now: float) -> None:
        self._beat_at = _beat_at(now, answer.next_in)
        self._backoff.limit(answer.ttl)
        if answer.desired_generation != self.desired_generation:
            self._repeat = True  # the answer to a report has the new orders
        self._obey(ALIVE, answer.directive, now)

    def _obey(self, kind: str, directive: str, now: float) -> None:
        if directive == api_types.INERT:
            self._end(End(0, "this agent is decommissioned"))
        elif directive == api_types.REGISTER:
            self._again("the server asks this agent to register again", now)
        elif kind != REGISTER:
            self._backoff.reset()  # not by a register: the requests after it may still fail
        if directive == api_types.REPORT:
            self._repeat = True

    def _again(self, trouble: str, now: float, retry_after: float | None = None) -> None:
        """Register again after a back-off of at most one TTL, which is what an outage leaves."""
        delay = self._backoff.next(retry_after)
        self._registered, self._register_at = False, now + delay
        self.notes.append(f"{trouble.rstrip('.')}; registers again in {spoken(delay)}")

    def _end(self, end: End) -> None:
        self.ended, self.desired = end, None


def _beat_at(now: float, next_in: float) -> float:
    return now + min(max(BEAT_SECONDS_MIN, next_in), BEAT_SECONDS_MAX)


def _cloned(boot_id: str, error: Exception) -> str:
    return (
        f"another machine with the same agent id has registered since boot {boot_id} of this one:"
        " one is a copy of the other, with its /etc/machine-id. Give one of them another id"
        f" (systemd-machine-id-setup, or --agent-id). The server says: {error}"
    )
