"""One request and its answer, over HTTP or HTTPS, as JSON; every failure told apart.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

SECONDS_MAX = 60.0
"""How long to wait for the server, by default."""

ANSWER_BYTES_MAX = 256 << 20
"""Bytes in an answer; more is not from a Moorage server."""


LINE_BYTES_MAX = 32 << 20
"""Bytes in one line of a stream."""

UNAUTHORIZED = 401
NOT_FOUND = 404
UNROUTED = ("unrouted", "unknown")
"""The codes of a 404 that tells of an address: a Moorage's, and one that is no Moorage's."""

PEM_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

X509_PARTIAL_CHAIN = ssl.VerifyFlags(0x80000)
"""OpenSSL's X509_V_FLAG_PARTIAL_CHAIN; Python names it from 3.10 on."""


class UnreachableError(Exception):
    """No server answered; it is unknown whether a request that was sent was carried out."""


class RefusedError(Exception):
    """The server refused. `code` is stable and for programs, the message for people.

    `oldest` is told with the code `changes_gone` only, see `wire.problems`. `retry_after` is in
    seconds; None: the server does not say when to try again.
    """

    retry_after: float | None = None

    def __init__(
        self, status: int, code: str, message: str, request_id: str, oldest: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.oldest = oldest


class Transport:
    """Requests to one server, each on a connection of its own."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        certificate: str | None = None,
        seconds_max: float = SECONDS_MAX,
    ) -> None:
        """Remember where to ask and as whom.

        Args:
            url: the server's, `http://HOST:PORT` or `https://HOST:PORT`, with a path prefix if any.
            token: sent as `X-Auth-Token`; see `token_of`.
            certificate: a PEM file; a server that shows exactly this certificate (of several, one
                of them) is believed, whatever name it bears. It is read for each connection, as it
                may be renewed meanwhile. By default the system's authorities decide.
            seconds_max: longest wait for the server.

        Raises:
            ValueError: the URL or the token is none, or the certificate cannot be read.
        """
        parts = _parts(url)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = None if token is None else token_of(token, "what was given")
        self._seconds_max = seconds_max
        self._certificate = certificate
        self._tls = _context(certificate) if parts.scheme == "https" else None

    def request(
        self, method: str, path: str, body: Any = None, *, seconds_max: float | None = None
    ) -> Any:
        """Send one request; return its decoded answer, None for an empty one.

        `seconds_max` is the longest wait for the server; by default that of the transport.

        Raises:
            UnreachableError: there was no answer.
            RefusedError: the answer is not a 2xx.
        """
        headers = self._headers("application/json")
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body)
        return self._judged(path, *self._exchange(method, path, data, headers, seconds_max))

    def lines(self, path: str, accept: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Send a GET; yield the lines of its endless answer as they come, until it ends.

        Raises:
            UnreachableError: there was no answer, or its connection was lost.
            RefusedError: the answer is not a 2xx.
        """
        connection = self._connection()
        try:
            connection.request(
                "GET", f"{self._prefix}{path}", None, {**self._headers(accept), **headers}
            )
            response = connection.getresponse()
            if response.status != 200:
                self._judged(path, response.status, _whole(response))
            while line := response.readline(LINE_BYTES_MAX):
                yield line
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no answer from {self._where}: {error}") from error
        finally:
            connection.close()

    def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if self._token is not None:
            headers["X-Auth-Token"] = self._token
        return headers

    def _judged(self, path: str, status: int, raw: bytes, retry_after: str | None = None) -> Any:
        """Return the decoded answer. Raises UnreachableError, RefusedError."""
        try:
            return _decoded(status, raw, retry_after)
        except RefusedError as refusal:
            if status == UNAUTHORIZED:
                known = "wants a token" if self._token is None else "does not accept this token"
                refusal.args = (f"the server {known}",)
            elif status == NOT_FOUND and refusal.code in UNROUTED:
                asked = f"http{'s' if self._tls else ''}://{self._where}{self._prefix}"
                refusal.args = (
                    f"{asked} is no Moorage (404 for {path.partition('?')[0]}): "
                    "MOORAGE_URL looks like http://HOST:PORT",
                )
            raise

    @property
    def _where(self) -> str:
        return f"{self._host}:{self._port}" if self._port else self._host

    def reachable(self) -> bool:
        """Does a server answer, whatever it says?"""
        try:
            self._exchange("GET", "/healthz", None, {})
        except UnreachableError:
            return False
        return True

    def _exchange(
        self,
        method: str,
        path: str,
        data: str | None,
        headers: dict[str, str],
        seconds_max: float | None = None,
    ) -> tuple[int, bytes, str | None]:
        """Return status, body and `Retry-After` of the answer."""
        connection = self._connection(seconds_max)
        try:
            connection.request(method, f"{self._prefix}{path}", data, headers)
            response = connection.getresponse()
            return response.status, _whole(response), response.getheader("Retry-After")
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no answer from {self._where}: {error}") from error
        finally:
            connection.close()

    def _connection(self, seconds_max: float | None = None) -> http.client.HTTPConnection:
        timeout = self._seconds_max if seconds_max is None else seconds_max
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        if self._certificate is None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._tls
            )
        try:
            return _Pinned(self._host, self._port, timeout, self._certificate)
        except (OSError, ValueError) as error:
            raise UnreachableError(f"no way to {self._where}: {error}") from error


