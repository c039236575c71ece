"""Requests to the native API: over HTTP, or inside the process while the past is made."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from demo.stopping import Stop
from moorage.client.transport import RefusedError, Transport, UnreachableError

AT_ONCE = 4
"""Requests of `ask_any_order` that are sent at the same time."""

UNREACHABLE = "unreachable"
"""The code of a request without an answer in time."""

BUSY = ("overloaded", "unavailable", UNREACHABLE)
"""Codes of refusals by a server that has too much to do: the same request may succeed later."""

AGAIN_SECONDS = 0.5

LIFE_SECONDS = 10.0
"""The longest wait for an answer while the example lives: a grant waits longer for its holder."""


class RefusalError(Exception):
    """The server refused what the example had to ask for."""


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

    def __init__(self, transport: Transport, stop: Stop, patience: float = 0.0) -> None:
        """Create it; `patience`: for how many seconds it asks a busy server again."""
        self._transport = transport
        self._stop = stop
        self._patience = patience

    def hurry(self) -> None:
        """Ask once from now on: life goes on, and what is due is asked for again."""
        self._patience = 0.0

    def ask(self, calls: Sequence[Call]) -> list[Any]:
        """Send them one after the other."""
        return [self._one(call) for call in calls]

    def ask_any_order(self, calls: Sequence[Call]) -> list[Any]:
        """Send some at the same time; the answers are in the order of the requests."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(self._one, calls))

    def _one(self, call: Call) -> Any:
        began = time.monotonic()
        while True:
            self._stop.check()
            answer = self._once(call)
            busy = isinstance(answer, Refusal) and answer.code in BUSY
            if not busy or time.monotonic() - began >= self._patience:
                return answer
            self._stop.wait(AGAIN_SECONDS)

    def _once(self, call: Call) -> Any:
        seconds_max = None if self._patience else LIFE_SECONDS
        try:
            with self._stop.ending():
                return self._transport.request(*call, seconds_max=seconds_max)
        except RefusedError as refused:
            return Refusal(refused.code, str(refused))
        except UnreachableError as error:
            return Refusal(UNREACHABLE, str(error))


def granted(answer: Any, *codes: str) -> Any:
    """Return an answer; None if it is a refusal with one of the codes.

    Raises RefusalError: it is another refusal.
    """
    if not isinstance(answer, Refusal):
        return answer
    if answer.code in codes:
        return None
    raise RefusalError(f"refused: {answer.code}: {answer.message}")
