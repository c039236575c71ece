"""Reads request bodies. Callers need no token here, so bodies are limited to a small size."""

from moorage.faces.web import Limits, Receive, Scope, body_read, headers_of

BYTES_MAX = 65_536
"""Bytes in a body: far above what Boskos' clients send."""

NAMES_MAX = 1_000
"""Names in one request."""


async def body_of(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """Read the whole body of a request. Raises RefusalError."""
    most = min(limits.body_bytes_max, BYTES_MAX)
    setting = f"body_bytes_max, at most {BYTES_MAX} at this address"
    return await body_read(headers_of(scope), receive, most, setting)
