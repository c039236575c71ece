"""Liveness, readiness and metrics, for supervisors and Prometheus; no token is needed."""

from collections.abc import Awaitable, Callable

from moorage.faces.web import Receive, Scope, Send, answer_send

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
        metrics: Callable[[], Awaitable[tuple[bytes, str]]],
        remark: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Create the face.

        Args:
            readiness: returns the reason why requests should go elsewhere; None if ready.
            metrics: returns the metrics' text and its content type.
            remark: returns what else is to be said of a server that is ready.
        """
        self._readiness = readiness
        self._metrics = metrics
        self._remark = remark

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
            body, kind = await self._metrics()
        headers = [
            (b"content-type", kind.encode("ascii")),
            (b"content-length", str(len(body)).encode("ascii")),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
        ]
        if status == 405:
            headers.append((b"allow", ", ".join(METHODS).encode("ascii")))
        await answer_send(scope, send, status, headers, body)
