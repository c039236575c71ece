"""A connection that counts its memory: heads, waiting requests, bodies, unread responses."""

import asyncio
import logging
import socket
import struct
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from moorage.serve.http.memory_budget import ByteBudget, MemoryBudgets
from moorage.serve.http.uvicorn_connection import Cycle, LeanProtocol

_NO_LINGER = struct.pack("ii", 1, 0)

logger = logging.getLogger("moorage.http")


class HoldingProtocol(LeanProtocol):
    """A connection that counts its memory in `held`, which all connections share."""

    held: MemoryBudgets

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._running: Cycle | None = None
        self._cut = False
        self._head_held = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Wait for a request."""
        super().connection_made(transport)
        # With TLS, `pause_writing` would be called only after half a megabyte is unread.
        transport.set_write_buffer_limits(HIGH_WATER_LIMIT)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release all memory of the connection."""
        self.held.unread.leave(self)
        self._hold_head(0)
        for cycle, _ in self.pipeline:
            self._release(cycle)
        if self._running is not None:
            self._release(self._running)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Count the unread bytes, which now exceed the high-water mark."""
        super().pause_writing()
        self.held.unread.enter(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop counting: the client has read almost everything."""
        self.held.unread.leave(self)
        super().resume_writing()

    def cut_off(self) -> None:
        """End the connection: its client is too slow while others need the memory."""
        why = "it reads too slowly, and too many responses are unread"
        if self._head_held:
            why = "its request is incomplete, and so are too many others"
        logger.info("closed the connection to %s: %s", self.client, why)
        self._head_held = False
        self._reset()

    def _hold_head(self, size: int) -> None:
        """Count the bytes of an incomplete head; 0: there is none. Most heads come at once."""
        if size or self._head_held:
            self._head_held = bool(size)
            self.held.heads.hold(self, size)

    def _hold(self, request: Cycle, room: ByteBudget, size: int) -> bool:
        """Reserve memory for a part of a request; return False if there is too little."""
        if not room.take(size, request.held_bytes):
            return False
        request.held_in, request.held_bytes = room, request.held_bytes + size
        return True

    def _release(self, request: Cycle) -> None:
        """Release the memory of a request; does nothing if it was released before."""
        if request.held_in is not None:
            request.held_in.give_back(request.held_bytes)
            request.held_in, request.held_bytes = None, 0

    def _reset(self) -> None:
        """Reset the connection, so that the client sees an error instead of a regular end.

        To HTTP/1.0 clients a regular end could look like the end of the answer.
        """
        if self._cut:
            return
        self._cut = True
        if self._running is not None:
            self._running.disconnected = True  # so that the incomplete answer is not an error
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()
