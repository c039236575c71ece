"""Accepting connections. They are counted from that moment on, and no address may have too many.

The event loop's own servers tell of a TLS connection only once its handshake is done: clients that
never finish theirs would be neither counted nor hurried.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus

from moorage.faces.addresses import address_of, source_of
from moorage.serve.http.protocol import GuardedProtocol
from moorage.serve.http.proxies import Proxies
from moorage.serve.http.refusals import refusal_bytes

BACKLOG = 4_096
"""Connections the kernel may hold for us."""

ACCEPTED_AT_ONCE = 64
"""Connections that are accepted before the event loop does something else."""

PAUSE_SECONDS = 0.2
"""How long nothing is accepted after the kernel has refused to: mostly there are no files left."""

log = logging.getLogger("moorage.http")


class NoPlaceError(Exception):
    """There are too many connections; the message is for the client."""


class Places:
    """How many connections there are at one listener, in all and of each address."""

    def __init__(self, most: int, each_most: int, proxies: Proxies) -> None:
        self._most = most
        self._each_most = each_most
        self._proxies = proxies
        self._count = 0
        self._counts: dict[str, int] = {}
        self._source = lru_cache(maxsize=4_096)(self._source_of)

    def enter(self, host: str) -> "Place":
        """Count one more connection from a host. Raises NoPlaceError."""
        if self._count >= self._most:
            raise NoPlaceError(
                f"More than {self._most} connections, the limit set by connections_max."
            )
        source = self._source(host)
        if source is not None:
            count = self._counts.get(source, 0)
            if count >= self._each_most:
                raise NoPlaceError(
                    f"More than {self._each_most} connections from one address, "
                    "the limit set by connections_per_address_max."
                )
            self._counts[source] = count + 1
        self._count += 1
        return Place(self, source)

    def left(self, source: str | None) -> None:
        """Count one connection less."""
        self._count -= 1
        if source is not None:
            self._counts[source] -= 1
            if not self._counts[source]:
                del self._counts[source]

    def _source_of(self, host: str) -> str | None:
        """Return under which name a host is counted; None: it is not."""
        address = address_of(host)
        if address is None or address.is_loopback or self._proxies.trusts(host):
            return None
        return source_of(address)


class Place:
    """The place of one connection."""

    __slots__ = ("_places", "_source")

    def __init__(self, places: Places, source: str | None) -> None:
        self._places: Places | None = places
        self._source = source

    def leave(self) -> None:
        """Give it back; once more is nothing."""
        if self._places is not None:
            self._places.left(self._source)
            self._places = None


class Acceptor:
    """Accepts connections until it is closed. uvicorn takes it for one of the loop's servers."""

    def __init__(
        self,
        listener: socket.socket,
        places: Places,
        protocol: Callable[[], GuardedProtocol],
        tls: Callable[[], ssl.SSLContext | None],
        handshake_seconds: float,
    ) -> None:
        """Begin to listen.

        Args:
            listener: a bound socket.
            places: how many connections there may be.
            protocol: makes one for each connection.
            tls: returns what new connections are secured with; None: they are not.
            handshake_seconds: the longest time for that.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._places = places
        self._protocol = protocol
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._go_on()

    def close(self) -> None:
        """Accept nothing more, and drop connections whose handshake is not done."""
        if self._closed:
            return
        self._closed = True
        if self._pause is None:
            self._loop.remove_reader(self._listener.fileno())
        else:
            self._pause.cancel()
        for task in self._beginning:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until dropped connections are gone."""
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener.fileno(), self._accept_some)

    def _accept_some(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:  # it has gone again
                continue
            except OSError as error:
                log.error("cannot accept connections: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            self._take(connection, address[0])

    def _take(self, connection: socket.socket, host: str) -> None:
        connection.setblocking(False)
        try:
            place = self._places.enter(host)
        except NoPlaceError as full:
            log.info("refused %s: 503 %s", host, full)
            with suppress(OSError):
                if self._tls() is None:
                    connection.send(refusal_bytes(HTTPStatus.SERVICE_UNAVAILABLE, str(full)))
            connection.close()
            return
        task = self._loop.create_task(self._begin(connection, host, place))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket, host: str, place: Place) -> None:
        """Hand a connection to a protocol of its own, which gives the place back when it ends."""
        protocol = self._protocol()
        protocol.place = place
        context = self._tls()
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else self._handshake_seconds,
            )
        except OSError as error:  # TLS errors and timeouts are OSErrors
            log.info("no TLS with %s: %s", host, error)
        finally:
            if not protocol.begun:  # it was never told of a connection, nor will be
                place.leave()
