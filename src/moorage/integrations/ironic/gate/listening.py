"""The gate's sockets: its own, or those that systemd holds while the gate is started again."""

import asyncio
import os
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from socket import socket
from weakref import WeakSet

from moorage.integrations.pem_files import PemError, serving
from moorage.integrations.sockets import ListenError, bound

FIRST_PASSED = 3
"""The number of the first socket that is passed (`sd_listen_fds(3)`)."""

CONNECTIONS_MAX = 4_000
CROWDED = CONNECTIONS_MAX // 4
"""This many connections can be of any clients; of all, one address has at most three quarters."""

HEAD_SECONDS = 30.0
"""How long a new connection may be silent; later ones by aiohttp's own limit."""


def passed_sockets(environment: Mapping[str, str], pid: int) -> list[socket]:
    """Return the sockets that a parent has passed, such as systemd; empty: none."""
    if environment.get("LISTEN_PID") != str(pid):
        return []
    count = environment.get("LISTEN_FDS", "0")
    numbers = range(FIRST_PASSED, FIRST_PASSED + (int(count) if count.isdecimal() else 0))
    for number in numbers:
        os.set_inheritable(number, False)
    return [socket(fileno=number) for number in numbers]


def listening(address: str) -> list[socket]:
    """Return sockets for HOST:PORT, or those that were passed. Raises ListenError."""
    if passed := passed_sockets(os.environ, os.getpid()):
        return passed
    return bound(address)


def url_of(one: socket, *, tls: bool) -> str:
    """Return the address of a socket as a URL."""
    host, port = one.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http{'s' if tls else ''}://{shown}:{port}"


def server_tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return how to serve TLS; None: not at all. Raises ListenError."""
    if certificate is None:
        return None
    try:
        return serving(certificate, key)
    except PemError as error:
        raise ListenError(str(error)) from error


class Doorkeeper:
    """Makes the protocol of each new connection, and limits how many there are.

    A connection that sends no request in time is closed.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.Protocol],
        open_ones: Callable[[], Collection[asyncio.BaseTransport | None]],
    ) -> None:
        self._make = make
        self._open = open_ones
        self._spoken: WeakSet[asyncio.BaseTransport] = WeakSet()

    def spoke(self, transport: asyncio.BaseTransport | None) -> None:
        """Note that a connection has sent a request."""
        if transport is not None:
            self._spoken.add(transport)

    def __call__(self) -> asyncio.Protocol:
        """Return a protocol, see `loop.create_server`."""
        return _Door(self) if len(self._open()) < CONNECTIONS_MAX else _Refusing()

    def enter(self, transport: asyncio.BaseTransport) -> None:
        """Hand a new connection to aiohttp, unless its address has too many."""
        if len(others := self._open()) >= CROWDED and (address := _address(transport)):
            same = sum(_address(one) == address for one in others)
            if same >= CONNECTIONS_MAX - CROWDED:
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
        self._keeper.enter(transport)


class _Refusing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with suppress(OSError):
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
