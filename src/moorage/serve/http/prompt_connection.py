"""A connection that answers some requests from memory at once, without a task for each.

Every agent sends a sign of life every few seconds, so a large fleet sends thousands per second.
Most of their time was that of tasks, of the layers in between, and of parsing the same bytes again.
Source: decision 0032.
"""

import asyncio
from hashlib import sha256
from typing import Any

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

    drains = False
    """Set in the class when its listener stops: each connection ends with its next answer."""
    prompt: Prompt | None = None
    known: KnownRequests
    """Shared by the connections of one listener: they have the same limits and hosts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fresh: asyncio.Task[None] | None = None  # a handler that cannot have started yet
        self._parsing = False
        self._postponed: Cycle | None = None  # without a task yet
        self._incomplete = False  # the parser has read a part of a request
        self._begun = 0  # requests that began in this packet
        self._answered_by: PromptAnswer | None = None  # what answered the last of them, if at once
        self._prompted = False  # a request of this connection is remembered in `known`
        self._proxied = False  # by a trusted proxy, whose headers say who the client is

    def _remember(self, data: bytes, starts_message: bool) -> None:
        """Remember a packet of which a request was answered at once, if it is exactly that one."""
        answer, self._answered_by = self._answered_by, None
        if answer is None or not starts_message or self._incomplete or self._proxied:
            return
        if self._begun == 1:
            self.known.add(data, answer)
            self._prompted = True

    def _task_begin(self, cycle: Cycle) -> None:
        """Create the task of a request."""
        self._fresh = task = self.loop.create_task(self.app(cycle.scope, cycle.receive, cycle.send))
        self.tasks.add(task)
        task.add_done_callback(cycle.ended)

    def _postponed_begin(self) -> None:
        """Create the task of a request that `prompt` has not answered."""
        if self._postponed is not None:
            cycle, self._postponed = self._postponed, None
            self._task_begin(cycle)

    def _answer_at_once(self, cycle: Cycle) -> bool:
        """Answer a complete request; False: it is not answered."""
        if self.prompt is None or not 0 < len(cycle.body) <= PROMPT_BYTES_MAX:
            return False
        if self.flow.write_paused or self.transport.is_closing():
            return False
        scope: Scope = cycle.scope
        answer = self.prompt(scope, bytes(cycle.body))
        found = None if answer is None else answer(scope["scheme"], client_of(scope))
        if found is None or not cycle.answer(*found):
            return False
        self._answered_by = answer
        return True

    def _answer_known(self, data: bytes) -> bool:
        """Answer a request that was answered at once before, without parsing it; False: parse it.

        Only for a connection that waits for the first byte of its next request.
        """
        if self._incomplete or self._proxied or self.drains:
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
