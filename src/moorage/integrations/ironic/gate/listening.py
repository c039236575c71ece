"""The gate's sockets: its own, or those that systemd holds while the gate is started again."""

import os
import ssl
from socket import socket

from moorage.integrations.pem_files import PemError, serving
from moorage.integrations.sockets import ListenError, bound
from moorage.systemd.passed_sockets import (
    LISTEN,
    PassedSocketError,
    check_agrees,
    passed_sockets,
)

METRICS = "metrics_listen"
LISTEN_BY_DEFAULT = "127.0.0.1:6385"

CONNECTIONS_MAX = 4_000


def listening(address: str | None, metrics: str | None) -> tuple[list[socket], list[socket]]:
    """Return the sockets for clients and for metrics: those that systemd passes, or own ones.

    Args:
        address: HOST:PORT for clients; None: nobody has chosen one.
        metrics: the same for metrics; None: there are none.

    Raises:
        ListenError: an address cannot be used, or a passed socket contradicts it.
    """
    try:
        passed = passed_sockets(os.environ, os.getpid(), (LISTEN, METRICS))
        if LISTEN in passed and address is not None:
            check_agrees("--listen", address, passed[LISTEN])
        if METRICS in passed and metrics is not None:
            check_agrees("--metrics-listen", metrics, passed[METRICS])
    except PassedSocketError as error:
        raise ListenError(str(error)) from None
    own = passed.get(LISTEN) or bound(LISTEN_BY_DEFAULT if address is None else address)
    return own, passed.get(METRICS) or ([] if metrics is None else bound(metrics))


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
