"""The net between the processes: requests and answers are lost, doubled, late and cut off.

What a process sees of it is what its own client classes make of it: they are the real ones, of
which only the connection is replaced.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from multidict import CIMultiDict

from moorage.client.calling import body_of
from moorage.client.transport import UnreachableError, refusal_of
from moorage.integrations.connections import SECONDS_MAX as IRONIC_SECONDS
from moorage.integrations.ironic.gate.answers import VERSIONS, HttpAnswer
from moorage.integrations.ironic.gate.upstream import (
    ANSWER_SECONDS,
    AwayError,
    Body,
    Upstream,
)
from moorage.integrations.ironic.nodes import VERSION_HEADER, IronicError, NodeReader
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.native_api import SECONDS_MAX
from moorage.integrations.no_retry import LostError
from moorage.wire.operations.operation import Operation
from tests.support.ironic_double.fleet import date

T = TypeVar("T")

IRONIC_LATE = 55.0
"""How late Ironic may begin what it has got: less than its `rpc_response_timeout`."""

SERVER_LATE = 20.0

VERSION = "1.82"
"""The API version for which the processes ask Ironic."""


class NotSentError(Exception):
    """There was no connection."""


class CutError(Exception):
    """There was no answer."""


@dataclass
class Weather:
    """What happens to one request. `late`: it is carried out that much later."""

    arrives: bool = True
    again: float | None = None
    late: float = 0.0
    cut: float | None = None
    """The connection is lost after this many seconds."""
    answered: bool = True
    sleeps: float = 0.0
    """The process is stopped for this long, as by SIGSTOP, when the answer comes."""
    error: int | None = None
    """Status that somebody between has answered instead."""


class Net:
    """Between all processes, with faults from the seed."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._random = world.random

    def weather(self, late: float, errors: bool) -> Weather:
        """Return what happens to the next request."""
        if not self._world.chance(self._world.storm):
            return Weather()
        some = self._random.uniform
        kinds = [
            Weather(arrives=False, cut=some(0.0, 30.0)),
            Weather(late=some(0.0, late), cut=some(0.0, 5.0)),
            Weather(late=some(0.0, late), answered=False),
            Weather(cut=some(0.1, 1.0)),
            Weather(again=some(0.0, late)),
            Weather(late=some(0.0, 15.0)),
            Weather(sleeps=some(0.0, 150.0)),
        ]
        if errors:
            status = self._random.choice([500, 502, 503, 504])
            kinds.append(Weather(error=status, late=some(0.0, late)))
            kinds.append(Weather(error=status, arrives=False))
        return self._random.choice(kinds)

    async def exchange(
        self, weather: Weather, seconds: float, carry: Callable[[asyncio.Event], Awaitable[T]]
    ) -> T:
        """Have a request carried out elsewhere; return the answer.

        `carry` gets an event that is set when the caller has left. Raises CutError.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        gone = asyncio.Event()
        travel = self._random.uniform(0.0005, 0.05)
        if weather.arrives:
            arrive = partial(self._arrive, weather, carry, answer, gone)
            self.later(travel + weather.late, arrive)
            if weather.again is not None:
                self.later(travel + weather.again, arrive)
        if weather.cut is not None:
            self.later(travel + weather.cut, lambda: _fail(answer))
        try:
            async with asyncio.timeout(None if weather.sleeps else seconds):
                return await answer
        except TimeoutError as error:
            raise CutError("it takes too long") from error
        finally:
            if not self._world.chance(0.1):  # otherwise nobody notices that the caller has left
                self.later(self._random.uniform(0.0, 0.05), gone.set)

    def later(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something in the world."""
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, work, context=self._world.process.context)

    def _arrive(
        self,
        weather: Weather,
        carry: Callable[[asyncio.Event], Awaitable[T]],
        answer: "asyncio.Future[T]",
        gone: asyncio.Event,
    ) -> None:
        work = asyncio.ensure_future(carry(gone))
        work.add_done_callback(lambda done: self._back(weather, done, answer))

    def _back(
        self, weather: Weather, done: "asyncio.Future[T]", answer: "asyncio.Future[T]"
    ) -> None:
        travel = self._random.uniform(0.0005, 0.05) + weather.sleeps
        if done.cancelled() or isinstance(done.exception(), CutError):
            self.later(travel, lambda: _fail(answer))
        elif done.exception() is not None:
            self._world.broken(done.exception())
        elif weather.answered:
            self.later(travel, lambda: _tell(answer, done.result()))


def _tell(answer: "asyncio.Future[Any]", said: Any) -> None:
    if not answer.done():
        answer.set_result(said)


def _fail(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(CutError("the connection was lost"))


async def answer_of_moorage(
    world: Any,
    operation: Operation[T],
    variables: Sequence[str],
    query: Mapping[str, Any],
    body: Any,
) -> T:
    """Call an operation of Moorage; return what it answers. Raises as `NativeApi` does."""
    given = {name: value for name, value in query.items() if value is not None}
    seconds = SECONDS_MAX + float(given.get("wait", 0.0))
    path = unquote(operation.address(*variables))
    try:
        status, content = await world.to_moorage(operation.method, path, given, body, seconds)
    except CutError as error:
        raise UnreachableError(f"no answer: {error}") from error
    if status >= 300:
        raise refusal_of(status, content)
    assert operation.content.answer is None or isinstance(content, operation.content.answer)
    return cast("T", content)


class SimulatedLeaseApi(LeaseApi):
    """The leases, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__("http://moorage", None)
        self._world = world

    async def _call(
        self,
        operation: Operation[T],
        *variables: str,
        body: Any = None,
        **query: str | float | None,
    ) -> T:
        return await answer_of_moorage(self._world, operation, variables, query, body_of(body))


class SimulatedNodeReader(NodeReader):
    """The nodes, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__("http://ironic")
        self._world = world

    async def _negotiated(self) -> str:
        return VERSION

    async def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {VERSION_HEADER.lower(): VERSION}
        sent = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            answer: tuple[int, bytes] = await self._world.to_ironic(
                method, path, headers, sent, IRONIC_SECONDS
            )
        except (CutError, NotSentError) as error:
            raise IronicError(f"no answer: {error}") from error
        self.answered_at = date(self._world.ironic.agenda.now)
        return answer


class SimulatedUpstream(Upstream):
    """Ironic behind a gate, over the net."""

    def __init__(self, world: Any) -> None:
        super().__init__("http://ironic")
        self._world = world
        self.versions = dict(zip(VERSIONS, ("1.1", "1.115"), strict=True))

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: Body = None
    ) -> HttpAnswer:
        names = {name.lower(): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes) else b""
        try:
            status, content = await self._world.to_ironic(
                method, target, names, sent, ANSWER_SECONDS
            )
        except NotSentError as error:
            raise AwayError("Ironic cannot be reached") from error
        except CutError as error:
            raise LostError(str(error)) from error
        return HttpAnswer(status, "", CIMultiDict(), content)


class Spool:
    """The body of a decided request, in memory."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def body(self) -> bytes:
        """Return the body."""
        return self._body


def short(body: Any) -> Any:
    """Return a body for the story, without what is random anyway."""
    if not isinstance(body, dict):
        return ""
    record = body.get("record")
    if record is None:
        return body.get("key", body)
    return f"{body['version']}: {len(record['sent'])} sent{' begun' * record['begun']}"
