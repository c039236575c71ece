"""HTTP basics that all faces share: callers, request ids, bounded and checked input.

Invalid input is refused here with a reason (`RefusalError`) before a handler sees it: bodies that
are too large, compressed or truncated, and query strings that are too long or not UTF-8. For JSON
see `json_decoding.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import lru_cache
from http import HTTPStatus
from random import getrandbits
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.limits import (
    BODY_BYTES_MAX,
    BULK_BYTES_MAX,
    QUERY_BYTES_MAX,
    QUERY_PARAMETERS_MAX,
)
from moorage.service.access.roles import Scope as RoleScope

LENGTH_DIGITS_MAX = 18
"""Digits of a content-length that are read: far above any limit."""

SEND_SECONDS_MAX = 20.0
"""How long a caller may leave the sent part of a long answer unread."""

ABORT = "moorage.abort"
"""In a request's scope: a function that closes the connection at once and drops unsent data."""

DELIVERY = "moorage.delivery"
"""In a request's scope: a function that watches whether the client reads the answer. Call it just
before that is sent, with what is to be called with true, false, or None if this stays unknown."""

WHOLE = "moorage.whole"
"""In a request's scope: its connection also takes a message of this type, a complete answer: its
`status`, `headers` and `body`. So an answer goes through each layer once, see `answer_send`."""

ANSWERED = "moorage.answered"
"""In a request's scope: status and headers of its answer, once that has begun."""

WAITED = "moorage.waited"
"""Set in a request's scope once it waits intentionally, for units or for changes."""

CALLER = "moorage.caller"
"""In a request's scope: the authenticated `Caller`, for the access log."""

ROUTINE = "moorage.routine"
"""Set in the scope of a request that the access log omits if it succeeds: a sign of life."""

REQUEST_ID = b"x-openstack-request-id"
"""The header of an answer with the id of its request."""

RETRY_AFTER = (b"retry-after", b"1")
"""The header of a 503 or 429: the seconds that a client should wait before it retries."""

USER_SHOWN_MAX = 64
"""Characters of a user's id that the access log shows."""

Scope = MutableMapping[str, Any]
"""As ASGI has it, except that `path` does not begin with `root_path`: see `serve/mount.py`."""
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

Headers = list[tuple[bytes, bytes]]
"""Lower-case names and values, as ASGI has them."""

PromptAnswer = Callable[[str, str], tuple[int, Headers, bytes] | None]
"""Returns status, headers and body of an answer that needs only memory; None: the application must
answer. It may be called again whenever the same bytes arrive, and neither waits nor raises.

The arguments are the scheme of the connection and the address of the client, empty if unknown."""

Prompt = Callable[[Scope, bytes], PromptAnswer | None]
"""Returns what may answer a request with this body from memory; None: the application must."""


async def left(scope: Scope, receive: Receive) -> None:
    """Wait intentionally until the caller disconnects, see `WAITED`."""
    scope[WAITED] = True
    await gone(receive)


async def gone(receive: Receive) -> None:
    """Wait until a caller disconnects; anything it sends until then is dropped."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Caller(Struct, frozen=True):
    """The caller of a request: identified by an authenticator, authorized by a face's policy.

    `roles` are lower case. `system_scope` is Keystone's: the caller acts for the whole
    deployment rather than for one project, and `project_id` is then None.
    """

    user_id: str
    project_id: str | None
    roles: frozenset[str]
    system_scope: bool = False
    token_id: str | None = None
    """The id of the presented token, if it is one of Moorage's own."""
    scope: RoleScope | None = None
    """The scope of a token with a scoped role; such a caller has no `roles`."""
    foreign: frozenset[str] = frozenset()
    """Roles that count for OpenStack's policies but not for the native API."""
    expires_at: Instant | None = None
    """When the presented token expires, if it is one of Moorage's own and does."""

    @property
    def identity(self) -> str:
        """The token's id, or else the user's: those with the same share limits on what they do."""
        return self.token_id or self.user_id

    @property
    def label(self) -> str:
        """The caller as one word for log lines, without any secret."""
        return _label(self.token_id, self.user_id)


@lru_cache(maxsize=4_096)
def _label(token_id: str | None, user_id: str) -> str:
    if token_id is not None:
        return f"token:{token_id}"
    return f"user:{quote(user_id[:USER_SHOWN_MAX], safe=':@')}"


class Authenticator(Protocol):
    """The interface of authentication schemes."""

    async def authenticate(self, headers: Mapping[str, str], client: str = "") -> Caller | None:
        """Return the caller, or None if the request must be answered 401.

        Args:
            headers: by lower-case name; repeated headers are joined with a comma.
            client: the source address, as reported by trusted proxies.

        Raises:
            Error: UNAVAILABLE, if the token cannot be validated now.
        """
        ...


class Recognized(NamedTuple):
    """A caller that memory is enough to know."""

    caller: Caller
    still: Callable[[], object]
    """Returns something if memory is still enough and its token valid, and notes the use of it."""


