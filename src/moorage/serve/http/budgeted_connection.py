"""A connection that counts what it holds: a request that waits, a long body, an unread response."""

import asyncio
import logging
import socket
import struct
from typing import Any, cast

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from moorage.serve.http.memory_budget import Held, Room
from moorage.serve.http.uvicorn_connection import Cycle, LeanProtocol

_NO_LINGER = struct.pack("ii", 1, 0)

logger = logging.getLogger("moorage.http")


class HoldingProtocol(LeanProtocol):
    """A connection that counts what it holds in `held`, which all connections share."""

    held: Held

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._running: RequestResponseCycle | None = None
        self._cut = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Wait for a request."""
        super().connection_made(transport)
        # With TLS, half a megabyte could be unread before anybody is told of it.
        transport.set_write_buffer_limits(HIGH_WATER_LIMIT)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self.held.unread.leave(self)
        for cycle, _ in self.pipeline:
            self._let_go(cycle)
        if self._running is not None:
            self._let_go(self._running)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Count what the client has not read: it is more than little."""
        super().pause_writing()
        self.held.unread.enter(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Write on: the client has read almost all."""
        self.held.unread.leave(self)
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Let go of the request that was answered, and go on with the next one."""
        if self._running is not None:
            self._let_go(self._running)
        super().on_response_complete()

    def cut_off(self) -> None:
        """End the connection: its client reads too slowly while there is too much unread."""
        logger.info("cut off %s: too much is unread, and it has not read for long", self.client)
        self._reset()

    def _hold(self, cycle: RequestResponseCycle, room: Room, size: int) -> bool:
        """Take room for more of a request; False: there is too little left."""
        request = cast(Cycle, cycle)
        if not room.take(size, request.held_bytes):
            return False
        request.held_in, request.held_bytes = room, request.held_bytes + size
        return True

    def _let_go(self, cycle: RequestResponseCycle) -> None:
        """Give back the room that a request has; once more is nothing."""
        request = cast(Cycle, cycle)
        if request.held_in is not None:
            request.held_in.give_back(request.held_bytes)
            request.held_in, request.held_bytes = None, 0

    def _reset(self) -> None:
        """End the connection at once, so that the client sees an error rather than an end.

        What HTTP/1.0 clients are sent may end where the connection does.
        """
        if self._cut:
            return
        self._cut = True
        if self._running is not None:
            self._running.disconnected = True  # its answer is not whole, and that is no fault
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()
