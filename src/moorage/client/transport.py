"""Sends requests over HTTP or HTTPS, decodes JSON answers, and classifies failures.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

SECONDS_MAX = 60.0
"""How long to wait for the server, by default."""

ANSWER_BYTES_MAX = 256 << 20
"""Bytes in an answer; Moorage never sends more."""


LINE_BYTES_MAX = 32 << 20
"""Bytes in one line of a stream."""

PAGES = "/ui"
PAGES_LINK = f"<{PAGES}>;"
"""How the header `Link` begins if the server has pages for people."""

UNAUTHORIZED = 401
NOT_FOUND = 404
NO_SUCH_METHOD = 405
OUR_UNROUTED = "unrouted"
UNROUTED = (OUR_UNROUTED, "unknown")
"""Codes of a 404 for an unknown path: from Moorage, and from another server."""

PEM_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

X509_PARTIAL_CHAIN = ssl.VerifyFlags(0x80000)
"""OpenSSL's X509_V_FLAG_PARTIAL_CHAIN; Python has a name for it only since 3.10."""


class MoorageError(Exception):
    """The server, or the lease, is not as the caller needs it; every error of the client."""


class UnreachableError(MoorageError):
    """No server answered; a request that was sent may or may not have been executed."""


class RefusedError(MoorageError):
    """The server refused the request. `code` is stable, for programs; the message is for people.

    `oldest` is set only with the code `changes_gone`, see `wire.problems`. `retry_after` is in
    seconds; None: the server did not send it.
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


CONFIRMS = "Moorage-Confirms"
"""The header of a request whose sender will renew a lease of which the answer tells. Without it, a
server takes the grant as confirmed once the answer was read, which a proxy may have done."""


class Transport:
    """Sends requests to one server, each on a new connection."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        certificate: str | None = None,
        seconds_max: float = SECONDS_MAX,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        """Prepare requests to a server; does not connect.

        Args:
            url: the server's, `http://HOST:PORT` or `https://HOST:PORT`, with a path prefix if any.
            token: sent as `X-Auth-Token`; see `token_of`.
            certificate: a PEM file; trust only a server that presents exactly this certificate (or
                one of several), whatever its name. It is read again for each connection, because
                it may be renewed. By default the system's certificate authorities are trusted.
            seconds_max: longest wait for the server.
            answer_bytes_max: a longer answer counts as none.

        Raises:
            ValueError: the URL or the token is not valid, or the certificate cannot be parsed.
        """
        parts = _parts(url)
        self.url = shown_url(url)
        """Its address for people."""
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = None if token is None else token_of(token, "what was given")
        self._seconds_max = seconds_max
        self._answer_bytes_max = answer_bytes_max
        self._certificate = certificate
        self.server_time: datetime | None = None
        """The time of the newest answer by the server's clock, to the second; None: unknown."""
        self.pages: str | None = None
        """The address of the server's pages for people, by its newest answer; None: it has none."""
        self._tls = _context(certificate) if parts.scheme == "https" else None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds_max: float | None = None,
        confirms: bool = False,
    ) -> Any:
        """Send one request; return its decoded answer, None for an empty one.

        `seconds_max` is the longest wait for the server; by default that of the transport.
        `confirms`: the caller will renew a lease that the answer tells it of.

        Raises:
            UnreachableError: there was no answer.
            RefusedError: the status is not 2xx.
        """
        headers = self._headers("application/json")
        if confirms:
            headers[CONFIRMS] = "renewal"
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body)
        return self._judged(path, *self._exchange(method, path, data, headers, seconds_max))

    def lines(self, path: str, accept: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Send a GET; yield the lines of a streamed answer as they arrive, until it ends.

        Raises:
            UnreachableError: there was no answer, or the connection was lost.
            RefusedError: the status is not 2xx.
        """
        connection = self._connection()
        try:
            connection.request(
                "GET", f"{self._prefix}{path}", None, {**self._headers(accept), **headers}
            )
            response = connection.getresponse()
            if response.status != 200:
                self._judged(path, response.status, _whole(response, self._answer_bytes_max))
            while line := response.readline(LINE_BYTES_MAX):
                yield line
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no answer from {self._where}: {_reason(error)}") from error
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
                known = "requires a token" if self._token is None else "does not accept this token"
                refusal.args = (f"the server {known}",)
            elif status in (NOT_FOUND, NO_SUCH_METHOD) and refusal.code in UNROUTED:
                asked = f"http{'s' if self._tls else ''}://{self._where}{self._prefix}"
                place = path.partition("?")[0]
                said = f"{asked} is not a Moorage server ({status} for {place})"
                if refusal.code == OUR_UNROUTED and not self._prefix:
                    said = f"{asked} has nothing at {place}: a name or an id in it is not valid, or"
                    said += " the server has another release"
                else:
                    said += ": MOORAGE_URL must be like http://HOST:PORT"
                refusal.args = (said,)
            raise

    @property
    def _where(self) -> str:
        return f"{self._host}:{self._port}" if self._port else self._host

    def reachable(self) -> bool:
        """Return whether a server answers, with any status."""
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
            raw = _whole(response, self._answer_bytes_max)
            self.server_time = _time(response.getheader("Date")) or self.server_time
            has_pages = response.getheader("Link", "").startswith(PAGES_LINK)
            self.pages = f"{self.url}{PAGES}" if has_pages else None
            return response.status, raw, response.getheader("Retry-After")
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no answer from {self._where}: {_reason(error)}") from error
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
            raise UnreachableError(f"cannot connect to {self._where}: {error}") from error


class _Pinned(http.client.HTTPSConnection):
    """A connection that accepts only a server with one of the certificates in a file.

    A certificate that is signed by one of them is not enough: the file may contain an authority's
    certificate, and host names are not checked, so the token could go to another of its servers.
    """

    def __init__(self, host: str, port: int | None, timeout: float, file: str) -> None:
        super().__init__(host, port, timeout=timeout, context=_context(file))
        self._file = file
        self._pinned = _certificates(file)

    def connect(self) -> None:
        """Connect. Raises OSError: the server presents another certificate."""
        super().connect()
        if self.sock.getpeercert(binary_form=True) not in self._pinned:
            self.close()
            raise ssl.SSLCertVerificationError(
                f"the server does not show the certificate in {self._file}"
            )


def token_of(text: str, source: str) -> str:
    """Return a token as it is sent: without surrounding white space.

    Other characters are not valid in a header, and errors about them would show the token in logs;
    so they are refused here, with a message that does not contain the token.

    Args:
        text: as it was read.
        source: where it was read from, for the message.

    Raises:
        ValueError: it is empty, or contains other than visible ASCII characters.
    """
    token = text.strip()
    if not token or not all("!" <= character <= "~" for character in token):
        raise ValueError(
            f"{source} is not a token: a token is one word of visible ASCII characters on one line"
        )
    return token


def server_url(url: str) -> str:
    """Return the URL of a server without surrounding white space. Raises ValueError."""
    _parts(url)
    return url.strip()


def shown_url(url: str) -> str:
    """Return a URL for people: without user and password, query and fragment, which may be secret.

    It may be no URL at all. What is before the last `@` counts as a password, even in a path.
    """
    scheme, slashes, rest = url.strip().partition("://")
    if not slashes:
        scheme, rest = "", url.strip()
    at, rest = ("***@", rest.rpartition("@")[2]) if "@" in rest else ("", rest)
    return f"{scheme}{slashes}{at}{re.split('[?#]', rest, maxsplit=1)[0]}"


def _parts(url: str) -> SplitResult:
    """Split the URL of a server. Raises ValueError."""
    parts = urlsplit(url.strip())
    try:
        named = parts.hostname and parts.hostname.encode("idna") and parts.port != 0
    except ValueError:
        named = None
    sendable = all("!" <= character <= "~" for character in parts.path)
    if parts.scheme not in ("http", "https") or not named or not sendable:
        raise ValueError(f"{shown_url(url)!r} is not the URL of a server (http://HOST:PORT)")
    return parts


def _context(certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certificate)
    if certificate is not None:
        context.check_hostname = False
        context.verify_flags |= X509_PARTIAL_CHAIN
    return context


def _certificates(file: str) -> list[bytes]:
    """Return the certificates in a PEM file. Raises OSError, ValueError."""
    with open(file, encoding="latin-1") as opened:  # may contain other text between them
        return [ssl.PEM_cert_to_DER_cert(one) for one in PEM_CERTIFICATE.findall(opened.read())]


def _whole(response: http.client.HTTPResponse, most: int) -> bytes:
    """Read a complete answer. Raises IncompleteRead: it was lost before its end, or is too long.

    `HTTPResponse` does not detect this: it takes an incomplete head for one without a length, and
    returns an incomplete body if the number of bytes to read is given.
    """
    length = response.length
    raw = response.read(most + 1 if length is None else min(length, most))
    headless = length is None and not response.chunked and not raw
    if headless or len(raw) > most or (length is not None and len(raw) < length):
        raise http.client.IncompleteRead(raw)
    return raw


def _time(date: str | None) -> datetime | None:
    """Return the time in a `Date` header; None: there is none, or it cannot be read."""
    try:
        found = None if date is None else parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    return found if found is not None and found.tzinfo is not None else None


def _decoded(status: int, raw: bytes, retry_after: str | None = None) -> Any:
    try:
        decoded = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        if 200 <= status < 300:
            raise UnreachableError(
                "the server is not a Moorage server: its response is not JSON"
            ) from None
        decoded = None
    if 200 <= status < 300:
        return decoded
    refusal = refusal_of(status, decoded if isinstance(decoded, dict) else {})
    if retry_after is not None and retry_after.isdecimal():
        refusal.retry_after = float(retry_after)
    raise refusal


def _reason(error: Exception) -> str:
    """Return what is wrong, without the number of an OSError."""
    return str(getattr(error, "strerror", None) or error)


def refusal_of(status: int, problem: Mapping[str, Any]) -> RefusedError:
    """Convert a problem document to an exception; missing members get defaults."""
    return RefusedError(
        status,
        str(problem.get("code", "unknown")),
        str(problem.get("detail", f"the server answered {status}")),
        str(problem.get("request_id", "-")),
        problem.get("oldest"),
    )
