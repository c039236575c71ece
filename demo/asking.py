"""Requests to the native API: over HTTP, or inside the process while the past is made."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from demo.stopping import Stop
from moorage.client.transport import RefusedError, Transport

AT_ONCE = 4
"""Requests of `ask_any_order` that are sent at the same time."""


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any = None


class Refusal(NamedTuple):
    """The answer to a request that was refused."""

    code: str
    message: str


class Asker(Protocol):
    """Sends requests. Raises StoppedError if a signal arrives in between."""

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send requests in this order; return the answer of each, or its `Refusal`."""
        ...


class HttpAsker:
    """Sends requests over HTTP."""

    def __init__(self, transport: Transport, stop: Stop) -> None:
        self._transport = transport
        self._stop = stop

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send them one after the other."""
        return [self._one(call) for call in calls]

    def ask_any_order(self, calls: Sequence[Call]) -> list[Any]:
        """Send some at the same time; the answers are in the order of the requests."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(self._one, calls))

    def _one(self, call: Call) -> Any:
        self._stop.check()
        try:
            return self._transport.request(*call)
        except RefusedError as refused:
            return Refusal(refused.code, str(refused))


def granted(answer: Any, *codes: str) -> Any:
    """Return an answer; None if it is a refusal with one of the codes. Others are an error."""
    if not isinstance(answer, Refusal):
        return answer
    if answer.code in codes:
        return None
    raise AssertionError(f"refused: {answer.code}: {answer.message}")
