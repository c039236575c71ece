"""The guarded HTTP connection: adds the checks that uvicorn and httptools lack.

* Limits: bytes and number of headers, time for headers and for bodies, number of pipelined requests
  that wait. Connections are counted where they are accepted, see `listening`.
* Refused with a reason, then closed: requests that two parsers could read differently (several or
  misplaced lengths, transfer encodings other than `chunked`, folded lines), and unknown or missing
  hosts. Nothing after such a request is ever read as a request.
* Trailers after a chunked body are dropped; they never become headers.
* A request whose content-length consists only of letters (`hi mom`) reaches the application without
  a body, so that a face can answer in its own format; then the connection is closed.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.server import ServerState

from moorage.faces.web import ABORT, DELIVERY, WHOLE, Prompt, Scope
from moorage.serve.http.connection_limits import (
    HEALTH_SECONDS_MAX,
    WAITING_BODY_MAX,
    WAITING_MAX,
    Bounds,
)
from moorage.serve.http.hosts import Hosts
from moorage.serve.http.memory_budget import REQUEST_BYTES, MemoryBudgets
from moorage.serve.http.prompt_connection import KnownRequests, PromptProtocol
from moorage.serve.http.proxies import Proxies
from moorage.serve.http.refusals import refusal_bytes
from moorage.serve.http.uvicorn_connection import Cycle

LENGTH_UNREADABLE = "moorage.length_unreadable"
"""Set in the scope of a request whose content-length is not a number."""

NOT_SERVED = "This host name is not served here; the setting allowed_hosts can add it."

_GUARDED = frozenset({b"expect", b"transfer-encoding"})

logger = logging.getLogger("moorage.http")


class _Place(Protocol):
    """The count of a connection, which ends with it."""

    def leave(self) -> None:
        """Stop counting the connection."""
        ...


class _RefusedError(Exception):
    """Raised in a parser callback to stop the parser at once."""


class GuardedProtocol(PromptProtocol):
    """One connection. `protocol_for` makes a subclass with its class attributes."""

    bounds: Bounds
    hosts: Hosts
    proxies: Proxies
    is_health: Callable[[Scope], bool]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._refusal: tuple[int, str] | None = None
        self._in_head = False
        self._in_body = False
        self._progress = False  # the last packet completed a head or contained some body
        self._unproductive = 0  # bytes since then
        self._head = b""  # an incomplete head, kept only if it began at the start of a packet
        self._head_bytes = 0
        self._hosts_named = 0
        self._deadline: asyncio.TimerHandle | None = None
        self.place: _Place | None = None
        self.full: str | None = None  # why only the health may be asked for, and only once
        self.begun = False  # the connection is open; with TLS, after its handshake

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Wait for a request, at most `header_seconds_max`."""
        super().connection_made(transport)
        self.begun = True
        self._proxied = self.client is not None and self.proxies.trusts(self.client[0])
        seconds = self.bounds.header_seconds_max
        self._deadline_set(seconds if self.full is None else min(seconds, HEALTH_SECONDS_MAX))

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up the connection and notify the running request."""
        self._deadline_clear()
        if self.place is not None:
            self.place.leave()
        super().connection_lost(exc)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        # Break the reference cycle of request and connection, which only the collector would free.
        self.pipeline.clear()
        self.cycle = self.scope = None  # type: ignore[assignment] # as before the first request
        self._running = self._fresh = None

    def data_received(self, data: bytes) -> None:
        """Parse the received bytes, within the limits; no task can run meanwhile."""
        if self._deaf:
            return
        if self._prompted and self._idle_until is not None and self._answer_known(data):
            self._unproductive = 0
            return
        starts_message = not self._incomplete
        self._idle_until = None
        self._fresh = None
        self._progress, self._parsing, self._begun = False, True, 0
        try:
            try:
                self.parser.feed_data(data)
            finally:
                self._parsing = False
                if self._postponed is not None:
                    self._postponed_begin()
        except httptools.HttpParserError as error:
            self._parse_failed(data, starts_message, error)
            return
        except httptools.HttpParserUpgrade:
            # An offer to upgrade may be ignored, but the following bytes could be either protocol.
            self._last_request()
        else:
            if self._answered_by is not None:
                self._remember(data, starts_message)
        running = self._running
        if running is None or running.response_complete or self._incomplete or not self._progress:
            self._account(data, starts_message)
        else:
            self._unproductive = 0
            if self._head_held:
                self._hold_head(0)

    def _account(self, data: bytes, starts_message: bool) -> None:
        """Limit the bytes and the time of an unfinished message."""
        if self._in_head:
            self._head = data if starts_message else self._head and self._head + data
        self._unproductive = 0 if self._progress else self._unproductive + len(data)
        if self._in_head or self._head_held:
            self._hold_head(0 if self._deaf or not self._in_head else self._unproductive)
        if self._unproductive > self.bounds.header_bytes_max:
            self._refuse(*self._headers_too_large())
        elif self._deadline is None and not self._deaf:
            if self._in_head:
                self._deadline_set(self.bounds.header_seconds_max)
            elif self._in_body:
                self._deadline_set(self.bounds.body_seconds_max)
            elif self._running is not None and self._running.response_complete:
                self._idle_again()

    def _idle_again(self) -> None:
        """Wait for the next request, after one that was answered before it was complete."""
        if self._idle_until is None and not self.transport.is_closing():
            self._idle_begin()

    # What runs for every request, so each callback stands here once

    def on_message_begin(self) -> None:
        """Start a request."""
        if self._watches:
            self._further()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_head = self._incomplete = True
        self._head_bytes = self._hosts_named = 0
        self._begun += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add one header; check those that decide where a request ends."""
        if not self._in_head:
            return  # a trailer
        name = name.lower()
        self._head_bytes += len(name) + len(value) + 4
        self.headers.append((name, value))
        if len(self.headers) > self.bounds.header_count_max:
            self._stop(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"More than {self.bounds.header_count_max} headers, "
                "the limit set by header_count_max.",
            )
        if name == b"host":
            self._hosts_named += 1
            if not self.hosts.allows(value):
                self._stop(HTTPStatus.MISDIRECTED_REQUEST, NOT_SERVED)
        elif name in _GUARDED:
            self._guard(name, value)

    def _guard(self, name: bytes, value: bytes) -> None:
        if name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"
        elif value.strip().lower() != b"chunked" or self.parser.get_http_version() != "1.1":
            self._stop(HTTPStatus.BAD_REQUEST, "Only Transfer-Encoding: chunked is supported.")

    def on_headers_complete(self) -> None:
        """Check the complete head and pass the request to the application."""
        if self._head_bytes + len(self.url) > self.bounds.header_bytes_max:
            self._stop(*self._headers_too_large())
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._stop(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "Use HTTP/1.1.")
        if self._hosts_named > 1 or (self._hosts_named == 0 and version == "1.1"):
            self._stop(HTTPStatus.BAD_REQUEST, "A request must have exactly one Host header.")
        if not self.url.startswith(b"/"):
            self._guard_target()
        if len(self.pipeline) >= WAITING_MAX:
            self._stop(
                HTTPStatus.BAD_REQUEST,
                f"More than {WAITING_MAX} requests wait on this connection. "
                "Wait for a response before you send more.",
            )
        if self.full is not None:
            self._guard_full(self.full, version)
        if self.parser.should_upgrade() and self._has_body():
            self._stop(HTTPStatus.BAD_REQUEST, "A request with a body cannot change the protocol.")
        if self._deadline is not None:
            self._deadline_clear()
        before: Cycle | None = self.cycle
        stays = version != "1.0" and not (self.drains or self.full)
        cycle = self.cycle = Cycle(
            self,
            self._scope(version),
            # HTTP/1.0 has no interim answers: its client would take one for the answer.
            expects=self.expect_100_continue and version != "1.0",
            keep_alive=stays and self.parser.should_keep_alive(),
        )
        self._in_head, self._head = False, b""
        self._in_body = self._progress = True
        if before is None or before.response_complete:
            self._begin(cycle)
        else:
            # Keep reading: this is the only way to notice that the client closes the connection.
            self.pipeline.appendleft((cycle, self.app))
            self._wait_in_line()

    def _scope(self, version: str) -> Scope:
        """Return the scope of the request whose head is complete."""
        url = httptools.parse_url(self.url)
        path: str = url.path.decode("ascii")
        scope = self.scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": self.headers,
            "state": self.app_state.copy(),
            "method": self.parser.get_method().decode("ascii"),
            "path": self.root_path + (unquote(path) if "%" in path else path),
            "raw_path": self.root_path.encode("ascii") + url.path,
            "query_string": url.query or b"",
            ABORT: self._reset,
            DELIVERY: self._watch_delivery,
            WHOLE: True,
        }
        if self._proxied:
            self.proxies.believe(scope)
        return scope

    def _begin(self, cycle: Cycle) -> None:
        """Create the task of a request, unless `prompt` may answer it within this packet."""
        self._idle_until = None  # an earlier request of this packet may be answered
        self._running = cycle
        if self.prompt is None or not self._parsing or not cycle.keep_alive:
            self._task_begin(cycle)
        else:
            self._postponed = cycle

    def _wait_in_line(self) -> None:
        """Reserve memory for the request, which must wait for earlier ones; most need not."""
        size = REQUEST_BYTES + self._head_bytes + len(self.url)
        if not self._hold(self.cycle, self.held.waiting, size):
            self._stop(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Too many requests wait on connections; try again later.",
            )

    def _guard_target(self) -> None:
        """Check an absolute target: it overrides the Host header (RFC 9112, 3.2.2)."""
        if self.url == b"*":
            return
        target = httptools.parse_url(self.url)
        if not target.path or not self.hosts.allows(target.host or b""):
            self._stop(HTTPStatus.MISDIRECTED_REQUEST, NOT_SERVED)

    def _guard_full(self, reason: str, version: str) -> None:
        """Check that a connection beyond the limits asks for the health, only once, by a head."""
        is_more = self._running is not None or self.url == b"*" or self._has_body()
        if is_more or not self.is_health(self._scope(version)):
            self._stop(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def give_way(self) -> None:
        """End the connection, which is beyond the limits, for another one."""
        is_silent = self._running is None and not self.transport.is_closing()
        if self.full is not None and is_silent and self.scheme == "http":
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, self.full)
        else:
            self._reset()

    def _has_body(self) -> bool:
        return any(name in (CONTENT_LENGTH, b"transfer-encoding") for name, _ in self.headers)

    def on_body(self, body: bytes) -> None:
        """Add a piece of the body."""
        self._progress = True
        request = self.cycle
        request.received += len(body)
        if request.received > WAITING_BODY_MAX or self.pipeline:
            self._make_room(request, len(body))
        if request.response_complete:
            return
        request.body += body
        if len(request.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        request.has_news = True
        if request.wakes is not None:
            request.wakes.set()

    def _make_room(self, request: Cycle, size: int) -> None:
        """Reserve memory for a piece of a body that is long or whose request waits."""
        waiting = self._is_waiting()
        if waiting and request.received > WAITING_BODY_MAX:
            self._stop(
                HTTPStatus.BAD_REQUEST,
                f"The body of a request that waits on this connection is longer than "
                f"{WAITING_BODY_MAX} bytes. Wait for a response before you send it.",
            )
        room = self.held.waiting if waiting else self.held.bodies
        if not request.response_complete and not self._hold(request, room, size):
            self._stop(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The server is receiving too many long bodies; try again later.",
            )

    def _is_waiting(self) -> bool:
        """Return whether the request that is being received waits for earlier ones."""
        return bool(self.pipeline) and self.pipeline[0][0] is self.cycle

    def on_message_complete(self) -> None:
        """Finish a request, and answer it if that is possible at once."""
        if self._deadline is not None:
            self._deadline_clear()
        self._in_body = self._incomplete = False
        self._progress = True
        request = self.cycle
        if not request.response_complete:
            request.more_body = False
            request.has_news = True
            if request.wakes is not None:
                request.wakes.set()
        if self._postponed is not None:
            if self._answer_at_once(self._postponed):
                self._postponed = None
            else:
                self._postponed_begin()

    def on_response_complete(self) -> None:
        """Continue with the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self._watches:
            self._answer_written()
        running = self._running
        if running is not None and running.held_in is not None:
            self._release(running)
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            following = self.pipeline.pop()[0]
            if following.held_in is not None:
                self._release(following)  # it no longer waits
            self._begin(following)
        else:
            self._idle_begin()

    # Refusing

    def _stop(self, status: int, reason: str) -> None:
        self._refusal = (status, reason)
        raise _RefusedError

    def _headers_too_large(self) -> tuple[int, str]:
        return (
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"The address and headers are longer than {self.bounds.header_bytes_max} bytes, "
            "the limit set by header_bytes_max.",
        )

    def _parse_failed(self, data: bytes, starts_message: bool, error: Exception) -> None:
        if self._refusal is None and self._in_head and str(error).endswith("in Content-Length"):
            head = data if starts_message else self._head and self._head + data
            if self._offer_unreadable_length(head):
                return
        status, reason = self._refusal or (HTTPStatus.BAD_REQUEST, f"Invalid HTTP request: {error}")
        self._refuse(status, reason)

    def _refuse(self, status: int, reason: str) -> None:
        """Refuse and close; if earlier requests are unanswered, only close after their answers."""
        logger.info("refused %s: %d %s", self.client, status, reason)
        self._deadline_clear()
        self._deaf = True
        unanswered = self._abandon_body() if self._in_body else True
        running = self._running
        if running is None or running.response_complete or running.disconnected:
            if unanswered:
                self.transport.write(refusal_bytes(status, reason))
            self.transport.close()
        elif self.pipeline:
            self.pipeline[0][0].keep_alive = False
        else:
            running.keep_alive = False

    def _abandon_body(self) -> bool:
        """Notify the last request's handler that its body will never be complete.

        Returns:
            Whether an answer may still be sent instead of the handler's.
        """
        self._in_body = False
        if self._is_waiting():
            self._release(self.pipeline.popleft()[0])
            return True
        if self._fresh is not None:
            self._fresh.cancel()
        if self.cycle.response_complete:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return not self.cycle.response_started

    def _last_request(self) -> None:
        """Read nothing more from this connection and close it after the last answer."""
        self._deaf = True
        self._deadline_clear()
        self.cycle.keep_alive = False

    # A content-length that is not a number

    def _offer_unreadable_length(self, head: bytes) -> bool:
        """Accept a request whose only error is a content-length of letters; False: refuse it."""
        repaired = head_without_length(head)
        if repaired is None:
            return False
        clean, value = repaired
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(clean)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return False
        # The handler's task has not started yet, so it sees these changes of the scope.
        self.headers.append((CONTENT_LENGTH, value))
        self.scope[LENGTH_UNREADABLE] = True
        self._last_request()
        return True

    # Time

    def _deadline_set(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._deadline_passed, seconds)

    def _deadline_clear(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _deadline_passed(self, seconds: float) -> None:
        self._deadline = self._fresh = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # the server paused reading, so the client is not to blame
            self._deadline_set(seconds)
        elif self.full is not None and self._running is None:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, self.full)
        elif self._in_head or self._in_body:
            setting = "header_seconds_max" if self._in_head else "body_seconds_max"
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The request took longer than {seconds:g} seconds to arrive, "
                f"the limit set by {setting}.",
            )
        else:
            self.transport.close()


def protocol_for(
    bounds: Bounds,
    hosts: Hosts,
    proxies: Proxies,
    held: MemoryBudgets,
    prompt: Prompt | None = None,
    is_health: Callable[[Scope], bool] = lambda _: False,
) -> type[GuardedProtocol]:
    """Return the protocol class with these limits, for uvicorn."""
    members: dict[str, Any] = {"bounds": bounds, "hosts": hosts, "proxies": proxies, "held": held}
    members["known"] = KnownRequests()
    members["is_health"] = staticmethod(is_health)
    if prompt is not None:
        members["prompt"] = staticmethod(prompt)
    return type("Protocol", (GuardedProtocol,), members)


CONTENT_LENGTH = b"content-length"

_LETTERS = re.compile(rb"[A-Za-z]+(?: [A-Za-z]+)*")


def head_without_length(head: bytes) -> tuple[bytes, bytes] | None:
    """Remove a content-length that consists only of letters from a request's head.

    Args:
        head: bytes received since the beginning of the request.

    Returns:
        The head without that line, and the line's value; None if the head is incomplete, if there
        is not exactly one such header, or if other headers affect the length.
    """
    whole, end, _ = head.partition(b"\r\n\r\n")
    if not end:
        return None
    kept, values = [], []
    for line in whole.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == CONTENT_LENGTH:
            values.append(value.strip(b" \t"))
        elif CONTENT_LENGTH in line.lower() or name.strip().lower() in (
            b"transfer-encoding",
            b"upgrade",
        ):
            return None
        else:
            kept.append(line)
    if len(values) != 1 or _LETTERS.fullmatch(values[0]) is None:
        return None
    return b"\r\n".join(kept) + b"\r\n\r\n", values[0]
