"""Keeps open pages current: renders `main` again when something has changed, as events.

All open pages together may use a small share of a core, and each view gets an equal part of it: the
more there are, and the longer one takes to render, the less often it is rendered. Pages that look
the same are one view, which is rendered once.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from moorage.core.clock import SECOND
from moorage.faces.dashboard.metering import Metered
from moorage.service.app import Service

EVENTS = "text/event-stream"

END_OF_LINE = re.compile(r"\r\n|\r|\n")
"""Source: HTML Living Standard, \"Parsing an event stream\"."""

BEAT_SECONDS = 15.0
"""How often an unchanged page sends a sign of life, and checks that its session still exists."""

INTERVAL_SECONDS = 1.0
"""The least time between two renderings of a page."""

INTERVAL_SECONDS_MAX = 30.0

SHARE_MAX = 0.05
"""The share of a core that all renderings may use."""


class View(NamedTuple):
    """What a rendered page depends on, besides the state of the service: address and reader."""

    path: str
    query: tuple[tuple[str, str], ...]
    reader: tuple[object, ...]


@dataclass(slots=True)
class _Rendered:
    revision: tuple[int, int]
    at: float
    rendering: Metered[str]
    text: asyncio.Future[str]


class Live:
    """The open pages of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._views: dict[View, int] = {}
        self._rendered: dict[View, _Rendered] = {}

    def interval(self, view: View) -> float:
        """Return the seconds between two renderings of a view at present."""
        last = self._rendered.get(view)
        seconds = 0.0 if last is None else last.rendering.seconds
        wanted = len(self._views) * seconds / SHARE_MAX
        return min(INTERVAL_SECONDS_MAX, max(INTERVAL_SECONDS, wanted))

    async def events(
        self,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the service stops or the session ends.

        `main` has the page's content, and comes first; `signed-out` is the last one.
        """
        self._views[view] = self._views.get(view, 0) + 1
        try:
            shown = None
            while not self._service.watch.closed:
                if not await signed_in():
                    yield b"event: signed-out\ndata:\n\n"
                    return
                ring = self._service.feed.bell.listen()
                begun = asyncio.get_running_loop().time()
                text = await self._current(view, render)
                yield b": beat\n\n" if text == shown else _event("main", text, self._time())
                shown = text
                await self._rest(view, ring, begun)
        finally:
            self._views[view] -= 1
            if not self._views[view]:
                del self._views[view]
                self._rendered.pop(view, None)

    def _time(self) -> str:
        """Return the service's time, by which the browser computes ages."""
        return datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC).isoformat()

    async def _rest(self, view: View, ring: asyncio.Event, begun: float) -> None:
        """Wait for a change or a beat, and at least for the interval."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await ring.wait()
        except TimeoutError:
            return
        await asyncio.sleep(max(0.0, begun + self.interval(view) - loop.time()))

    async def _current(self, view: View, render: Callable[[], Awaitable[str]]) -> str:
        """Return the page; one that another reader of the same view has just seen serves both."""
        now = asyncio.get_running_loop().time()
        revision = (self._service.index.epoch, self._service.index.revision)
        last = self._rendered.get(view)
        if last is not None and last.revision == revision and now - last.at < BEAT_SECONDS:
            return await asyncio.shield(last.text)
        rendering = Metered(render())
        task = asyncio.ensure_future(rendering.run())
        self._rendered[view] = _Rendered(revision, now, rendering, task)
        try:
            return await asyncio.shield(task)
        except Exception:
            self._rendered.pop(view, None)
            raise


def _event(name: str, text: str, identifier: str) -> bytes:
    # Not splitlines: it knows more ends of lines than the format does.
    lines = "\n".join(f"data: {line}" for line in END_OF_LINE.split(text))
    return f"event: {name}\nid: {identifier}\n{lines}\n\n".encode()
