"""Reads request bodies. Callers need no token here, so bodies are limited to a small size."""

from moorage.core.limits import BOSKOS_BODY_BYTES_MAX
from moorage.faces.web import Limits, Receive, Scope, body_read, headers_of


async def body_of(scope: Scope, receive: Receive, limits: Limits) -> bytes:
    """Read the whole body of a request. Raises RefusalError."""
    most = min(limits.body_bytes_max, BOSKOS_BODY_BYTES_MAX)
    setting = f"body_bytes_max, at most {BOSKOS_BODY_BYTES_MAX} at this address"
    return await body_read(headers_of(scope), receive, most, setting)
