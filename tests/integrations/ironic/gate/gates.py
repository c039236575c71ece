"""Starts `moorage gate`, and speaks to it byte by byte."""

import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.e2e.support.server import Server

READY = re.compile(r"moorage: gate (?P<url>https?://\S+)")
NOWHERE = "http://127.0.0.1:9"
"""No Moorage: nothing listens on this port."""


def gate(ironic: str, *options: str, moorage: str = NOWHERE, token: str = "unused") -> Server:
    """Start a gate on a free port, with the pool `deploy` unless there are rules."""
    pool = [] if "--rules" in options else ["--pool", "deploy"]
    where = ["--listen", "127.0.0.1:0"] if "--listen" not in options else []
    command = ["gate", "--ironic", ironic, *pool, *where]
    command += ["--url", moorage, "--token", token, *options]
    return Server(command, ready=READY, forked=True)


def connect(url: str) -> socket.socket:
    """Return a connection to a gate."""
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30.0)


def exchange(url: str, request: bytes) -> bytes:
    """Send bytes; return everything that comes until the gate closes."""
    with connect(url) as connection:
        connection.sendall(request)
        found = b""
        while piece := connection.recv(65_536):
            found += piece
        return found


def request(
    method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Return a request after which the gate closes the connection."""
    lines = [f"{method} {target} HTTP/1.1", "Host: ironic:6385", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
