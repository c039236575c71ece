"""Keeps open pages current: renders `main` again when something has changed, as events.

All open pages together may use a small share of a core, and each view gets an equal part of it: the
more there are, and the longer one takes to render, the less often it is rendered. Pages that look
the same are one view, which is rendered once.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from moorage.core.clock import SECOND
from moorage.core.errors import Error
from moorage.faces.dashboard.metering import Metered
from moorage.faces.native_api import RefusedError
from moorage.service.app import Service

K = TypeVar("K")

EVENTS = "text/event-stream"

END_OF_LINE = re.compile(r"\r\n|\r|\n")
"""Source: HTML Living Standard, \"Parsing an event stream\"."""

BEAT_SECONDS = 15.0
"""How often an unchanged page sends a sign of life, and checks that its session still exists."""

INTERVAL_SECONDS = 1.0
"""The least time between two renderings of a page."""

SHARE_MAX = 0.05
"""The share of a core that all renderings may use."""

STREAMS_MAX = 500
"""Open pages of one process: each keeps what it shows in memory."""

OF_READER_MAX = 64
"""Open pages of one token or user, whom several people may share. Hidden pages are not open."""

LATER = b"retry: 30000\n\n"
"""What one page too many gets: the browser tries again."""


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

    def serves(self, revision: tuple[int, int], now: float) -> bool:
        """Return whether it is current, and has not failed after its reader had left."""
        failed = self.text.done() and (self.text.cancelled() or self.text.exception() is not None)
        return not failed and self.revision == revision and now - self.at < BEAT_SECONDS


class Live:
    """The open pages of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._views: Counter[View] = Counter()
        self._open: Counter[str] = Counter()
        """How many streams each reader has."""
        self._rendered: dict[View, _Rendered] = {}

    def interval(self, view: View) -> float:
        """Return the seconds between two renderings of a view at present."""
        last = self._rendered.get(view)
        seconds = 0.0 if last is None else last.rendering.seconds
        wanted = len(self._views) * seconds / SHARE_MAX
        return max(INTERVAL_SECONDS, wanted)

    async def events(
        self,
        who: str,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the service stops or the session of a reader ends.

        `main` has the page's content. `failed` says why there is none at present, for example
        because its pool was deleted; it is tried again. `beat` says that nothing has changed, and
        `signed-out` is the last one. If too many pages are open, there is none.
        """
        if self._open[who] >= OF_READER_MAX or self._open.total() >= STREAMS_MAX:
            yield LATER
            return
        self._open[who] += 1
        self._views[view] += 1
        try:
            async with aclosing(self._events(view, render, signed_in)) as events:
                async for event in events:
                    yield event
        finally:
            _discard(self._open, who)
            _discard(self._views, view)
            if view not in self._views:
                self._rendered.pop(view, None)

    async def _events(
        self,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        now = asyncio.get_running_loop().time
        shown, due = None, 0.0
        ring = self._service.feed.bell.listen()
        while not self._service.watch.closed:
            try:
                if not await signed_in():
                    yield self._event("signed-out")
                    return
                text = shown
                if shown is None or now() >= due:
                    ring, begun = self._service.feed.bell.listen(), now()
                    text = await self._current(view, render)
                    due = begun + self.interval(view)
            except (RefusedError, Error) as error:
                shown, due = None, now() + INTERVAL_SECONDS
                yield self._event("failed", error.message)
            else:
                yield self._event("beat") if text == shown else self._event("main", text or "")
                shown = text
            await _rest(ring, due)

    async def signed_out(self) -> AsyncGenerator[bytes, None]:
        """Yield the only event for a reader who is not signed in."""
        yield self._event("signed-out")

    def _event(self, name: str, text: str = "") -> bytes:
        """Return an event; its id is the service's time, by which the browser computes ages."""
        now = datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC).isoformat()
        # Not splitlines: it knows more ends of lines than the format does.
        lines = "\n".join(f"data: {line}" for line in END_OF_LINE.split(text))
        return f"event: {name}\nid: {now}\n{lines}\n\n".encode()

    async def _current(self, view: View, render: Callable[[], Awaitable[str]]) -> str:
        """Return the page; one that another reader of the same view has just seen serves both."""
        now = asyncio.get_running_loop().time()
        revision = (self._service.index.epoch, self._service.index.revision)
        last = self._rendered.get(view)
        if last is not None and last.serves(revision, now):
            return await asyncio.shield(last.text)
        rendering = Metered(render())
        task = asyncio.ensure_future(rendering.run())
        self._rendered[view] = _Rendered(revision, now, rendering, task)
        try:
            return await asyncio.shield(task)
        except Exception:
            self._rendered.pop(view, None)
            raise


async def _rest(ring: asyncio.Event, due: float) -> None:
    """Wait for a change and until the next rendering is due, or for a beat."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BEAT_SECONDS):
            await ring.wait()
            await asyncio.sleep(due - asyncio.get_running_loop().time())


def _discard(counts: Counter[K], key: K) -> None:
    """Count one less, and forget what there is none of."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
