"""Keeps open pages current: renders `main` again when something has changed, as events.

All open pages together may use a small share of a core, and each view gets an equal part of it: the
more there are, and the longer one takes to render, the less often it is rendered. Elapsed time
counts, and it grows when the service is busy with claims: then pages give way. Pages
that look the same are one view, which is rendered once for all readers with the same rights. One is
rendered at a time, otherwise each would seem to take longer than it does; readers take turns.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

from moorage.core.ages import age_text
from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.faces.native_api import RefusedError
from moorage.service.app import Service
from moorage.service.caller_turns import CallerTurns

K = TypeVar("K")

EVENTS = "text/event-stream"

END_OF_LINE = re.compile(r"\r\n|\r|\n")
"""Source: HTML Living Standard, \"Parsing an event stream\"."""

BEAT_SECONDS = 15.0
"""How often an unchanged page sends a sign of life, and checks that its session still exists."""

INTERVAL_SECONDS = 1.0
"""The least time between two renderings of a page."""

INTERVAL_SECONDS_MAX = 120.0
"""The longest time: an open page is never older, however busy the service is."""

SHARE_MAX = 0.025
"""The share of the time that all renderings may take."""

STREAMS_MAX = 500
"""Open pages of one process: each keeps what it shows in memory."""

OF_READER_MAX = 64
"""Open pages of one token or user, whom several people may share. Hidden pages are not open."""

LATER = b"retry: 30000\n\n"
"""The answer to a page beyond the limit: the browser tries again."""


class View(NamedTuple):
    """The inputs of a rendered page, besides the state of the service: address and reader."""

    path: str
    query: tuple[tuple[str, str], ...]
    reader: tuple[object, ...]


@dataclass(slots=True)
class _Rendered:
    at: float
    revision: tuple[int, int]
    changed: asyncio.Event
    """Set as soon as something has changed since."""
    text: asyncio.Future[str]

    def serves(self, now: float, revision: tuple[int, int], seconds: float) -> bool:
        """Return whether it is current, or not older than `seconds`, and has not failed.

        If it is not ready yet, any number of `seconds` but 0 is enough.
        """
        if self.text.done() and (self.text.cancelled() or self.text.exception() is not None):
            return False
        is_current = self.revision == revision and not self.changed.is_set()
        if not self.text.done():
            return is_current or seconds > 0
        return now - self.at < (BEAT_SECONDS if is_current else seconds)


class Live:
    """The open pages of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._views: Counter[View] = Counter()
        self._open: Counter[str] = Counter()
        """How many streams each reader has."""
        self._rendered: dict[View, _Rendered] = {}
        self._seconds: dict[View, tuple[float, float]] = {}
        """How long the last two renderings of a view have taken."""
        self._turns = CallerTurns("pages", OF_READER_MAX, STREAMS_MAX)

    def interval(self, view: View) -> float:
        """Return the seconds between two renderings of a view at present.

        A single slow rendering does not count: something else may have delayed it.
        """
        wanted = len(self._views) * min(self._seconds.get(view, (0.0, 0.0))) / SHARE_MAX
        return min(INTERVAL_SECONDS_MAX, max(INTERVAL_SECONDS, wanted))

    async def events(
        self,
        who: str,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        """Yield events until the service stops or the session of a reader ends.

        `main` has the page's content. `failed` says why there is none at present, for example
        because its pool was deleted; it is tried again. `beat` says that nothing is newer, or how
        old the content is if the page must wait. `signed-out` is the last one. If too many pages
        are open, there is none.
        """
        if self._open[who] >= OF_READER_MAX or self._open.total() >= STREAMS_MAX:
            yield LATER
            return
        self._open[who] += 1
        self._views[view] += 1
        try:
            async with aclosing(self._events(who, view, render, signed_in)) as events:
                async for event in events:
                    yield event
        finally:
            _discard(self._open, who)
            _discard(self._views, view)
            if view not in self._views:
                self._rendered.pop(view, None)
                self._seconds.pop(view, None)

    async def _events(
        self,
        who: str,
        view: View,
        render: Callable[[], Awaitable[str]],
        signed_in: Callable[[], Awaitable[bool]],
    ) -> AsyncGenerator[bytes, None]:
        now = asyncio.get_running_loop().time
        shown: str | None = None
        due, begun, changed, fresh = 0.0, now(), asyncio.Event(), True
        while not self._service.watch.closed:
            try:
                if not await signed_in():
                    yield self._event("signed-out")
                    return
                text = shown
                if shown is None or now() >= due:
                    last, fresh = self._current(who, view, render, fresh=fresh), False
                    if not (await asyncio.wait([last.text], timeout=BEAT_SECONDS))[0]:
                        yield self._event("beat", age_text(now() - begun))
                        continue
                    text, begun, changed = last.text.result(), last.at, last.changed
                    due = begun + self.interval(view)
            except (RefusedError, Error) as error:
                shown, due, fresh = None, now() + INTERVAL_SECONDS, True
                changed = self._service.feed.bell.listen()
                yield self._event("failed", error.message)
            else:
                age = age_text(now() - begun) if changed.is_set() else ""
                is_new = text != shown
                yield self._event("main", text or "") if is_new else self._event("beat", age)
                shown = text
            await _rest(changed, due)

    async def signed_out(self) -> AsyncGenerator[bytes, None]:
        """Yield the only event for a reader who is not signed in."""
        yield self._event("signed-out")

    def _event(self, name: str, text: str = "") -> bytes:
        """Return an event; its id is the service's time, by which the browser computes ages."""
        now = datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC).isoformat()
        # Not splitlines: it knows more ends of lines than the format does.
        lines = "\n".join(f"data: {line}" for line in END_OF_LINE.split(text))
        return f"event: {name}\nid: {now}\n{lines}\n\n".encode()

    def _current(
        self, who: str, view: View, render: Callable[[], Awaitable[str]], *, fresh: bool
    ) -> _Rendered:
        """Return the page, maybe in progress; it serves all who see this view until it is due.

        `fresh`: whatever has changed must be on it, because the reader has loaded it just now.
        """
        now = asyncio.get_running_loop().time()
        revision = (self._service.index.epoch, self._service.index.revision)
        last = self._rendered.get(view)
        if last is None or not last.serves(now, revision, 0 if fresh else self.interval(view)):
            changed = self._service.feed.bell.listen()
            task = asyncio.ensure_future(self._timed(who, view, render))
            # Its readers may be gone before it fails.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            last = self._rendered[view] = _Rendered(now, revision, changed, task)
        return last

    async def _timed(self, who: str, view: View, render: Callable[[], Awaitable[str]]) -> str:
        now = asyncio.get_running_loop().time
        async with self._turns.of(who):
            if self._service.watch.closed:
                raise Error(Code.UNAVAILABLE, "The service is stopping.")
            if view not in self._views:
                return ""  # nobody sees it
            begun = now()
            text = await render()
            spent = now() - begun
        if view in self._views:
            _, last = self._seconds.get(view, (spent, spent))
            self._seconds[view] = (last, spent)
        return text


async def _rest(changed: asyncio.Event, due: float) -> None:
    """Wait for a change and until the next rendering is due, or for a beat."""
    with suppress(TimeoutError):
        async with asyncio.timeout(BEAT_SECONDS):
            await changed.wait()
            await asyncio.sleep(due - asyncio.get_running_loop().time())


def _discard(counts: Counter[K], key: K) -> None:
    """Count one less, and forget what there is none of."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
