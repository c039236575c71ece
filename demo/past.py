"""Makes the past: the service itself runs in this process, with a clock that is moved by hand.

Every row is written by the service, asked through its native API. Only the time is not the
machine's: an hour passes in some seconds. A server opens the same ledger afterwards.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from demo.asking import Call, Refusal, granted
from demo.jobs import Jobs
from demo.stopping import Stop
from moorage.core.clock import SECOND, Instant
from moorage.faces.auth.token import ROLES
from moorage.faces.native_api import RefusedError
from moorage.faces.path_table import Table
from moorage.faces.v1.in_process import InProcessApi
from moorage.faces.web import Caller
from moorage.service.access.roles import Role
from moorage.service.app import Service
from moorage.service.clock import SystemClock
from moorage.store.open import open_engine
from moorage.wire.operations import operations_by_id

SWEEP_SECONDS = 3
"""How often the service ends what is due, and grants what time permits."""

TICK_SECONDS = 15
"""How often jobs do what they do: a multiple of the former."""


OPERATIONS = Table(operations_by_id().values())
"""What a request stands for."""


class PlayedTime:
    """The time of the example: seconds since its past began."""

    def __init__(self, past: int) -> None:
        """Let the past have begun this many seconds ago."""
        self._past = past
        self._began = Instant(SystemClock().now() - past * SECOND)
        self._started = monotonic()

    def passed(self) -> float:
        """Return how many seconds have passed until now."""
        return self._past + monotonic() - self._started

    def at(self, passed: float) -> Instant:
        """Return when this many seconds had passed."""
        return Instant(self._began + round(passed * SECOND))


class HandClock:
    """A clock that only `set` moves; it never jumps, so its time counts like any other."""

    def __init__(self, at: Instant) -> None:
        self._at = at

    def set(self, at: Instant) -> None:
        """Let time pass until an instant."""
        self._at = at

    def now(self) -> Instant:
        """Return the time in microseconds since the epoch."""
        return self._at

    def monotonic(self) -> int:
        """Return the same: nothing sets this clock back."""
        return self._at


class InProcessAsker:
    """Asks a service in this process. Requests of one call share a batch."""

    def __init__(self, runner: asyncio.Runner, service: Service, name: str, role: Role) -> None:
        self._runner = runner
        self._api = InProcessApi(service)
        self._caller = Caller(user_id=name, project_id=None, roles=ROLES[role])

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send requests in this order."""
        return self._runner.run(self._all(calls)) if calls else []

    async def _all(self, calls: Sequence[Call]) -> list[Any]:
        return list(await asyncio.gather(*map(self._one, calls)))

    async def _one(self, call: Call) -> Any:
        path, _, query = call.path.partition("?")
        match = OPERATIONS.match(path)
        assert match is not None, path
        try:
            answer = await self._api.call(
                self._caller,
                match.by_method[call.method],
                *match.variables.values(),
                query=dict(parse_qsl(query)),
                body=call.body,
            )
        except RefusedError as refused:
            return Refusal(refused.code, refused.message)
        return msgspec.to_builtins(answer)


def past_make(
    database: str,
    time: PlayedTime,
    jobs: Jobs,
    tokens: Sequence[tuple[str, Role]],
    stop: Stop,
) -> dict[str, str]:
    """Let the past go by, up to the present; return the secret of each token by its name.

    Args:
        database: the address of a database that does not exist yet.
        time: when the past began.
        jobs: live in it, and go on afterwards.
        tokens: names and roles; the first one administers everything.
        stop: raises StoppedError.
    """
    clock = HandClock(time.at(0.0))
    with asyncio.Runner() as runner, _service(runner, database, clock) as service:
        admin = InProcessAsker(runner, service, *tokens[0])
        secrets = {}
        for name, role in tokens:
            (made,) = admin.ask([Call("POST", "/v1/tokens", {"name": name, "role": role.value})])
            secrets[name] = granted(made)["token"]
        owner = InProcessAsker(runner, service, jobs.owner, Role.SERVICE)
        jobs.build(admin)
        passed = 0.0
        while time.passed() >= passed + SWEEP_SECONDS:
            stop.check()
            passed += SWEEP_SECONDS
            clock.set(time.at(passed))
            while runner.run(service.admission.sweeper.sweep()):
                pass
            if passed % TICK_SECONDS == 0:
                jobs.tick(passed, owner, admin)
    return secrets


@contextmanager
def _service(runner: asyncio.Runner, database: str, clock: HandClock) -> Iterator[Service]:
    # Nothing is kept if the machine fails: on slow disks, waiting for them took most of the time.
    engine = open_engine(database, synchronous="OFF")
    service = runner.run(Service.start(engine, clock, on_fatal=_fail))
    try:
        # Its loop waits in the machine's time; here each step sweeps.
        runner.run(service.admission.sweeper.stop())
        yield service
    finally:
        runner.run(service.stop())


def _fail(error: Exception) -> None:
    raise AssertionError("it is unknown whether a commit is durable") from error
