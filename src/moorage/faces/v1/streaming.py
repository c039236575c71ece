"""Answers without an end, written piece by piece to callers that read them.

Nothing piles up for a caller that does not: the connection holds what fits into its buffers, and
who leaves it unread for `SEND_SECONDS_MAX` is cut off.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from moorage.faces.web import ABORT, Scope, Send

SEND_SECONDS_MAX = 20.0
"""How long a caller may leave a piece unread."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is made while it is sent; `pieces` is closed when the caller goes away."""

    media_type: str
    pieces: AsyncGenerator[bytes, None]
    seconds_max: float = SEND_SECONDS_MAX


async def stream_send(
    stream: Stream, head: list[tuple[bytes, bytes]], scope: Scope, send: Send
) -> None:
    """Send a stream to its end, or until its caller has not read for too long."""
    headers = [
        (b"content-type", stream.media_type.encode()),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        *head,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async with aclosing(stream.pieces) as pieces:
        async for piece in pieces:
            try:
                async with asyncio.timeout(stream.seconds_max):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                scope[ABORT]()
                return
    await send({"type": "http.response.body", "body": b""})
