"""Sends requests over HTTP or HTTPS, decodes JSON answers, and classifies failures.

Part of the single file that runs on Python 3.9, see `run/`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Union
from urllib.parse import SplitResult, urlsplit

from moorage.client.proxies import PROXY_PASSWORD, bracketed, proxy_for
from moorage.client.tokens import FileValue

if TYPE_CHECKING:
    import http.client
    import ssl

Token = Union[str, FileValue[str], None]
"""A token, or the file that has it; None: none is sent."""

SECONDS_MAX = 60.0
"""How long to wait for the server, by default."""

ANSWER_BYTES_MAX = 256 << 20
"""Bytes in an answer; Moorage never sends more."""

LINE_BYTES_MAX = 32 << 20
"""Bytes in one line of a stream."""

PAGES = "/ui"
PAGES_LINK = re.compile(f"<[^>]*{PAGES}>;")
"""How the header `Link` begins if the server has pages for people; it has the server's prefix."""

TOKEN_HEADER = "X-Auth-Token"
UNAUTHORIZED = 401
PROXY_UNAUTHORIZED = 407
NOT_FOUND = 404
NO_SUCH_METHOD = 405
OUR_UNROUTED = "unrouted"
UNROUTED = (OUR_UNROUTED, "unknown")
"""Codes of a 404 for an unknown path: from Moorage, and from another server."""


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
    token_may_change = False
    """Whether the token is in a file, which may have another one soon."""

    def __init__(
        self, status: int, code: str, message: str, request_id: str, oldest: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.request_id = request_id
        self.oldest = oldest
        self.problem: Mapping[str, Any] = {}
        """All members of the answer."""

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later: the server fails, or has too much to do."""
        return self.status >= 500 or self.status == TOO_MANY


TOO_MANY = 429

CONFIRMS = "Moorage-Confirms"
"""The header of a request whose sender will renew a lease of which the answer tells. Without it, a
server takes the grant as confirmed once the answer was read, which a proxy may have done."""


def refused_token(token: Token | Callable[[], str]) -> str:
    """Return what a server does that has refused a token."""
    if token is None:
        return "requires a token"
    if isinstance(token, FileValue):
        return f"does not accept the token in {token.path}"
    return "does not accept this token"


class Transport:
    """Sends requests to one server, each on a new connection."""

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        certificate: str | None = None,
        ca_file: str | None = None,
        trusted: ssl.SSLContext | None = None,
        seconds_max: float = SECONDS_MAX,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare requests to a server; does not connect.

        Args:
            url: the server's, `http://HOST:PORT` or `https://HOST:PORT`, with a path prefix if any.
            token: sent as `X-Auth-Token`; see `token_of`. That of a file is read again whenever
                the file has changed, and when the server does not accept it.
            certificate: a PEM file; trust only a server that presents exactly this certificate (or
                one of several), whatever its name. It is read again for each connection, because
                it may be renewed. By default the system's certificate authorities are trusted.
            ca_file: a PEM file with the certificate authorities to trust instead of the system's.
            trusted: as `ca_file`, as a context of TLS.
            seconds_max: longest wait for the server.
            answer_bytes_max: a longer answer counts as none.
            environ: the variables that name proxies, see `proxies`; by default those of the
                process. Empty: the server is asked directly.

        Raises:
            ValueError: the URL or the token is not valid, the certificate cannot be read, or the
                proxy cannot be used.
        """
        parts = _parts(url)
        self.url = shown_url(url)
        """Its address for people."""
        self.context: str | None = None
        """The context that names it; errors say so, because nobody has typed the address."""
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._token = token_of(token, "what was given") if isinstance(token, str) else token
        self._seconds_max = seconds_max
        self._answer_bytes_max = answer_bytes_max
        self._certificate = certificate
        self.server_time: datetime | None = None
        """The time of the newest answer by the server's clock, to the second; None: unknown."""
        self.pages: str | None = None
        """The address of the server's pages for people, by its newest answer; None: it has none."""
        if certificate is not None and ca_file is not None:
            raise ValueError("a certificate and a CA file exclude each other: use one of them")
        self._tls = None
        if parts.scheme == "https":
            self._tls = trusted or _tls(certificate, ca_file)
        variables = os.environ if environ is None else environ
        self._proxy = proxy_for(parts.scheme, self._host, variables)

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
        answer = self._exchange(method, path, data, headers, seconds_max)
        if answer[0] == UNAUTHORIZED and self._has_newer(headers):
            answer = self._exchange(method, path, data, headers, seconds_max)
        return self._judged(path, *answer)

    def _has_newer(self, headers: dict[str, str]) -> bool:
        """Put the token into headers that its file has now; return whether it is another one."""
        if not isinstance(self._token, FileValue):
            return False
        before, headers[TOKEN_HEADER] = headers.get(TOKEN_HEADER), self._token(again=True)
        return headers[TOKEN_HEADER] != before

    def lines(self, path: str, accept: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Send a GET; yield the lines of a streamed answer as they arrive, until it ends.

        Raises:
            UnreachableError: there was no answer, or the connection was lost.
            RefusedError: the status is not 2xx.
        """
        import http.client  # deferred: see `connection`

        sent = self._headers(accept)
        connection = self.connection()
        try:
            response = self._streamed(connection, path, {**sent, **headers})
            if response.status == UNAUTHORIZED and self._has_newer(sent):
                connection.close()
                response = self._streamed(connection, path, {**sent, **headers})
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
            headers[TOKEN_HEADER] = self._token if isinstance(self._token, str) else self._token()
        return headers

    def _for_proxy(self) -> dict[str, str]:
        """Return the headers for the proxy, if it gets the request itself."""
        return {} if self._proxy is None or self._tls is not None else self._proxy.headers

    def _streamed(
        self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection.request("GET", self._target(path), None, {**headers, **self._for_proxy()})
        return connection.getresponse()

    def _target(self, path: str) -> str:
        """Return what to ask for: a proxy gets the whole address, unless it only makes a tunnel."""
        if self._proxy is None or self._tls is not None:
            return f"{self._prefix}{path}"
        return f"http://{self._place}{self._prefix}{path}"

    def _judged(self, path: str, status: int, raw: bytes, retry_after: str | None = None) -> Any:
        """Return the decoded answer. Raises UnreachableError, RefusedError."""
        try:
            return _decoded(status, raw, retry_after)
        except RefusedError as refusal:
            if status == UNAUTHORIZED:
                refusal.token_may_change = isinstance(self._token, FileValue)
                refusal.args = (f"the server {refused_token(self._token)}",)
            elif status == PROXY_UNAUTHORIZED and self._proxy is not None:
                refusal.args = (f"{self._proxy.shown} requires {PROXY_PASSWORD}",)
            elif status in (NOT_FOUND, NO_SUCH_METHOD) and refusal.code in UNROUTED:
                asked = f"http{'s' if self._tls else ''}://{self._place}{self._prefix}"
                place = path.partition("?")[0]
                said = f"{asked} is not a Moorage server ({status} for {place})"
                if refusal.code == OUR_UNROUTED and not self._prefix:
                    said = f"{asked} has nothing at {place}: a name or an id in the address is not"
                    said += " valid, or the server has another release"
                else:
                    said += (
                        ": MOORAGE_URL must be like http://HOST:PORT, below a path http://HOST/PATH"
                    )
                refusal.args = (said,)
            raise

    @property
    def _place(self) -> str:
        host = bracketed(self._host)
        return f"{host}:{self._port}" if self._port else host

    @property
    def _where(self) -> str:
        place = self._place if self._proxy is None else f"{self._place} by {self._proxy.shown}"
        return place if self.context is None else f"{place} (context {self.context})"

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
        import http.client  # deferred: see `connection`

        connection = self.connection(seconds_max)
        try:
            sent = {**headers, **self._for_proxy()}
            connection.request(method, self._target(path), data, sent)
            response = connection.getresponse()
            raw = _whole(response, self._answer_bytes_max)
            self.server_time = _time(response.getheader("Date")) or self.server_time
            has_pages = PAGES_LINK.match(response.getheader("Link", ""))
            self.pages = f"{self.url}{PAGES}" if has_pages else None
            return response.status, raw, response.getheader("Retry-After")
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"no answer from {self._where}: {_reason(error)}") from error
        finally:
            connection.close()

    def got(
        self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a GET on a connection that stays open; return status, headers and body.

        It is for other APIs than the native one: every status is an answer. `headers` are sent
        besides the token; the names of those that are returned are in lower case. After
        UnreachableError the connection is closed; it opens again.
        """
        import http.client  # deferred: see `connection`

        sent = self._headers("application/json")
        try:
            response = self._streamed(connection, path, {**sent, **headers})
            if response.status == UNAUTHORIZED and self._has_newer(sent):
                _whole(response, self._answer_bytes_max)
                response = self._streamed(connection, path, {**sent, **headers})
            raw = _whole(response, self._answer_bytes_max)
            response.close()  # an empty one is still open, and would be in the way of the next
            sent_back = {name.lower(): value for name, value in response.headers.items()}
            return response.status, sent_back, raw
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise UnreachableError(f"no answer from {self._where}: {_reason(error)}") from error

    def connection(self, seconds_max: float | None = None) -> http.client.HTTPConnection:
        """Return a connection to the server, or its proxy; it opens with the first request."""
        # deferred: a fifth of the start of a command that sends nothing, such as one with --help
        import http.client

        timeout = self._seconds_max if seconds_max is None else seconds_max
        proxy = self._proxy
        host, port = (self._host, self._port) if proxy is None else (proxy.host, proxy.port)
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout)
        connection: http.client.HTTPSConnection
        if self._certificate is None:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
        else:
            from moorage.client.tls import PinnedConnection

            try:
                connection = PinnedConnection(host, port, timeout, self._certificate)
            except (OSError, ValueError) as error:
                raise UnreachableError(f"cannot connect to {self._where}: {error}") from error
        if proxy is not None:
            connection.set_tunnel(self._host, self._port, proxy.headers)
        return connection


def _tls(certificate: str | None, ca_file: str | None) -> ssl.SSLContext:
    """Return how to speak TLS, see `tls_context`. Raises ValueError."""
    from moorage.client.tls import tls_context  # deferred: most commands reach a local server

    return tls_context(certificate, ca_file)


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


def token_in(path: str) -> FileValue[str]:
    """Return the token in a file, as it is whenever it is sent. Raises OSError, ValueError."""
    return FileValue(path, lambda text: token_of(text, path))


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


def _whole(response: http.client.HTTPResponse, most: int) -> bytes:
    """Read a complete answer. Raises IncompleteRead: it was lost before its end, or is too long.

    `HTTPResponse` does not detect this: it takes an incomplete head for one without a length, and
    returns an incomplete body if the number of bytes to read is given.
    """
    import http.client  # deferred: see `Transport.connection`

    length = response.length
    raw = response.read(most + 1 if length is None else min(length, most))
    headless = length is None and not response.chunked and not raw
    if headless or len(raw) > most or (length is not None and len(raw) < length):
        raise http.client.IncompleteRead(raw)
    return raw


def _time(date: str | None) -> datetime | None:
    """Return the time in a `Date` header; None: there is none, or it cannot be read."""
    from email.utils import parsedate_to_datetime  # deferred: imported with http.client

    try:
        found = None if date is None else parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
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


UNKNOWN_AUTHORITY = (18, 19, 20, 21)
"""OpenSSL's codes: self-signed, alone or at the end of a chain, or the issuer is missing."""

TRUST_HINT = (
    "; to trust it, name its file with --certificate or MOORAGE_CERTIFICATE, or that of its"
    " authority with --ca-file or MOORAGE_CA_FILE"
)


def _reason(error: Exception) -> str:
    """Return what is wrong, without the number of an OSError, and without OpenSSL's names."""
    tls = sys.modules.get("ssl")  # http.client imports it, where this Python has it
    if tls is not None and isinstance(error, tls.SSLCertVerificationError):
        said = getattr(error, "verify_message", "") or str(error)
        hint = TRUST_HINT if getattr(error, "verify_code", 0) in UNKNOWN_AUTHORITY else ""
        return f"its certificate is not trusted: {said}{hint}"
    if tls is not None and isinstance(error, tls.SSLError):
        return "the TLS handshake failed: is this the address of an HTTPS server?"
    import http.client  # deferred: see `Transport.connection`

    if isinstance(error, http.client.IncompleteRead):
        return "the answer breaks off, or is too long"
    return str(getattr(error, "strerror", None) or error)


def refusal_of(status: int, problem: Mapping[str, Any]) -> RefusedError:
    """Convert a problem document to an exception; missing members get defaults."""
    refusal = RefusedError(
        status,
        str(problem.get("code", "unknown")),
        str(problem.get("detail", f"the server answered {status}")),
        str(problem.get("request_id", "-")),
        problem.get("oldest"),
    )
    refusal.problem = problem
    return refusal
