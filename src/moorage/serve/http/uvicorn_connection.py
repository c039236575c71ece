"""uvicorn's connection, with less work per request.

* A complete answer is one write, and its head is checked once as a whole.
* A connection has one idle timer for its whole life, not one per request.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn._types import ASGI3Application, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from moorage.faces.web import ANSWERED, WHOLE, Headers, Scope
from moorage.serve.http.memory_budget import ByteBudget

_LINE_END = b"\r\n"
_NO_CONTENT = int(HTTPStatus.NO_CONTENT)
_FRAMING = frozenset({b"connection", b"transfer-encoding"})


class _Done(Awaitable[None]):
    """Nothing to wait for; a coroutine for each part of each answer would take far longer."""

    # A partial is called without a Python frame.
    __await__ = staticmethod(partial(iter, ()))


_DONE = _Done()


class Cycle(RequestResponseCycle):
    """One request and its answer."""

    scope: Scope  # type: ignore[assignment] # with what is not of ASGI

    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0

    _held: dict[str, Any] | None = None
    """The start of an answer with a content-length: it waits for the body."""

    _to_end = False
    """The answer ends with the connection: HTTP/1.0 has no chunks."""

    wakes: asyncio.Event | None = None
    """Wakes the application that waits in `receive`; most requests are complete before it asks."""

    has_news = False
    """Has more of the body, or its end, arrived since `receive` has returned?"""

    received = 0
    """Bytes of the body that have arrived."""

    held_in: ByteBudget | None = None
    """The budget in which the request has reserved memory; None: it has none."""

    held_bytes = 0
    """The bytes that it has reserved."""

    lingers = False
    """Whether its connection stays open after the answer, although that says that it ends."""

    def __init__(
        self, connection: "LeanProtocol", scope: Scope, *, expects: bool, keep_alive: bool
    ) -> None:
        """Create it; a base class that takes all of this as arguments is not called.

        Args:
            connection: where the request arrives.
            scope: of the request.
            expects: whether its client waits for an interim answer before it sends the body.
            keep_alive: whether the connection stays open after the answer.
        """
        self.scope = scope
        self.transport = connection.transport
        self.flow = connection.flow
        self.logger = connection.logger
        self.access_logger = connection.access_logger
        self.access_log = connection.access_log
        self.default_headers = connection.server_state.default_headers
        self.tasks = connection.tasks
        self.on_response = connection.on_response_complete
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expects
        self.body = bytearray()

    @property
    def message_event(self) -> asyncio.Event:  # type: ignore[override] # the base has an attribute
        """What `wakes` is, for the base class, which sets it when the client has disconnected."""
        if self.wakes is None:
            self.wakes = asyncio.Event()
        return self.wakes

    async def receive(self) -> Any:
        """Return the next part of the body, or that the client has disconnected."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            if self.flow.read_paused:
                self.flow.resume_reading()
            if not self.has_news:
                await self.message_event.wait()
            self.has_news = False
            if self.wakes is not None:
                self.wakes.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, bytearray()
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    def send(self, part: dict[str, Any]) -> Awaitable[None]:  # type: ignore[override] # it is only awaited
        """Send a part of the answer, or all of it: see `faces.web.WHOLE`."""
        kind = part["type"]
        if kind == WHOLE:
            status, headers = self.scope[ANSWERED] = part["status"], part["headers"]
            if not self.response_started and self.answer(status, headers, part["body"]):
                return _DONE
            return self._send_parts(part)
        if kind == "http.response.start":
            self.scope[ANSWERED] = part["status"], part.get("headers", ())
        held = self._held
        if held is not None:
            self._held = None
            if (
                kind == "http.response.body"
                and not part.get("more_body")
                and self.answer(held["status"], held["headers"], part.get("body", b""))
            ):
                return _DONE
            self.response_started = False
            return self._send_both(held, part)
        if not self.response_started and _may_wait(part):
            self._held = part
            self.response_started = True
            return _DONE
        return self._send_alone(part)

    async def _send_parts(self, whole: dict[str, Any]) -> None:
        await self.send({**whole, "type": "http.response.start"})
        await self.send({"type": "http.response.body", "body": whole["body"]})

    async def _send_both(self, start: dict[str, Any], part: dict[str, Any]) -> None:
        await super().send(cast(ASGISendEvent, start))
        await super().send(cast(ASGISendEvent, part))

    async def _send_alone(self, part: dict[str, Any]) -> None:
        if self._to_end:
            self.expected_content_length = len(part.get("body", b""))
        elif self._is_unmeasured(part):
            self._to_end, self.chunked_encoding = True, False
        await super().send(cast(ASGISendEvent, part))

    def _is_unmeasured(self, part: dict[str, Any]) -> bool:
        return (
            not self.response_started
            and part["type"] == "http.response.start"
            and self.scope["http_version"] == "1.0"
        )

    def answer(self, status: int, headers: Headers, body: bytes) -> bool:
        """Send a complete answer with a content-length; False: a special case, nothing was sent."""
        if self.flow.write_paused or self.disconnected or self.scope["method"] == "HEAD":
            return False
        whole = response_bytes(
            status, headers, body, self.default_headers, keep_alive=self.keep_alive
        )
        if whole is None:
            return False
        self.waiting_for_100_continue = False
        self.transport.write(whole)
        self.response_started = self.response_complete = True
        if self.wakes is not None:
            self.wakes.set()
        if not (self.keep_alive or self.lingers):
            self.transport.close()
        self.on_response()
        return True

    def ended(self, task: asyncio.Task[None]) -> None:
        """Note that the task of the request has ended; fail unless it has answered."""
        self.tasks.discard(task)
        is_done = self.response_complete or self.disconnected
        if task.cancelled():
            error: BaseException | None = asyncio.CancelledError()
        else:
            error = task.exception()
            is_done = is_done and error is None
        if is_done:
            self.on_response = _nothing  # else it would keep the connection, and that this
        else:
            failing = asyncio.get_running_loop().create_task(self._fail(error))
            self.tasks.add(failing)
            failing.add_done_callback(self._failed)

    def _failed(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.on_response = _nothing

    async def _fail(self, error: BaseException | None) -> None:
        """End a request whose application has failed, or has not answered it completely."""
        if error is not None:
            self.logger.error("Exception in ASGI application\n", exc_info=error)
        else:
            self.logger.error("ASGI callable returned without a complete response.")
        if self.response_started:
            self.transport.close()
        else:
            await self.send_500_response()


def _nothing() -> None:
    """Do nothing."""


def response_bytes(
    status: int,
    headers: Headers,
    body: bytes,
    defaults: list[tuple[bytes, bytes]],
    *,
    keep_alive: bool,
) -> bytes | None:
    """Return a complete response as it is sent; None: it is a special case.

    Args:
        status: the HTTP status.
        headers: those of this response.
        body: all of it.
        defaults: the headers of every response.
        keep_alive: whether the connection stays open.
    """
    pieces = [STATUS_LINE[status], _default_lines(tuple(defaults))]
    is_measured = status == _NO_CONTENT and not body
    for name, value in headers:
        if name == b"content-length":
            if int(value) != len(body):
                return None
            is_measured = True
        elif name in _FRAMING:
            return None
        pieces += (name, b": ", value, _LINE_END)
    pieces.append(_LINE_END if keep_alive else b"connection: close\r\n\r\n")
    head = b"".join(pieces)
    lines = len(defaults) + len(headers) + (2 if keep_alive else 3)
    # No header value may add a line or a NUL to the head.
    if is_measured and head.count(b"\n") == lines == head.count(b"\r") and b"\0" not in head:
        return head + body
    return None


@lru_cache(maxsize=8)
def _default_lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return uvicorn's own headers, such as `date`, as lines; they change once per second."""
    return b"".join(name + b": " + value + _LINE_END for name, value in headers)


def _may_wait(part: dict[str, Any]) -> bool:
    """Return whether this is the start of an answer with a content-length."""
    if part["type"] == "http.response.start":
        for name, _ in part["headers"]:
            if name == b"content-length":
                return True
    return False


class LeanProtocol(HttpToolsProtocol):
    """One connection. `protocol.py` has what runs for every request."""

    scope: Scope  # type: ignore[assignment] # as above
    cycle: Cycle
    pipeline: deque[tuple[Cycle, ASGI3Application]]  # type: ignore[assignment] # only these

    _idle_until: float | None = None
    """When it will have been idle for too long; None if it is not idle."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the idle timer."""
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

    def _idle_begin(self) -> None:
        """Wait for the next request."""
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self._idle_look(self.timeout_keep_alive)

    def _idle_look(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _unset_keepalive_if_required(self) -> None:
        """Mark the connection as busy; the timer keeps running and checks this when it fires."""
        self._idle_until = None

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for too long."""
        self.timeout_keep_alive_task = None
        if self._idle_until is None:
            return
        left = self._idle_until - self.loop.time()
        if left > 0:
            self._idle_look(left)
        elif not self.transport.is_closing():
            self.transport.close()
