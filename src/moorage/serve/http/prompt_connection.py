"""A connection that answers some requests from memory at once, without a task for each.

Every agent sends a sign of life every few seconds, so a large fleet sends thousands per second.
Most of their time was that of tasks, of the layers in between, and of parsing the same bytes again.
Source: decision 0032.
"""

import asyncio
from hashlib import sha256
from typing import Any

from uvicorn._types import ASGI3Application

from moorage.faces.addresses import client_of
from moorage.faces.web import Prompt, PromptAnswer, Scope
from moorage.serve.http.delivery import DeliveringProtocol
from moorage.serve.http.uvicorn_connection import Cycle, response_bytes

PROMPT_BYTES_MAX = 4_096
"""The longest body of a request that is answered at once."""

KNOWN_BYTES_MAX = 1_024
"""The longest request that is remembered: three times those of an agent."""

KNOWN_MAX = 32_768
"""Remembered requests: two for each machine of a large fleet, about 2 KiB of memory each."""


class KnownRequests:
    """Handlers of requests that were answered from memory before, by the SHA-256 of their bytes.

    Beyond the limit, the first remembered is dropped.
    """

    def __init__(self, most: int = KNOWN_MAX) -> None:
        self._most = most
        self._answers: dict[bytes, PromptAnswer] = {}

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, request: bytes) -> PromptAnswer | None:
        """Return what may answer a request; None: it is not remembered."""
        if len(request) > KNOWN_BYTES_MAX:
            return None
        return self._answers.get(sha256(request).digest())

    def add(self, request: bytes, answer: PromptAnswer) -> None:
        """Remember what answers a request, unless that is too long."""
        if len(request) > KNOWN_BYTES_MAX:
            return
        digest = sha256(request).digest()
        if len(self._answers) >= self._most and digest not in self._answers:
            del self._answers[next(iter(self._answers))]
        self._answers[digest] = answer


class PromptProtocol(DeliveringProtocol):
    """One connection. `prompt` may answer a request at the end of its packet."""

    prompt: Prompt | None = None
    known: KnownRequests
    """Shared by the connections of one listener: they have the same limits and hosts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fresh: asyncio.Task[None] | None = None  # a handler that cannot have started yet
        self._parsing = False
        self._postponed: tuple[Cycle, ASGI3Application] | None = None  # without a task yet
        self._incomplete = False  # the parser has read a part of a request
        self._begun = 0  # requests that began in this packet
        self._answered_by: PromptAnswer | None = None  # what answered the last of them, if at once
        self._proxied = False  # by a trusted proxy, whose headers say who the client is

    def _parse(self, data: bytes) -> None:
        """Parse a packet; no task can run meanwhile. Raises what the parser raises."""
        starts = not self._incomplete
        self._begun, self._answered_by, self._parsing = 0, None, True
        try:
            self.parser.feed_data(data)
        finally:
            self._parsing = False
            self._postponed_begin()
        if starts and not self._proxied:
            self._remember(data)

    def _remember(self, data: bytes) -> None:
        """Remember a packet that is exactly one request, if it was answered at once."""
        if self._answered_by is not None and self._begun == 1 and not self._incomplete:
            self.known.add(data, self._answered_by)

    def _begin(self, cycle: Cycle, app: ASGI3Application) -> None:
        """Create the task of a request, unless `prompt` may answer it within this packet."""
        self._unset_keepalive_if_required()  # an earlier request of this packet may be answered
        self._running = cycle
        self._postponed = (cycle, app)
        if self.prompt is None or not self._parsing or not cycle.keep_alive:
            self._postponed_begin()

    def _postponed_begin(self) -> None:
        if self._postponed is None:
            return
        (cycle, app), self._postponed = self._postponed, None
        self._fresh = self.loop.create_task(cycle.run_asgi(app))
        self._fresh.add_done_callback(self.tasks.discard)
        self.tasks.add(self._fresh)

    def on_message_begin(self) -> None:
        """Start a request."""
        if self._watches:
            self._further()
        super().on_message_begin()
        self._incomplete = True
        self._begun += 1

    def on_message_complete(self) -> None:
        """Finish a request, and answer it if that is possible at once."""
        super().on_message_complete()
        self._incomplete = False
        if self._postponed is not None:
            if self._answer_at_once(self._postponed[0]):
                self._postponed = None
            else:
                self._postponed_begin()

    def _answer_at_once(self, cycle: Cycle) -> bool:
        """Answer a complete request; False: it is not answered."""
        if self.prompt is None or not 0 < len(cycle.body) <= PROMPT_BYTES_MAX:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        scope: Scope = cycle.scope  # type: ignore[assignment] # with what is not of ASGI
        answer = self.prompt(scope, bytes(cycle.body))
        found = None if answer is None else answer(scope["scheme"], client_of(scope))
        if found is None or not cycle.send_whole(*found):
            return False
        self._answered_by = answer
        return True

    def _answer_known(self, data: bytes) -> bool:
        """Answer a request that was answered at once before, without parsing it; False: parse it.

        Only for a connection that waits for the first byte of its next request.
        """
        if self._incomplete or self._proxied:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        answer = self.known.get(data)
        if answer is None:
            return False
        found = answer(self.scheme or "http", self.client[0] if self.client else "")
        if found is None:
            return False
        whole = response_bytes(*found, self.server_state.default_headers, keep_alive=True)
        if whole is None:
            return False
        self.transport.write(whole)
        self.on_response_complete()
        return True
