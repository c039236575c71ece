"""Whether an answer was read: what the connection shows after it was written.

TCP shows when the other host has the bytes. If its process closes the connection before it has read
them, or is killed, the kernel there resets the connection. So an answer

* was read if the client sends another request after it has all bytes, if it has them and ends its
  half of the connection without a reset within `RESET_SECONDS`, or if it has them and the
  connection stays open for `OPEN_SECONDS`;
* was not read if the connection is reset, or ends before all of the answer is written;
* is of unknown fate if nothing is ever acknowledged: the host has vanished.

A client that ends its half (`shutdown`) and then closes without reading resets the connection only
by the second step, and only while this side has not ended its own half. So after the last answer of
a connection this side waits for `FIN_SECONDS` before it does. With TLS the end of the client's half
ends the connection, and no reset is seen after it.

Through a reverse proxy this shows only what the proxy has read.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from functools import partial
from typing import Any

from moorage.serve.http.budgeted_connection import HoldingProtocol
from moorage.serve.http.uvicorn_connection import Cycle

OPEN_SECONDS = 1.0
"""How long a client that has all bytes may take to be killed, or to end the connection unread."""

LOOKS = 15
"""How often, `OPEN_SECONDS` apart, it is looked whether the bytes have arrived."""

RESET_SECONDS = 0.1
"""How long a client that has ended its half may take to close the connection unread."""

FIN_SECONDS = 0.05
"""How long this side keeps its half open after the last answer.

Only a client that reads to the end of the connection, instead of `content-length`, waits for it.
"""

HURRY_SECONDS = 0.05
HURRIED_LOOKS = 20
"""The same while the server stops."""

TCP_CLOSE = 7
"""The first byte of `TCP_INFO` after a reset; source: include/net/tcp_states.h of Linux."""


class DeliveryWatch:
    """One answer. `told` is called once: it was read, was not, or (None) this stays unknown."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        told: Callable[[bool | None], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._told = told
        self._timer: asyncio.TimerHandle | None = None
        self._pause, self._looks = OPEN_SECONDS, LOOKS
        self._half = False
        """Has the client ended its half, so that only a look shows a reset?"""
        self.is_written = False
        self.is_settled = False
        """Has `told` been called?"""

    def written(self) -> None:
        """Note that the whole answer was given to the connection."""
        self.is_written = True
        self._look_later()

    def further(self) -> None:
        """Note that the client has begun another request."""
        if self.is_written and self._arrived():
            self._settle(True)

    def ended(self, *, reset_shows: bool) -> None:
        """Note that the client has ended the connection, or its half.

        Args:
            reset_shows: the connection stays open, and can show that it is reset: this side has not
                ended its own half.
        """
        if not (self.is_written and reset_shows):
            self._settle(self.is_written and self._arrived())
            return
        self._half, self._pause = True, min(self._pause, RESET_SECONDS)
        self._look_later()

    def lost(self, error: Exception | None) -> None:
        """Note that there is no connection any more; without an error this side has closed it."""
        if error is not None or not self.is_written:
            self._settle(False)
        else:
            self._settle(None)

    def hurry(self) -> None:
        """Decide soon: the server stops."""
        if self._timer is not None:
            self._pause, self._looks = HURRY_SECONDS, HURRIED_LOOKS
            if self._half:
                self._look_later()
            else:
                self._timer.cancel()
                self._look()

    def _look_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._pause, self._look)

    def _look(self) -> None:
        self._looks -= 1
        if self._half and self._was_reset():
            self._settle(False)
        elif self._arrived():
            self._settle(True)
        elif self._looks <= 0:
            self._settle(None)
        else:
            self._look_later()

    def _was_reset(self) -> bool:
        """Has the client reset the connection? Nothing is read from it, so no event says so."""
        connection = self._transport.get_extra_info("socket")
        try:
            state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        except (OSError, ValueError, AttributeError):
            return True  # the connection is gone
        return bool(state == bytes([TCP_CLOSE]))

    def _arrived(self) -> bool:
        """Has the other host acknowledged all bytes?"""
        if self._transport.get_write_buffer_size():
            return False
        connection = self._transport.get_extra_info("socket")
        try:
            # SIOCOUTQ, see tcp(7): the bytes that are not acknowledged.
            left = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError, AttributeError):
            return False  # the connection is gone
        return struct.unpack("i", left) == (0,)

    def _settle(self, read: bool | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self.is_settled:
            self.is_settled = True
            self._told(read)


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
        self._half_end: asyncio.TimerHandle | None = None
        self._half_ended = False  # this side sends nothing more

    def _watch_delivery(self, told: Callable[[bool | None], None]) -> None:
        """Watch the answer that the running request sends next; see `faces.web.DELIVERY`."""
        cycle = self._running

        watch = DeliveryWatch(self.transport, self.loop, partial(self._known, told))
        if cycle is None or cycle.disconnected or self.transport.is_closing():
            watch.lost(None)
            return
        self._watches.append(watch)
        cycle.lingers = not cycle.keep_alive

    def _answer_written(self) -> None:
        """Watch what becomes of an answer that was given to the connection."""
        for watch in self._watches:
            if not watch.is_written:
                watch.written()
        cycle = self._running
        if cycle is not None and cycle.lingers and not self.transport.is_closing():
            self._deaf = self._ends = True
            if self.transport.can_write_eof():
                self._half_end = self.loop.call_later(FIN_SECONDS, self._end_half)

    def _end_half(self) -> None:
        """Show a client that reads to the end of the connection that this is the end."""
        self._half_end = None
        if not self.transport.is_closing():
            self._half_ended = True
            self.transport.write_eof()

    def _keep_half(self) -> None:
        if self._half_end is not None:
            self._half_end.cancel()
            self._half_end = None

    def _further(self) -> None:
        """Note that the client begins another request: it has read the answers before."""
        for watch in [*self._watches]:
            watch.further()

    def eof_received(self) -> bool | None:  # type: ignore[override] # uvicorn's always closes
        """Note that the client sends nothing more; close once it is known what was read."""
        self._keep_half()
        reset_shows = self.transport.can_write_eof() and not self._half_ended
        for watch in [*self._watches]:
            watch.ended(reset_shows=reset_shows)
        if self._watches:
            self._deaf = self._ends = True
            return True
        super().eof_received()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Note what was not read."""
        self._keep_half()
        for watch in [*self._watches]:
            watch.lost(exc)
        super().connection_lost(exc)

    def end_with_answer(self) -> None:
        """Let the answer that is sent next, if there is one, say that it is the last."""
        cycle: Cycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return
        cycle.keep_alive = False
        if cycle is self._running:
            cycle.lingers = any(not watch.is_written for watch in self._watches)

    def shutdown(self) -> None:
        """End the connection after its answers, and after it is known whether they were read."""
        cycle: Cycle | None = self.cycle
        if not self._watches or (cycle is not None and not cycle.response_complete):
            super().shutdown()
            return
        self._ends = True
        for watch in [*self._watches]:
            watch.hurry()

    def _known(self, told: Callable[[bool | None], None], read: bool | None) -> None:
        told(read)
        self._watches = [watch for watch in self._watches if not watch.is_settled]
        if self._ends and not self._watches and not self.transport.is_closing():
            asyncio.get_running_loop().call_soon(self.transport.close)