Recognize = Callable[[Mapping[str, str]], Recognized | None]
"""Returns the caller with these headers, if memory is enough to know."""


class RefusalError(Exception):
    """A refusal of invalid input. `status` is an HTTP status, `message` the reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = int(status)
        self.message = message


class Limits(Struct, frozen=True):
    """Limits on the size of one request. Settings of the process."""

    body_bytes_max: int = BODY_BYTES_MAX
    """Bytes in a body; setting `body_bytes_max`."""
    bulk_bytes_max: int = BULK_BYTES_MAX
    """Bytes in the body of a bulk request (reshaper, reports); setting `bulk_bytes_max`."""
    query_bytes_max: int = QUERY_BYTES_MAX
    """Bytes in a query string; setting `query_bytes_max`."""
    query_parameters_max: int = QUERY_PARAMETERS_MAX
    """Parameters in a query string; setting `query_parameters_max`."""


async def answer_send(scope: Scope, send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a complete answer. `headers` has its content-length, unless it has no content."""
    if WHOLE in scope:
        await send({"type": WHOLE, "status": status, "headers": headers, "body": body})
        return
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def request_id_new() -> str:
    """Return a fresh request id in OpenStack's form: `req-` and a random UUID."""
    # It need not be secret. Version 4, variant 1; uuid.UUID would take far longer.
    text = getrandbits(128).to_bytes(16).hex()
    return f"req-{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


_NAMES = {
    name.encode(): name
    for name in (
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "openstack-api-version",
        "user-agent",
        "x-auth-token",
    )
}
"""Names that most requests have."""


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the request's headers by lower-case name; repeated ones are joined with a comma."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = _NAMES.get(raw_name) or raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


async def body_read(
    headers: Mapping[str, str], receive: Receive, limit: int, setting: str
) -> bytes:
    """Read the whole body of a request.

    Args:
        headers: of the request, by lower-case name.
        receive: of the ASGI application.
        limit: the most bytes that are accepted.
        setting: the name of the setting for this limit, for the message.

    Raises:
        RefusalError: 413 over the limit, 415 for a compressed body, 400 if it is truncated.
    """
    encoding = headers.get("content-encoding")
    if encoding is not None and (encoding := encoding.strip().lower()) not in ("", "identity"):
        raise RefusalError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Encoding {encoding} is not supported: send the body uncompressed.",
        )
    declared = headers.get("content-length", "")[:LENGTH_DIGITS_MAX]
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise _too_large(limit, setting)
    message = await receive()
    if not message.get("more_body") and message["type"] == "http.request":
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit, setting)
        return body
    return await _body_rest(message, receive, limit, setting)


async def _body_rest(message: Message, receive: Receive, limit: int, setting: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise RefusalError(HTTPStatus.BAD_REQUEST, "The request body ended before its end.")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit, setting)
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)
        message = await receive()


def _too_large(limit: int, setting: str) -> RefusalError:
    return RefusalError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"The request body is larger than {limit} bytes, the limit set by {setting}.",
    )


def query_parse(query_string: bytes, limits: Limits) -> list[tuple[str, str]]:
    """Split a query string into decoded (name, value) pairs, in order.

    Raises:
        RefusalError: 414 if it is too long, 400 if it has too many parameters, is not UTF-8 or
            contains the character NUL.
    """
    if not query_string:
        return []
    if len(query_string) > limits.query_bytes_max:
        raise RefusalError(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            f"The query string is longer than {limits.query_bytes_max} bytes, "
            "the limit set by query_bytes_max.",
        )
    parts = [part for part in query_string.split(b"&") if part]
    if len(parts) > limits.query_parameters_max:
        raise RefusalError(
            HTTPStatus.BAD_REQUEST,
            f"The query string has more than {limits.query_parameters_max} parameters, "
            "the limit set by query_parameters_max.",
        )
    pairs = []
    for part in parts:
        name, _, value = part.partition(b"=")
        pairs.append((_text_unquote(name), _text_unquote(value)))
    return pairs


def _text_unquote(raw: bytes) -> str:
    """Decode plus signs and percent escapes to text.

    Raises:
        RefusalError: 400 if it is not UTF-8 or contains the character NUL.
    """
    if b"+" in raw:
        raw = raw.replace(b"+", b" ")
    if b"%" in raw:
        raw = unquote_to_bytes(raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise RefusalError(HTTPStatus.BAD_REQUEST, "The request's address is not UTF-8.") from None
    if "\0" in text:
        raise _with_nul()
    return text


def path_check(path: str) -> None:
    """Refuse an address that contains NUL, which databases reject. Raises RefusalError: 400.

    Bytes that are not UTF-8 were replaced when the address was decoded.
    """
    if "\0" in path:
        raise _with_nul()


def _with_nul() -> RefusalError:
    return RefusalError(HTTPStatus.BAD_REQUEST, "The request's address contains NUL.")
