"""Dispatches requests to the faces by the first segment of the path; one face gets the rest."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus

from moorage.faces.health import HEALTH, METHODS
from moorage.faces.web import (
    ABORT,
    ANSWERED,
    ROUTINE,
    WAITED,
    Headers,
    Prompt,
    PromptAnswer,
    Receive,
    Scope,
    Send,
    answer_send,
)
from moorage.serve.http.protocol import LENGTH_UNREADABLE
from moorage.serve.logs import AccessLog
from moorage.serve.metrics import RequestMetrics
from moorage.serve.mount import Mount

Face = Callable[[Scope, Receive, Send], Awaitable[None]]

PLACEMENT = "placement"


class Application:
    """The ASGI application of the process."""

    def __init__(
        self,
        rest: Face,
        faces: dict[str, Face],
        requests: RequestMetrics,
        access_log: AccessLog | None,
        default: str = PLACEMENT,
        prompts: Mapping[str, Prompt] | None = None,
        mount: Mount | None = None,
        root: Face | None = None,
    ) -> None:
        """Connect the faces.

        Args:
            rest: answers all other paths.
            faces: by the first segment of the paths that they answer.
            requests: counts the requests.
            access_log: logs every request; None: no log.
            default: the name of `rest` in the metrics.
            prompts: by the first segment of the paths that they may answer at once. Their
                answers are never logged.
            mount: the prefix of all addresses; None: only what trusted proxies say.
            root: answers `/` as `rest`, by the same name; None: `rest` does.
        """
        self._root = root or rest
        self._mount = mount or Mount()
        self._prompts = prompts or {}
        self.prompt: Prompt | None = self._prompt if prompts else None
        """Returns what may answer a request from memory; None: nothing ever does."""
        self._rest = rest
        self._default = default
        self._faces = faces
        self._requests = requests
        self._access_log = access_log

    @property
    def has_health(self) -> bool:
        """Whether it answers any health check."""
        return bool(self._faces.keys() & {*HEALTH})

    def is_health(self, scope: Scope) -> bool:
        """Return whether a request, which is not passed on afterwards, is a health check."""
        if self._mount.prefix or scope.get("root_path"):
            self._mount.place(scope)
        name = scope["path"][1:]
        return scope["method"] in METHODS and name in HEALTH and name in self._faces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._mount.prefix or scope.get("root_path"):
            self._mount.place(scope)
        name = scope["path"][1:].partition("/")[0]
        face = self._faces.get(name)
        if face is None:
            name, face = self._default, self._rest if name else self._root
        if name != PLACEMENT and LENGTH_UNREADABLE in scope:
            face = _length_unreadable
        begun = time.perf_counter()
        try:
            await face(scope, receive, send)
        except asyncio.CancelledError:
            # The time to stop is over; usually no client reads. uvicorn would log a traceback.
            cut = scope.get(ABORT)
            if cut is None:
                raise
            cut()
        finally:
            seconds = time.perf_counter() - begun
            status = scope[ANSWERED][0] if ANSWERED in scope else 0
            self._requests.add(name, scope["method"], status, seconds, WAITED in scope)
            logged = ROUTINE not in scope or status != HTTPStatus.OK
            if self._access_log is not None and logged:
                self._access_log.write(scope, status, seconds)

    def _prompt(self, scope: Scope, body: bytes) -> PromptAnswer | None:
        """Return what may answer a request from memory; None: call the application."""
        if self._mount.prefix or scope.get("root_path"):
            self._mount.place(scope)
        name = scope["path"][1:].partition("/")[0]
        prompt = self._prompts.get(name)
        answer = None if prompt is None else prompt(scope, body)
        return None if answer is None else partial(self._counted, answer, name, scope["method"])

    def _counted(
        self, answer: PromptAnswer, face: str, method: str, scheme: str, client: str
    ) -> tuple[int, Headers, bytes] | None:
        """Answer from memory, and count it."""
        begun = time.perf_counter()
        found = answer(scheme, client)
        if found is not None:
            seconds = time.perf_counter() - begun
            self._requests.add(face, method, found[0], seconds, False)
        return found


async def _length_unreadable(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request that `protocol` accepts only for Placement."""
    body = b"content-length must be a number\n"
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
    ]
    await answer_send(scope, send, HTTPStatus.BAD_REQUEST, headers, body)
