"""The gate's sockets: its own, or those that systemd holds while the gate is started again."""

import os
import ssl
from collections.abc import Mapping
from socket import socket

from moorage.integrations.pem_files import PemError, serving
from moorage.integrations.sockets import ListenError, bound

FIRST_PASSED = 3
"""The number of the first socket that is passed (`sd_listen_fds(3)`)."""

CONNECTIONS_MAX = 4_000


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
