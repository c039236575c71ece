"""The limits of one connection: what a client may send, and how long it may be silent or not read.

How many connections there may be is decided in `listening.py`.
"""

import socket

from msgspec import Struct

WAITING_MAX = 16
"""Requests of one connection that may wait until earlier ones are answered."""

WAITING_BODY_MAX = 65_536
"""Bytes of the body of a waiting request."""

UNREAD_MILLISECONDS_MAX = 60_000
"""How long a client may leave sent data unread before the kernel drops the connection."""

SILENT_SECONDS_MAX = 30
"""How long a connection may be silent before the kernel probes the other end: a client may wait for
hours, and its machine may disappear in the meantime."""

PROBE_SECONDS = 10
"""Time between two probes; unanswered for `UNREAD_MILLISECONDS_MAX`, the connection is closed."""


HEALTH_CONNECTIONS_MAX = 32
"""Connections beyond all limits that may ask only for the health: a supervisor that cannot do this
takes a server that is full for one that hangs, and kills it."""

HEALTH_SECONDS_MIN = 1.0
"""How long such a connection keeps its place at least, beside others of its own address.
Supervisors wait about as long for an answer."""

HEALTH_SECONDS_MAX = 5.0
"""How long such a connection may take for its handshake, and for its request."""


class Bounds(Struct, frozen=True):
    """Limits of one connection, from the settings of the same names."""

    header_bytes_max: int
    header_count_max: int
    header_seconds_max: float
    body_seconds_max: float


def end_dead_connections(listener: socket.socket) -> None:
    """Let the kernel end connections of clients that vanish or do not read.

    Connections inherit this from the socket that accepts them.
    """
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS_MAX)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_SECONDS_MAX)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS)