class _Pinned(http.client.HTTPSConnection):
    """A connection to a server that shows one of the certificates in a file.

    That something is signed by one of them is not enough: they may be those of an authority, and
    its other servers, whose names nobody compares here, are not to be sent the token.
    """

    def __init__(self, host: str, port: int | None, timeout: float, file: str) -> None:
        super().__init__(host, port, timeout=timeout, context=_context(file))
        self._file = file
        self._pinned = _certificates(file)

    def connect(self) -> None:
        """Connect. Raises OSError: the server shows another certificate."""
        super().connect()
        if self.sock.getpeercert(binary_form=True) not in self._pinned:
            self.close()
            raise ssl.SSLCertVerificationError(
                f"the server does not show the certificate in {self._file}"
            )


def token_of(text: str, source: str) -> str:
    """Return a token as it is sent: without the white space around what was read.

    A header can carry nothing else than this, and what cannot be sent would be quoted in errors
    that end in logs; so it is refused here, without a word of what it is.

    Args:
        text: as it was read.
        source: where from, for the message.

    Raises:
        ValueError: it is empty, or not of visible ASCII characters only.
    """
    token = text.strip()
    if not token or not all("!" <= character <= "~" for character in token):
        raise ValueError(
            f"{source} is no token: that is one word of visible ASCII characters, on one line"
        )
    return token


def _parts(url: str) -> SplitResult:
    """Part the URL of a server. Raises ValueError."""
    parts = urlsplit(url.strip())
    try:
        named = parts.hostname and parts.hostname.encode("idna") and parts.port != 0
    except ValueError:
        named = None
    sendable = all("!" <= character <= "~" for character in parts.path)
    if parts.scheme not in ("http", "https") or not named or not sendable:
        raise ValueError(f"{url!r} is not the URL of a server (http://HOST:PORT)")
    return parts


def _context(certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificate)
    if certificate is not None:
        context.check_hostname = False
        context.verify_flags |= X509_PARTIAL_CHAIN
    return context


def _certificates(file: str) -> list[bytes]:
    """Return the certificates in a PEM file. Raises OSError, ValueError."""
    with open(file, encoding="latin-1") as opened:  # there may be text between them
        return [ssl.PEM_cert_to_DER_cert(one) for one in PEM_CERTIFICATE.findall(opened.read())]


def _whole(response: http.client.HTTPResponse) -> bytes:
    """Read an answer to its end. Raises IncompleteRead: the connection was lost before that.

    `HTTPResponse` takes what has come for all there is: half a head for a head without a length,
    and, if it is asked for so many bytes at most, half a body for a body.
    """
    length = response.length
    raw = response.read(ANSWER_BYTES_MAX if length is None else min(length, ANSWER_BYTES_MAX))
    headless = length is None and not response.chunked and not raw
    if headless or (length is not None and len(raw) < length):
        raise http.client.IncompleteRead(raw)
    return raw


def _decoded(status: int, raw: bytes, retry_after: str | None = None) -> Any:
    try:
        decoded = json.loads(raw) if raw else None
    except ValueError:
        if 200 <= status < 300:
            raise UnreachableError("what answered is no Moorage server: not JSON") from None
        decoded = None
    if 200 <= status < 300:
        return decoded
    refusal = refusal_of(status, decoded if isinstance(decoded, dict) else {})
    if retry_after is not None and retry_after.isdigit():
        refusal.retry_after = float(retry_after)
    raise refusal


def refusal_of(status: int, problem: Mapping[str, Any]) -> RefusedError:
    """Return the refusal that a problem tells of, as far as it does."""
    return RefusedError(
        status,
        str(problem.get("code", "unknown")),
        str(problem.get("detail", f"the server answered {status}")),
        str(problem.get("request_id", "-")),
        problem.get("oldest"),
    )
