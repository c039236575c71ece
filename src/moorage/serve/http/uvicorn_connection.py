"""uvicorn's connection, with less work per request.

* A complete answer is one write, and its head is checked once as a whole.
* A connection has one idle timer for its whole life, not one per request.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Generator
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGI3Application, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from moorage.faces.web import Message
from moorage.serve.http.memory_budget import ByteBudget

_LINE_END = b"\r\n"
_FRAMING = frozenset({b"connection", b"transfer-encoding"})


class _Done(Awaitable[None]):
    """Nothing to wait for; a coroutine for each part of each answer would take far longer."""

    def __await__(self) -> Generator[Any, None, None]:
        return iter(())  # type: ignore[return-value] # it ends at once, so nothing is ever sent


_DONE = _Done()


class Cycle(RequestResponseCycle):
    """One request and its answer."""

    _held: dict[str, Any] | None = None
    """The start of an answer with a content-length: it waits for the body."""

    _to_end = False
    """The answer ends with the connection: HTTP/1.0 has no chunks."""

    received = 0
    """Bytes of the body that have arrived."""

    held_in: ByteBudget | None = None
    """The budget in which the request has reserved memory; None: it has none."""

    held_bytes = 0
    """The bytes that it has reserved."""

    lingers = False
    """Whether its connection stays open after the answer, although that says that it ends."""

    def send(self, part: dict[str, Any]) -> Awaitable[None]:  # type: ignore[override] # it is only awaited
        """Send a part of the answer."""
        held = self._held
        if held is not None:
            self._held = None
            if self._answer(held, part):
                return _DONE
            self.response_started = False
            return self._send_both(held, part)
        if not self.response_started and _may_wait(part):
            self._held = part
            self.response_started = True
            return _DONE
        return self._send_alone(part)

    def send_whole(self, start: Message, part: Message) -> bool:
        """Send a complete answer with a content-length; False: nothing was sent."""
        return self._answer(start, part)

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

    def _answer(self, start: Message, part: Message) -> bool:
        """Send a complete answer at once; return False if it is incomplete or a special case."""
        if (
            part["type"] != "http.response.body"
            or part.get("more_body")
            or self.flow.write_paused
            or self.disconnected
            or self.scope["method"] == "HEAD"
        ):
            return False
        whole = response_bytes(start, part, self.default_headers, keep_alive=self.keep_alive)
        if whole is None:
            return False
        self.waiting_for_100_continue = False
        self.transport.write(whole)
        self.response_complete = True
        self.message_event.set()
        if not (self.keep_alive or self.lingers):
            self.transport.close()
        self.on_response()
        return True


def response_bytes(
    start: Message, part: Message, defaults: list[tuple[bytes, bytes]], *, keep_alive: bool
) -> bytes | None:
    """Return a complete response as it is sent; None: it is a special case.

    Args:
        start: the ASGI message with the status and the headers.
        part: the ASGI message with all of the body.
        defaults: the headers of every response.
        keep_alive: whether the connection stays open.
    """
    body: bytes = part.get("body", b"")
    pieces = [STATUS_LINE[start["status"]], _default_lines(tuple(defaults))]
    for name, value in start["headers"]:
        if name in _FRAMING or (name == b"content-length" and int(value) != len(body)):
            return None
        pieces += (name, b": ", value, _LINE_END)
    pieces.append(_LINE_END if keep_alive else b"connection: close\r\n\r\n")
    head = b"".join(pieces)
    lines = len(defaults) + len(start["headers"]) + (2 if keep_alive else 3)
    return head + body if _is_clean(head, lines) else None


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


def _is_clean(head: bytes, lines: int) -> bool:
    """Return whether no header value adds a line or a NUL to the head."""
    return head.count(b"\n") == lines == head.count(b"\r") and b"\0" not in head


class LeanProtocol(HttpToolsProtocol):
    """One connection."""

    scope: dict[str, Any]  # type: ignore[assignment] # with what is not of ASGI
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

    def on_headers_complete(self) -> None:
        """Pass the request to the application; no upgrade of the protocol is supported."""
        self._request_begin(self.parser.get_http_version())

    def _request_begin(self, version: str) -> None:
        """Pass a request of this version of HTTP to the application."""
        parser, scope = self.parser, self.scope
        if version != "1.1":
            scope["http_version"] = version
        url = httptools.parse_url(self.url)
        path: str = url.path.decode("ascii")
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"] = self.root_path + (unquote(path) if "%" in path else path)
        scope["raw_path"] = self.root_path.encode("ascii") + url.path
        scope["query_string"] = url.query or b""
        before: Cycle | None = self.cycle
        self.cycle = Cycle(
            scope=self.scope,  # type: ignore[arg-type] # as above
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            # HTTP/1.0 has no interim answers: its client would take one for the answer.
            expect_100_continue=self.expect_100_continue and version != "1.0",
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            # Keep reading: this is the only way to notice that the client closes the connection.
            self.pipeline.appendleft((self.cycle, self.app))

    def on_response_complete(self) -> None:
        """Continue with the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._unset_keepalive_if_required()
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._idle_begin()

    def _idle_begin(self) -> None:
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
