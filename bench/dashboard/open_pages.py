"""Keeps pages open as browsers do, but only counts what arrives."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from bench.wire import Session

OPEN_SECONDS_MAX = 60.0
EVENTS = "Accept: text/event-stream"
AT_ONCE = 20
"""Pages that open at the same time."""


class OpenPage(asyncio.Protocol):
    """The event stream of one page."""

    def __init__(self, head: bytes) -> None:
        self.shown = asyncio.Event()
        self.events = 0
        self.received = 0
        self.problem = ""
        self.transport: asyncio.Transport | None = None
        self._head = head

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        """Count what has arrived."""
        if not self.received and not data.startswith(b"HTTP/1.1 200"):
            self.problem = data[:200].decode(errors="replace")
            self.shown.set()
        self.received += len(data)
        events = data.count(b"event: main\n")
        self.events += events
        if events:
            self.shown.set()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the stream has ended."""
        self.problem = self.problem or f"the stream has ended: {error}"
        self.shown.set()


@asynccontextmanager
async def open_pages(
    url: str, sessions: Sequence[Session], paths: Sequence[str], count: int
) -> AsyncIterator[list[OpenPage]]:
    """Keep `count` pages open; all have been shown once when the context is entered.

    The sessions share the pages evenly.

    Raises:
        RuntimeError: if a page does not open, or was closed while it should be open.
    """
    host, _, port = urlsplit(url).netloc.rpartition(":")
    loop = asyncio.get_running_loop()
    pages: list[OpenPage] = []
    try:
        addresses = zip(range(count), itertools.cycle(paths), strict=False)
        while some := list(itertools.islice(addresses, AT_ONCE)):
            fresh = [
                OpenPage(sessions[number * len(sessions) // count].get(path, EVENTS))
                for number, path in some
            ]
            pages += fresh
            for page in fresh:
                await loop.create_connection(partial(_same, page), host, int(port))
            async with asyncio.timeout(OPEN_SECONDS_MAX):
                await asyncio.gather(*(page.shown.wait() for page in fresh))
        _check(pages)
        yield pages
        _check(pages)
    finally:
        for page in pages:
            if page.transport is not None:
                page.transport.abort()


def _same(page: OpenPage) -> OpenPage:
    return page


def _check(pages: list[OpenPage]) -> None:
    problems = {page.problem for page in pages if page.problem}
    if problems:
        raise RuntimeError(f"pages do not stay open: {problems}")
