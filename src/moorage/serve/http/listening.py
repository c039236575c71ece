"""Accepts connections and counts them from that moment on, in total and per address.

A few are accepted beyond these limits. They may ask only for the health; see `connection_limits`.

The event loop's own servers report a TLS connection only after its handshake: clients that never
finish the handshake would be neither counted nor timed out.
"""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from http import HTTPStatus
from operator import itemgetter

from moorage.faces.addresses import address_of, source_of
from moorage.serve.http.connection_limits import (
    HEALTH_CONNECTIONS_MAX,
    HEALTH_SECONDS_MAX,
    HEALTH_SECONDS_MIN,
)
from moorage.serve.http.protocol import GuardedProtocol
from moorage.serve.http.proxies import Proxies
from moorage.serve.http.refusals import refusal_bytes

BACKLOG = 4_096
"""Connections that the kernel may queue before they are accepted."""

ACCEPTED_AT_ONCE = 64
"""Connections that are accepted before the event loop runs other work."""

PAUSE_SECONDS = 0.2
"""Pause after a failed accept; the usual cause is that no file descriptors are left."""

log = logging.getLogger("moorage.http")


class NoPlaceError(Exception):
    """There are too many connections; the message is for the client."""


class ConnectionCounter:
    """Counts the connections at one listener, in total and per address."""

    def __init__(self, most: int, each_most: int, proxies: Proxies) -> None:
        self._most = most
        self._each_most = each_most
        self._proxies = proxies
        self._count = 0
        self._counts: dict[str, int] = {}
        self._source = lru_cache(maxsize=4_096)(self._source_of)

    def enter(self, host: str) -> "CountedConnection":
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
        return CountedConnection(self, source)

    def left(self, source: str | None) -> None:
        """Stop counting a connection."""
        self._count -= 1
        if source is not None:
            self._counts[source] -= 1
            if not self._counts[source]:
                del self._counts[source]

    def _source_of(self, host: str) -> str | None:
        """Return the name under which a host is counted; None if it is exempt."""
        address = address_of(host)
        if address is None or address.is_loopback or self._proxies.trusts(host):
            return None
        return source_of(address)


class CountedConnection:
    """One counted connection."""

    __slots__ = ("_places", "_source")

    def __init__(self, places: ConnectionCounter, source: str | None) -> None:
        self._places: ConnectionCounter | None = places
        self._source = source

    def leave(self) -> None:
        """Stop counting the connection; does nothing if called again."""
        if self._places is not None:
            self._places.left(self._source)
            self._places = None


def _nothing() -> None:
    """Do nothing."""


class HealthPlace:
    """The place of one connection beyond the limits."""

    __slots__ = ("_places", "drop", "host", "since")

    def __init__(self, places: "HealthPlaces", host: str, since: float) -> None:
        self._places = places
        self.host = host
        self.since = since
        self.drop: Callable[[], object] = _nothing
        """Ends the connection."""

    def leave(self) -> None:
        """Free the place; does nothing if called again."""
        self._places.left(self)
        self.drop = _nothing  # else it would keep the connection, and that this


class HealthPlaces:
    """The few places of one listener beyond its limits.

    Clients that are silent, or do not close, could hold them for ever, again and again. So if all
    are taken, one that is held for long gives way; and at once one of an address that has more than
    its share.
    """

    def __init__(self, most: int = HEALTH_CONNECTIONS_MAX) -> None:
        self._most = most
        self._held: dict[HealthPlace, None] = {}  # the oldest first

    def enter(self, host: str, now: float) -> HealthPlace:
        """Return a place for a connection from a host. Raises NoPlaceError."""
        address = address_of(host)
        source = host if address is None else source_of(address)
        if len(self._held) >= self._most:
            self._make_room(source, now)
        place = HealthPlace(self, source, now)
        self._held[place] = None
        return place

    def left(self, place: HealthPlace) -> None:
        """Free a place; does nothing if it is free."""
        self._held.pop(place, None)

    def _make_room(self, source: str, now: float) -> None:
        counts = Counter(place.host for place in self._held)
        busiest, count = max(counts.items(), key=itemgetter(1), default=(source, 0))
        if counts[source] + 1 < count:
            oldest = next(place for place in self._held if place.host == busiest)
        else:
            old = (place for place in self._held if now - place.since >= HEALTH_SECONDS_MIN)
            first = next(old, None)
            if first is None:
                raise NoPlaceError(f"More than {self._most} connections beyond the limits.")
            oldest = first
        self.left(oldest)
        oldest.drop()


