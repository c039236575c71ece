"""The jobs of the example, asked for in this process with a clock that is moved by hand."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from demo.asking import Call, Refusal
from demo.jobs import Jobs
from demo.past import HandClock, InProcessAsker
from moorage.core.clock import SECOND, Instant
from moorage.faces.v1.admission.leases import request_of
from moorage.service.access.roles import Role
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.store.open import open_engine
from moorage.wire.admission import LeaseWanted

A = TypeVar("A", bound=InProcessAsker)

BEGINS = 1_800_000_000
SEPARATORS = r"[/?]"
SWEEP, TICK, MINUTES = 3, 15, 10


class DeafAsker(InProcessAsker):
    """Asks as over a connection, on which nobody reads the first answer to a request in time."""

    def __init__(self, runner: asyncio.Runner, service: Service) -> None:
        super().__init__(runner, service, Jobs.owner, Role.SERVICE)
        self._loop, self._service = runner, service
        self.states: dict[str, set[str]] = {}
        """The states of leases in which the jobs have seen them."""

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send requests in this order."""
        for call in calls:
            if call.method == "POST" and call.path.startswith("/v1/leases?"):
                self._loop.run(self._unread(call.body))
        answers = super().ask(calls)
        for answer in answers:
            for change in answer.get("changes", ()) if isinstance(answer, dict) else ():
                state = (change["value"] or {}).get("state", "ended")
                self.states.setdefault(change["key"], set()).add(state)
        return answers

    async def _unread(self, body: dict[str, Any]) -> None:
        wanted = msgspec.convert(body, LeaseWanted)
        request = request_of(wanted, Jobs.owner, attended=True)
        await self._service.admission.acquire(request, Actor(Jobs.owner, None, "service"))


def fail(error: Exception) -> None:
    """Take a commit of which nobody knows whether it is durable."""
    pytest.fail(f"a commit failed: {error}")


class BusyAsker(InProcessAsker):
    """Asks a service that refuses some requests because it is busy, and forgets old changes."""

    def __init__(self, runner: asyncio.Runner, service: Service) -> None:
        super().__init__(runner, service, Jobs.owner, Role.SERVICE)
        self._count = 0
        self.refused: set[str] = set()
        """Methods and first parts of the addresses of requests that were refused."""

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send requests in this order."""
        return [self._some(call) for call in calls]

    def _some(self, call: Call) -> Any:
        self._count += 1
        if self._count % 3:
            return super().ask([call])[0]
        self.refused.add(f"{call.method} /v1/{re.split(SEPARATORS, call.path)[2]}")
        forgets = "kinds=" in call.path and self._count % 2
        return Refusal("changes_gone" if forgets else "overloaded", "it is busy")


def played(folder: Path, asker: Callable[[asyncio.Runner, Service], A]) -> tuple[A, list[Any]]:
    """Play jobs for some minutes; return who asked for them, and the pools at the end."""
    clock = HandClock(Instant(BEGINS * SECOND))
    jobs = Jobs(7, 400, 60, 60 * MINUTES)
    with asyncio.Runner() as runner:
        engine = open_engine(f"sqlite:///{folder}/demo.sqlite")
        service = runner.run(Service.start(engine, clock, on_fatal=fail))
        try:
            runner.run(service.admission.sweeper.stop())
            admin = InProcessAsker(runner, service, "admin", Role.ADMIN)
            owner = asker(runner, service)
            jobs.build(admin)
            for passed in range(SWEEP, 60 * MINUTES, SWEEP):
                clock.set(Instant((BEGINS + passed) * SECOND))
                while runner.run(service.admission.sweeper.sweep()):
                    pass
                if passed % TICK == 0:
                    jobs.tick(passed, owner, admin, connected=True)
            (page,) = admin.ask([Call("GET", "/v1/pools")])
        finally:
            runner.run(service.stop())
    return owner, page["pools"]


def test_grants_that_are_taken_back_are_survived(tmp_path: Path) -> None:
    """A job whose grant nobody has read in time waits again; it reports once it has units."""
    owner, pools = played(tmp_path, DeafAsker)
    seen = [*owner.states.values()]
    assert any({"granted", "waiting"} <= states for states in seen), "nothing was taken back"
    assert any("ended" in states for states in seen), "no job ended"
    assert sum(pool["occupied"] for pool in pools) > 0


def test_a_busy_service_is_survived(tmp_path: Path) -> None:
    """Whatever it refuses: what is due is asked for again, and jobs still have units."""
    owner, pools = played(tmp_path, BusyAsker)
    methods = {"POST /v1/leases", "GET /v1/leases", "DELETE /v1/leases", "GET /v1/watch"}
    assert owner.refused == methods
    assert sum(pool["occupied"] for pool in pools) > 0
