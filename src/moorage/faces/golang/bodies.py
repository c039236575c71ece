"""Reading bodies on the port of Boskos, where callers may be anybody: they are short."""

from collections.abc import Callable
from typing import TypeVar

from moorage.faces.web import Limits, Receive, Scope, body_read, decoded, headers_of

BYTES_MAX = 65_536
"""Bytes in a body: far above what Boskos' clients send, and scanned within 40 ms if it is wrong."""

LONG_BYTES = 4_096
"""Bytes of a body from which on it is decoded in a thread: to scan it would take 2 ms."""

NAMES_MAX = 1_000
"""Names in one request."""

T = TypeVar("T")


async def body_of(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """Read the whole body of a request. Raises RefusalError."""
    most = min(limits.body_bytes_max, BYTES_MAX)
    setting = f"body_bytes_max, at most {BYTES_MAX} at this address"
    return await body_read(headers_of(scope), receive, most, setting)


async def read(body: bytes, work: Callable[[], T]) -> T:
    """Do what there is to do with a body, a long one in a thread."""
    return await decoded(body, work, LONG_BYTES)