class Acceptor:
    """Accepts connections until it is closed; to uvicorn it looks like an asyncio server."""

    def __init__(
        self,
        listener: socket.socket,
        places: ConnectionCounter,
        health_places: HealthPlaces,
        protocol: Callable[[], GuardedProtocol],
        tls: Callable[[], ssl.SSLContext | None],
        handshake_seconds: float,
    ) -> None:
        """Start listening.

        Args:
            listener: a bound socket.
            places: limits the number of connections.
            health_places: the same for those beyond it.
            protocol: creates the protocol of each connection.
            tls: returns the TLS context for new connections; None: no TLS.
            handshake_seconds: time limit of the TLS handshake.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._places = places
        self._health_places = health_places
        self._protocol = protocol
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._rests = False
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self._go_on()

    def rest(self) -> None:
        """Stop accepting; does nothing if called again."""
        if self._rests:
            return
        self._rests = True
        if self._pause is None:
            self._loop.remove_reader(self._listener.fileno())
        else:
            self._pause.cancel()

    async def begun(self, seconds_max: float) -> None:
        """Wait until the handshakes in progress are finished, at most this long."""
        if self._beginning:
            await asyncio.wait(self._beginning, timeout=seconds_max)

    def close(self) -> None:
        """Stop accepting, and drop connections whose handshake is not finished."""
        self.rest()
        for task in self._beginning:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the dropped connections are closed."""
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
            except ConnectionAbortedError:  # the client has already closed it
                continue
            except OSError as error:
                log.error("cannot accept connections: %s", error)
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            self._take(connection, address[0])

    def _take(self, connection: socket.socket, host: str) -> None:
        connection.setblocking(False)
        protocol = self._protocol()
        try:
            protocol.place = self._places.enter(host)
        except NoPlaceError as error:
            protocol.full = str(error)
            try:
                protocol.place = beyond = self._health_places.enter(host, self._loop.time())
            except NoPlaceError:
                self._refuse(connection, host, protocol.full)
                return
        task = self._loop.create_task(self._begin(connection, host, protocol))
        self._beginning.add(task)
        task.add_done_callback(partial(self._begun, connection, protocol))
        if protocol.full is not None:
            beyond.drop = lambda: protocol.give_way() if protocol.begun else task.cancel()

    def _refuse(self, connection: socket.socket, host: str, full: str) -> None:
        log.info("refused %s: 503 %s", host, full)
        with suppress(OSError):
            if self._tls() is None:
                connection.send(refusal_bytes(HTTPStatus.SERVICE_UNAVAILABLE, full))
        connection.close()

    async def _begin(self, connection: socket.socket, host: str, protocol: GuardedProtocol) -> None:
        """Pass a connection to its protocol, which leaves its place when the connection ends."""
        context = self._tls()
        seconds, end_seconds = self._handshake_seconds, None
        if protocol.full is not None and context is not None:
            seconds = end_seconds = min(seconds, HEALTH_SECONDS_MAX)
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=context,
                ssl_handshake_timeout=None if context is None else seconds,
                ssl_shutdown_timeout=end_seconds,
            )
        except OSError as error:  # TLS errors and timeouts are OSErrors
            log.info("the TLS handshake with %s failed: %s", host, error)

    def _begun(
        self, connection: socket.socket, protocol: GuardedProtocol, task: asyncio.Task[None]
    ) -> None:
        self._beginning.discard(task)
        if not protocol.begun:  # then `connection_lost` is never called
            connection.close()  # the task may not have run at all
            if protocol.place is not None:
                protocol.place.leave()
