"""A connection that tells handlers whether their answers were read, see `delivery.py`."""

import asyncio
from collections.abc import Callable
from typing import Any

from moorage.serve.http.budgeted_connection import HoldingProtocol
from moorage.serve.http.delivery import DeliveryWatch
from moorage.serve.http.uvicorn_connection import Cycle


class DeliveringProtocol(HoldingProtocol):
    """A connection with at most a few answers of which it is not known yet whether they were read.

    After an answer that it has promised to end with, it stays open until that is known: a closed
    connection shows nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deaf = False  # nothing more is read from this connection
        self._watches: list[DeliveryWatch] = []
        self._ends = False  # closed as soon as it is known what was read

    def _watch_delivery(self, told: Callable[[bool | None], None]) -> None:
        """Watch the answer that the running request sends next; see `faces.web.DELIVERY`."""
        cycle = self._running

        def known(read: bool | None) -> None:
            told(read)
            self._known()

        watch = DeliveryWatch(self.transport, self.loop, known)
        if cycle is None or cycle.disconnected or self.transport.is_closing():
            watch.lost(None)
            return
        self._watches.append(watch)
        cycle.lingers = not cycle.keep_alive

    def on_response_complete(self) -> None:
        """Watch what becomes of the answer, and continue with the next request."""
        if self._watches:
            self._answer_written()
        super().on_response_complete()

    def _answer_written(self) -> None:
        for watch in self._watches:
            if not watch.is_written:
                watch.written()
        cycle = self._running
        if cycle is not None and cycle.lingers and not self.transport.is_closing():
            self._deaf = self._ends = True
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _further(self) -> None:
        """Note that the client begins another request: it has read the answers before."""
        for watch in [*self._watches]:
            watch.further()

    def eof_received(self) -> None:
        """Note that the client sends nothing more; the connection is then closed."""
        for watch in [*self._watches]:
            watch.ended()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note what was not read."""
        for watch in [*self._watches]:
            watch.lost(exc)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the connection after its answers, and after it is known whether they were read."""
        cycle: Cycle | None = self.cycle
        if not self._watches or (cycle is not None and not cycle.response_complete):
            super().shutdown()
            return
        self._ends = True
        for watch in [*self._watches]:
            watch.hurry()

    def _known(self) -> None:
        self._watches = [watch for watch in self._watches if not watch.is_settled]
        if self._ends and not self._watches and not self.transport.is_closing():
            asyncio.get_running_loop().call_soon(self.transport.close)
