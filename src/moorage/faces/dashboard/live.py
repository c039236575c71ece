"""Keeps open pages current: renders `main` again when something has changed, as events.

All open pages together may use a small share of a core: the more pages there are, and the longer
they take to render, the less often each is rendered. Pages that look the same are rendered once.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple

from moorage.core.clock import SECOND
from moorage.core.errors import Error
from moorage.faces.native_api import RefusedError
from moorage.service.app import Service

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
"""What one page too many gets, or one that cannot be read now: the browser tries again."""

SIGNED_OUT = b"event: signed-out\ndata:\n\n"
GONE = b"event: gone\ndata:\n\n"
"""The last events of a page: the browser reloads it, and so shows the reason."""

WEIGHT_OF_LAST = 0.2
"""How much the last rendering counts in the mean."""


class View(NamedTuple):
    """What a rendered page depends on, besides the state of the service: address and reader."""

    path: str
    query: tuple[tuple[str, str], ...]
    reader: tuple[object, ...]


@dataclass(slots=True)
class _Rendered:
    revision: tuple[int, int]
    at: float
    text: asyncio.Future[str]


class Live:
    """The open pages of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._views: Counter[View] = Counter()
        self._open: Counter[str] = Counter()
        """How many streams each reader has."""
        self._rendered: dict[View, _Rendered] = {}
        self._seconds = 0.005
        """The mean processor time of a rendering."""

    @property
    def interval(self) -> float:
        """The seconds between two renderings of a page at present."""
        wanted = len(self._views) * self._seconds / SHARE_MAX
        return max(INTERVAL_SECONDS, wanted)

    async def events(
        self,
        who: str,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the service stops or the session of a reader ends.

        `main` has the page's content, and comes first; `signed-out` is the last one, or `gone`. If
        too many pages are open, there is none.
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
        except RefusedError as refused:
            yield GONE if refused.status < HTTPStatus.INTERNAL_SERVER_ERROR else LATER
        except Error:
            yield LATER
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]
            self._views[view] -= 1
            if not self._views[view]:
                del self._views[view]
                self._rendered.pop(view, None)

    async def _events(
        self,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        shown, due = None, 0.0
        ring = self._service.feed.bell.listen()
        while not self._service.watch.closed:
            if not await signed_in():
                yield SIGNED_OUT
                return
            text = shown
            if (begun := loop.time()) >= due:
                ring = self._service.feed.bell.listen()
                text = await self._current(view, render)
                due = begun + self.interval
            yield b": beat\n\n" if text == shown else _event("main", text or "", self._time())
            shown = text
            await _rest(ring, due)

    def _time(self) -> str:
        """Return the service's time, by which the browser computes ages."""
        return datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC).isoformat()

    async def _current(self, view: View, render: Callable[[], Awaitable[str]]) -> str:
        """Return the page; one that another reader of the same view has just seen serves both."""
        now = asyncio.get_running_loop().time()
        revision = (self._service.index.epoch, self._service.index.revision)
        last = self._rendered.get(view)
        if last is not None and last.revision == revision and now - last.at < BEAT_SECONDS:
            return await asyncio.shield(last.text)
        task = asyncio.ensure_future(self._timed(render))
        self._rendered[view] = _Rendered(revision, now, task)
        try:
            return await asyncio.shield(task)
        except Exception:
            self._rendered.pop(view, None)
            raise

    async def _timed(self, render: Callable[[], Awaitable[str]]) -> str:
        begun = time.thread_time()
        text = await render()
        # Other tasks may have run in between: an upper bound, so the share is kept.
        spent = time.thread_time() - begun
        self._seconds += WEIGHT_OF_LAST * (spent - self._seconds)
        return text


def _event(name: str, text: str, identifier: str) -> bytes:
    # Not splitlines: it knows more ends of lines than the format does.
    lines = "\n".join(f"data: {line}" for line in END_OF_LINE.split(text))
    return f"event: {name}\nid: {identifier}\n{lines}\n\n".encode()


async def _rest(ring: asyncio.Event, due: float) -> None:
    """Wait for a change and until the next rendering is due, or for a beat."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BEAT_SECONDS):
            await ring.wait()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
