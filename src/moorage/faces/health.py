"""Liveness, readiness and metrics, for supervisors and Prometheus; no token is needed."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing

from moorage.core.errors import Error
from moorage.faces.long_answers import SENT_BYTES, WHOLE_BYTES_MAX, LongAnswer, long_send
from moorage.faces.web import Headers, Receive, Scope, Send, answer_send
from moorage.service.unsent_memory import UnsentMemory

HEALTH = ("healthz", "readyz")
"""The paths that a supervisor needs, also of a server that is full."""

PATHS = (*HEALTH, "metrics")
METHODS = ("GET", "HEAD", "OPTIONS")
"""Load balancers use any of these; HAProxy's `option httpchk` uses OPTIONS."""


class HealthFace:
    """Answers `/healthz`, `/readyz` and `/metrics`."""

    def __init__(
        self,
        readiness: Callable[[], Awaitable[str | None]],
        metrics: Callable[[], Awaitable[tuple[Sequence[bytes], str]]],
        unsent: UnsentMemory,
        turn: Callable[[], Awaitable[None]],
        remark: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Create the face.

        Args:
            readiness: returns the reason why requests should go elsewhere; None if ready.
            metrics: returns the parts of the metrics' text and its content type.
            unsent: the memory budget of long answers.
            turn: waits for a turn to send a part of a long answer.
            remark: returns what else is to be said of a server that is ready.
        """
        self._readiness = readiness
        self._metrics = metrics
        self._remark = remark
        self._unsent = unsent
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        kind = "text/plain; charset=utf-8"
        status, body = 200, b"ok\n"
        if scope["path"] not in {f"/{path}" for path in PATHS}:
            status, body = 404, b"not found\n"
        elif scope["method"] not in METHODS:
            status, body = 405, b"only GET\n"
        elif scope["path"] == "/readyz":
            reason = await self._readiness()
            remark = self._remark()
            if reason is not None:
                status, body = 503, f"{reason}\n".encode()
            elif remark is not None:
                body = f"ok: {remark}\n".encode()
        elif scope["path"] == "/metrics":
            parts, kind = await self._metrics()
            if sum(map(len, parts)) > WHOLE_BYTES_MAX and scope["method"] == "GET":
                await self._long_send(parts, kind, scope, receive, send)
                return
            body = b"".join(parts)
        headers = _headers(kind, len(body))
        if status == 405:
            headers.append((b"allow", ", ".join(METHODS).encode("ascii")))
        await answer_send(scope, send, status, headers, body)

    async def _long_send(
        self, parts: Sequence[bytes], kind: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        size = sum(map(len, parts))
        try:
            answer = LongAnswer(deque(), _slices(parts), size, self._unsent)
        except Error as error:
            body = f"{error}\n".encode()
            plain = _headers("text/plain; charset=utf-8", len(body))
            await answer_send(scope, send, 503, plain, body)
            return
        start = {"type": "http.response.start", "status": 200, "headers": _headers(kind, size)}
        with closing(answer):
            await long_send(start, answer, scope, receive, send, self._turn)


def _headers(kind: str, length: int) -> Headers:
    return [
        (b"content-type", kind.encode("ascii")),
        (b"content-length", str(length).encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]


def _slices(parts: Sequence[bytes]) -> Iterator[bytes]:
    for part in parts:
        for first in range(0, len(part), SENT_BYTES):
            yield part[first : first + SENT_BYTES]
