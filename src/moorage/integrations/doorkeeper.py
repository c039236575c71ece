"""Limits the connections to a server: how many there are, and how long they may be silent."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from weakref import WeakSet

HANDSHAKE_SECONDS = 10.0
"""How long a TLS handshake may take."""

HEAD_SECONDS = 30.0
"""How long a new connection may be silent; later ones by aiohttp's own limit."""


class Doorkeeper:
    """Makes the protocol of each new connection, and limits how many there are.

    A connection that sends no request in time is closed.
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

    def spoke(self, transport: asyncio.BaseTransport | None) -> None:
        """Note that a connection has sent a request."""
        if transport is not None:
            self._spoken.add(transport)

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
        protocol = self._make()
        loop = asyncio.get_running_loop()
        assert isinstance(transport, asyncio.Transport)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
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


class _Refusing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with suppress(OSError):
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
