"""One request of the bash functions to a lease proxy, as curl would send it.

`client.sh` contains this file. Needs only Python 3.9.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from moorage.client.proxies import bracketed, proxy_for
from moorage.client.run.process.starters import LOOK_SECONDS

ABORT_SECONDS = 2.0
"""How long to wait for what the proxy has answered already."""


class ProxyServer(NamedTuple):
    """The lease proxy's address, and what to send to it."""

    scheme: str
    host: str
    port: int | None
    path: str
    headers: dict[str, str]


def server_at(url: str) -> ProxyServer:
    """Return the server at a URL: its user and password are sent as curl sends them.

    Raises ValueError; the message shows neither.
    """
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    pair, at, where = place.rpartition("@")
    headers = {}
    if at:
        user, _, password = pair.partition(":")
        basic = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        headers["Authorization"] = f"Basic {basic}"
    try:
        parts = urlsplit(f"{scheme}://{where}{slash}{path}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if scheme not in ("http", "https") or not host:
        raise ValueError(f"{where!r} is not the URL of a server (http://HOST:PORT)")
    return ProxyServer(scheme, host, port, parts.path, headers)


def _opened(
    server: ProxyServer, seconds_max: float
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Return a connection, how paths begin on it, and its headers. Raises ValueError.

    It goes through the proxy that curl would use. Redirects are not followed: they would send the
    password to another server, and change POST to GET.
    """
    scheme, host, port, path, headers = server
    proxy = proxy_for(scheme, host, os.environ)
    to, at = (host, port) if proxy is None else (proxy.host, proxy.port)
    if scheme == "https":
        secure = http.client.HTTPSConnection(to, at, timeout=seconds_max)
        if proxy is not None:
            secure.set_tunnel(host, port, proxy.headers)
        return secure, path, headers
    plain = http.client.HTTPConnection(to, at, timeout=seconds_max)
    if proxy is None:
        return plain, path, headers
    place = bracketed(host) if port is None else f"{bracketed(host)}:{port}"
    return plain, f"http://{place}{path}", {**headers, **proxy.headers}


class Exchange:
    """One POST, sent by a thread, so that the end of the calling shell is noticed meanwhile."""

    def __init__(
        self, url: str, path: str, data: bytes, headers: dict[str, str], seconds_max: float
    ) -> None:
        """Send it. Raises ValueError: the URL, or the proxy of the environment, is not valid."""
        server = server_at(url)
        self._connection, start, own = _opened(server, seconds_max)
        self._request = ("POST", f"{start}{path}", data, {**headers, **own})
        self._done = threading.Event()
        self._answer: tuple[int, str] | None = None
        self._error: Exception = OSError("no answer")
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._connection.request(*self._request)
            response = self._connection.getresponse()
            self._answer = response.status, response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._error = error
        except Exception as error:  # as when the connection is closed meanwhile
            self._error = OSError(str(error))
        finally:
            self._connection.close()
            self._done.set()

    def result(self, check: Callable[[], None]) -> tuple[int, str, BaseException | None]:
        """Wait for the answer; return its status and text.

        Args:
            check: called about every second; its errors end the request, and so do signals.

        Returns:
            Status and text, and the error that ended the wait if the answer came all the same.

        Raises OSError, HTTPException, and the errors of `check`.
        """
        stopped: BaseException | None = None
        try:
            while not self._done.wait(LOOK_SECONDS):
                check()
        except BaseException as error:
            self._abort()
            stopped = error
        if self._answer is not None:
            return (*self._answer, stopped)
        raise self._error if stopped is None else stopped

    def _abort(self) -> None:
        """End the request: the proxy gives back what it grants to a connection that is closed."""
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._done.wait(ABORT_SECONDS)
