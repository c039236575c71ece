"""A listening socket of a double that stops: it ends all connections that it has accepted.

Two kinds would go on otherwise, and their clients would wait for as long as they have patience.
asyncio forgets a connection that it accepts in the turn in which its server is closed; the garbage
collector closes it at some time (CPython's issue 109564). And aiohttp does not know a connection
before its TLS handshake is done.
"""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from aiohttp import web


class Listener(socket.socket):
    """Listens at a port of this machine; 0: a free one."""

    def __init__(self, port: int) -> None:
        """Bind it."""
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._accepted: WeakSet[socket.socket] = WeakSet()
        self._stopped = False
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.bind(("127.0.0.1", port))

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and remember it."""
        if self._stopped:
            raise BlockingIOError
        connection, address = super().accept()
        self._accepted.add(connection)
        return connection, address

    async def stop(self, runner: web.AppRunner) -> None:
        """Stop what serves here, and end all connections."""
        self._stopped = True
        await asyncio.sleep(0)  # what was accepted in this turn begins in the next one
        await runner.cleanup()
        for one in [*self._accepted]:
            with suppress(OSError):  # it has ended already
                one.shutdown(socket.SHUT_RDWR)
