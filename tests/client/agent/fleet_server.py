"""A small server of agents: the protocol of `wire/fleet.py` without rooms and rows, and over HTTP.

It decodes every body strictly as the server does, and refuses what the protocol forbids.
"""

import dataclasses
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from moorage.wire.changes import AgentPlan
from moorage.wire.enums import Directive
from moorage.wire.fleet import (
    AgentOrders,
    AliveAnswer,
    AliveRequest,
    RegisterRequest,
    ReportRequest,
    StartAnswer,
)


class Refusal(Exception):
    """A refusal of the server."""

    def __init__(self, status: int, code: str, **members: Any) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.members = members
        """Further members of the body."""


class FleetServer:
    """One agent as the server knows it."""

    def __init__(self) -> None:
        self.boots: list[str] = []
        self.registered: RegisterRequest | None = None
        self.report: ReportRequest | None = None
        self.generation = 0
        self.desired_generation = 1
        self.wanted: dict[str, int] = {}
        """Desired amounts by part and class, such as `numa0 CUSTOM_HUGEPAGES_2MB`."""
        self.decommissioned = False
        self.directives: list[Directive] = []
        """Directives of the next answers; none after that."""
        self.next_in = 5.0
        self.may_start: dict[str, StartAnswer] = {}
        self.plans: list[Any] = []
        """The plan of each report that had one."""
        self.plan: AgentPlan | Refusal | None = None
        """What becomes of a plan; None: this server knows none."""
        self.writes: list[ReportRequest] = []
        """Every report that changed something."""

    def want(self, **amounts: int) -> None:
        """Desire amounts of a class, in all parts: `want(CUSTOM_HUGEPAGES_2MB=64)`."""
        self.wanted = amounts
        self.desired_generation += 1

    def take(self, kind: str, body: Any) -> Any:
        """Answer a request. Raises Refusal."""
        if self.decommissioned:
            raise Refusal(410, "decommissioned")
        answer: Any
        if kind == "register":
            answer = self._register(msgspec.convert(body, RegisterRequest, strict=True))
        elif kind == "report":
            answer = self._report(msgspec.convert(body, ReportRequest, strict=True))
        else:
            answer = self._alive(msgspec.convert(body, AliveRequest, strict=True))
        return msgspec.to_builtins(answer)

    def _register(self, asked: RegisterRequest) -> AgentOrders:
        if asked.boot_id in self.boots[:-1]:
            raise Refusal(409, "superseded_boot")
        if [asked.boot_id] != self.boots[-1:]:
            self.boots.append(asked.boot_id)
            self.report = None
        self.registered = asked
        return self._orders()

    def _report(self, asked: ReportRequest) -> AgentOrders:
        self._check_boot(asked.boot_id)
        assert self.registered is not None
        named = {part.provider: set(part.classes) for part in self.registered.parts}
        if {provider: set(amounts) for provider, amounts in asked.actual.items()} != named:
            raise Refusal(422, "invalid")
        if asked.plan is not None:
            self.plans.append(asked.plan)
            if isinstance(self.plan, Refusal):
                raise self.plan
            asked = dataclasses.replace(asked, plan=None)
            return dataclasses.replace(self._counted(asked), plan=self.plan)
        return self._counted(asked)

    def _counted(self, asked: ReportRequest) -> AgentOrders:
        if asked.report_generation == self.generation and asked == self.report:
            return self._orders()
        if asked.report_generation == self.generation:
            raise Refusal(409, "report_conflict")
        if asked.report_generation != self.generation + 1:
            raise Refusal(409, "stale_report")
        self.generation, self.report = asked.report_generation, asked
        self.writes.append(asked)
        return self._orders()

    def _alive(self, asked: AliveRequest) -> AliveAnswer:
        self._check_boot(asked.boot_id)
        if asked.report_generation != self.generation:
            raise Refusal(409, "stale_report")
        news = self.report is None or (
            self.report.desired_generation_seen != self.desired_generation
        )
        directive: Directive = "report" if news else "none"
        if self.directives:
            directive = self._directive()
        return AliveAnswer(
            desired_generation=self.desired_generation,
            ttl=2 * self.next_in,
            next_in=self.next_in,
            directive=directive,
        )

    def _check_boot(self, boot_id: str) -> None:
        if self.registered is None:
            raise Refusal(404, "agent_not_found")
        if boot_id != self.boots[-1]:
            raise Refusal(409, "superseded_boot" if boot_id in self.boots else "stale_boot")

    def _directive(self) -> Directive:
        return self.directives.pop(0) if self.directives else "none"

    def _orders(self) -> AgentOrders:
        assert self.registered is not None
        return AgentOrders(
            report_generation=self.generation,
            desired_generation=self.desired_generation,
            desired={
                part.provider: {name: self.wanted.get(name, 0) for name in part.classes}
                for part in self.registered.parts
            },
            ttl=2 * self.next_in,
            next_in=self.next_in,
            directive=self._directive(),
        )


class Served:
    """A `FleetServer` behind HTTP, with faults."""

    def __init__(self) -> None:
        self.fleet = FleetServer()
        self.url = ""
        self.requests: list[tuple[str, Any]] = []
        """Every request: the last word of its path, and its body."""
        self.headers: dict[str, str] = {}
        self.at_once = 0
        self.most_at_once = 0
        self.fault: Callable[[str], str | None] = lambda kind: None
        """For a kind of requests: None, or `lost` before or `unanswered` after it took effect."""
        self.changed = threading.Condition()

    def await_(self, holds: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something holds after a request."""
        with self.changed:
            assert self.changed.wait_for(holds, seconds), self.requests[-3:]

    def count(self, kind: str) -> int:
        """Return the number of requests of a kind."""
        return sum(one == kind for one, _ in self.requests)


@contextmanager
def serving() -> Iterator[Served]:
    """Serve one agent on a free port."""
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            parts = urlsplit(self.path)
            kind = "start" if "/starts/" in parts.path else parts.path.rpartition("/")[2]
            with served.changed:
                served.at_once += 1
                served.most_at_once = max(served.most_at_once, served.at_once)
                served.headers = dict(self.headers.items())
                fault = served.fault(kind)
                if fault != "lost":
                    try:
                        status, answer = 200, _handle(served, kind, parts.path, parts.query, body)
                    except Refusal as refusal:
                        status = refusal.status
                        answer = {"code": refusal.code, "detail": f"refused: {refusal.code}"}
                        answer.update(refusal.members)
                served.requests.append((kind, body))
                served.at_once -= 1
                served.changed.notify_all()
            if fault is not None:
                return
            raw = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 # the names that http.server calls

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    """A server whose clients may be killed."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print everything but lost connections."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handle(served: Served, kind: str, path: str, query: str, body: Any) -> Any:
    if kind != "start":
        return served.fleet.take(kind, body)
    asked = parse_qs(query)
    if served.fleet.boots[-1:] != asked["boot_id"]:
        raise Refusal(409, "stale_boot")
    answer = served.fleet.may_start.get(path.rpartition("/")[2])
    if answer is None:
        raise Refusal(404, "consumer_not_found")
    return msgspec.to_builtins(answer)
