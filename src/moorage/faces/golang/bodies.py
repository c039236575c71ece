"""Reads request bodies. Callers need no token here, so bodies are limited to a small size."""

from collections.abc import Callable
from typing import TypeVar

from moorage.core.limits import BOSKOS_BODY_BYTES_MAX
from moorage.faces.web import Limits, Receive, Scope, body_read, decoded, headers_of

LONG_BYTES = 4_096
"""Bodies of at least this many bytes are decoded in a thread: scanning one takes 2 ms."""
T = TypeVar("T")


async def body_of(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """Read the whole body of a request. Raises RefusalError."""
    most = min(limits.body_bytes_max, BOSKOS_BODY_BYTES_MAX)
    setting = f"body_bytes_max, at most {BOSKOS_BODY_BYTES_MAX} at this address"
    return await body_read(headers_of(scope), receive, most, setting)


async def read(body: bytes, work: Callable[[], T]) -> T:
    """Run `work` for a body, in a thread if the body is long."""
    return await decoded(body, work, LONG_BYTES)
