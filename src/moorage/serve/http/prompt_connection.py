"""A connection that answers some requests from memory at once, without a task for each.

Every agent sends a sign of life every few seconds, so a large fleet sends thousands per second.
Most of their time was that of tasks and of the layers in between. Source: decision 0032.
"""

import asyncio
from typing import Any, cast

from uvicorn._types import ASGI3Application

from moorage.faces.web import Prompt, Scope
from moorage.serve.http.budgeted_connection import HoldingProtocol
from moorage.serve.http.uvicorn_connection import Cycle

PROMPT_BYTES_MAX = 4_096
"""The longest body of a request that is answered at once."""


class PromptProtocol(HoldingProtocol):
    """One connection. `prompt` may answer a request at the end of its packet."""

    prompt: Prompt | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fresh: asyncio.Task[None] | None = None  # a handler that cannot have started yet
        self._parsing = False
        self._postponed: tuple[Cycle, ASGI3Application] | None = None  # without a task yet

    def _parse(self, data: bytes) -> None:
        """Parse a packet; no task can run meanwhile. Raises what the parser raises."""
        self._parsing = True
        try:
            self.parser.feed_data(data)
        finally:
            self._parsing = False
            self._postponed_begin()

    def _begin(self, cycle: Cycle, app: ASGI3Application) -> None:
        """Create the task of a request, unless `prompt` may answer it within this packet."""
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

    def on_message_complete(self) -> None:
        """Finish a request, and answer it if that is possible at once."""
        super().on_message_complete()
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
        answer = self.prompt(cast(Scope, cycle.scope), bytes(cycle.body))
        return answer is not None and cycle.send_whole(*answer)
