"""Follows all committed changes, in order, each exactly once, even if connections are lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moorage.client.decoding import change_decode
from moorage.client.transport import (
    MoorageError,
    RefusedError,
    Transport,
    UnreachableError,
    refusal_of,
)
from moorage.wire.changes import Change
from moorage.wire.operations import feed

PAUSE_SECONDS = 0.1
"""The first pause before reconnecting; each further one is twice as long."""

PAUSE_SECONDS_MAX = 5.0

HTTP_GONE = 410
HTTP_BUSY = (429, 502, 503, 504)
"""The server is busy, or a proxy cannot reach it: a later try may succeed."""


class ChangesGoneError(MoorageError):
    """Changes were missed: read everything again, then follow from `oldest` or later."""

    def __init__(self, message: str, oldest: str) -> None:
        super().__init__(message)
        self.oldest = oldest


class Watch:
    """The changes after a cursor; iterate over it, in one thread.

    `cursor` is the place after the last change yielded: store it together with your results, and
    start from it the next time. None: the server has not sent one yet.
    """

    def __init__(
        self,
        transport: Transport,
        after: str | None = None,
        kinds: Iterable[str] = (),
        idle: Callable[[], None] | None = None,
    ) -> None:
        """Prepare to follow.

        Args:
            transport: to the server.
            after: a cursor; by default, only changes from now on are yielded.
            kinds: of changes, see `wire.changes`; by default all.
            idle: called when `cursor` has moved without a change that is yielded.
        """
        self.cursor = after
        self._transport = transport
        self._kinds = ",".join(kinds)
        self._idle = idle
        self._ended = threading.Event()

    def close(self) -> None:
        """End the iteration after the current change; may be called from any thread.

        While nothing changes, it ends with the next sign of life of the server: within 15 seconds.
        """
        self._ended.set()

    def __iter__(self) -> Iterator[Change]:
        """Yield changes without end; reconnect as often as needed.

        Raises:
            ChangesGoneError: changes after the cursor were deleted.
            RefusedError: the server refuses for another reason than being busy.
        """
        pause = PAUSE_SECONDS
        while not self._ended.is_set():
            try:
                for change in self._events():
                    pause = PAUSE_SECONDS
                    yield change
            except UnreachableError:
                pass
            except RefusedError as refusal:
                if refusal.status == HTTP_GONE:
                    raise ChangesGoneError(str(refusal), refusal.oldest or "") from refusal
                if refusal.status not in HTTP_BUSY:
                    raise
            self._ended.wait(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)

    def _events(self) -> Iterator[Change]:
        """Yield the changes of one connection; an incomplete event is ignored."""
        path = feed.WATCH.address(query={"kinds": self._kinds or None})
        headers = {} if self.cursor is None else {"Last-Event-ID": self.cursor}
        event: dict[str, str] = {}
        for line in self._transport.lines(path, feed.EVENTS, headers):
            if not line.endswith(b"\n"):
                return
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
                continue
            if event.get("event") == "problem":
                problem: dict[str, Any] = json.loads(event["data"])
                raise refusal_of(int(problem["status"]), problem)
            self.cursor = event.get("id", self.cursor)
            if "data" in event:
                yield change_decode(json.loads(event["data"]))
            elif self._idle is not None:
                self._idle()
            if self._ended.is_set():
                return
            event = {}
