"""Limits the connections to a server: how many there are, their silence, and unread requests."""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from weakref import WeakKeyDictionary, WeakSet

log = logging.getLogger("moorage.doorkeeper")

HANDSHAKE_SECONDS = 10.0
"""How long a TLS handshake may take."""

HEAD_SECONDS = 30.0
"""How long a new connection may be silent; later ones by aiohttp's own limit."""


HEADS_BYTES_MAX = 64 << 20
"""Bytes of requests that have not begun to be answered, of all connections together."""

UNANSWERED_BYTES_MAX = 2 << 20
"""Those of one connection. aiohttp takes heads of up to 128 headers of 8 KiB each."""


class Doorkeeper:
    """Makes the protocol of each new connection, and limits how many there are.

    A connection that sends no request in time is closed. If incomplete heads, and requests that
    wait behind others, take too much memory, the connection whose request began first is closed.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        open_ones: Callable[[], Collection[asyncio.BaseTransport | None]],
        most: int,
    ) -> None:
        """Prepare to limit.

        Args:
            make: makes the protocol that answers.
            open_ones: returns the connections that are open, without handshakes under way.
            most: connections, with handshakes. A quarter can be of any clients; of all, one
                address has at most three quarters.
        """
        self._make = make
        self._open = open_ones
        self._most = most
        self._crowded = most // 4
        self._knocking: WeakSet[_Door] = WeakSet()
        """Connections whose handshake is under way."""
        self._spoken: WeakSet[asyncio.BaseTransport] = WeakSet()
        self._inside: WeakKeyDictionary[asyncio.BaseTransport, _Guest] = WeakKeyDictionary()
        self._heads: dict[_Guest, int] = {}
        """Bytes by connection, in the order in which their requests began."""
        self._heads_bytes = 0

    def spoke(self, transport: asyncio.BaseTransport | None, *, has_body: bool = False) -> None:
        """Note that a request of a connection is being answered; its body does not count."""
        if transport is not None:
            self._spoken.add(transport)
            if (guest := self._inside.get(transport)) is not None:
                self.forget(guest)
                guest.counts = not has_body

    def answered(self, transport: asyncio.BaseTransport | None) -> None:
        """Note that a request has been read and answered: what comes now is another one."""
        guest = None if transport is None else self._inside.get(transport)
        if guest is not None:
            guest.counts = True

    def hold(self, guest: "_Guest", size: int) -> None:
        """Count what a connection has sent of requests; close those that began first if needed."""
        self._heads[guest] = self._heads.get(guest, 0) + size
        self._heads_bytes += size
        if self._heads[guest] > UNANSWERED_BYTES_MAX:
            self._close(guest)
        while self._heads_bytes > HEADS_BYTES_MAX and len(self._heads) > 1:
            self._close(next(iter(self._heads)))

    def forget(self, guest: "_Guest") -> None:
        """Stop counting what a connection has sent so far."""
        self._heads_bytes -= self._heads.pop(guest, 0)

    def _close(self, guest: "_Guest") -> None:
        log.warning("closed a connection: too many bytes of incomplete or waiting requests")
        self.forget(guest)
        guest.counts = False
        guest.transport.abort()

    def __call__(self) -> asyncio.Protocol:
        """Return a protocol, see `loop.create_server`."""
        if len(self._open()) + len(self._knocking) >= self._most:
            return _Refusing()
        door = _Door(self)
        self._knocking.add(door)
        return door

    def enter(self, door: "_Door", transport: asyncio.BaseTransport) -> None:
        """Hand a new connection to the protocol, unless its address has too many."""
        self._knocking.discard(door)
        if len(others := self._open()) >= self._crowded and (address := _address(transport)):
            same = sum(_address(one) == address for one in others)
            if same >= self._most - self._crowded:
                assert isinstance(transport, asyncio.Transport)
                transport.abort()
                return
        loop = asyncio.get_running_loop()
        assert isinstance(transport, asyncio.Transport)
        guest = _Guest(self, self._make(), transport)
        self._inside[transport] = guest
        transport.set_protocol(guest)
        guest.connection_made(transport)
        loop.call_later(HEAD_SECONDS, self._check, transport)

    def _check(self, transport: asyncio.Transport) -> None:
        if transport not in self._spoken and not transport.is_closing():
            transport.abort()


def _address(transport: asyncio.BaseTransport | None) -> str | None:
    peer = None if transport is None else transport.get_extra_info("peername")
    return str(peer[0]) if peer else None


class _Door(asyncio.Protocol):
    def __init__(self, keeper: Doorkeeper) -> None:
        self._keeper = keeper

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._keeper.enter(self, transport)


class _Guest(asyncio.Protocol):
    """Counts what a connection sends, and hands it to the protocol that answers."""

    def __init__(
        self, keeper: Doorkeeper, inner: asyncio.Protocol, transport: asyncio.Transport
    ) -> None:
        self._keeper = keeper
        self._inner = inner
        self.transport = transport
        self.counts = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self.counts:
            self._keeper.hold(self, len(data))
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._keeper.forget(self)
        self.counts = False
        self._inner.connection_lost(error)


class _Refusing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with suppress(OSError):
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
