"""Answers without an end, written piece by piece to callers that read them.

Nothing piles up for a caller that does not: the connection holds what fits into its buffers, and
who leaves it unread for `SEND_SECONDS_MAX` is cut off.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from moorage.faces.web import ABORT, SEND_SECONDS_MAX, Scope, Send

log = logging.getLogger("moorage.v1")

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is made while it is sent; `pieces` is closed when the caller goes away."""

    media_type: str
    pieces: AsyncGenerator[bytes, None]
    seconds_max: float = SEND_SECONDS_MAX


async def stream_send(
    stream: Stream,
    head: Headers,
    scope: Scope,
    send: Send,
    disconnected: Callable[[], Awaitable[None]],
) -> None:
    """Send a stream to its end, until its caller goes away, or has not read for too long."""
    headers = [
        (b"content-type", stream.media_type.encode()),
        (b"x-accel-buffering", b"no"),
        *head,
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    pump = asyncio.ensure_future(_pump(stream, send))
    gone = asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
        if pump.done():
            await pump
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        log.info("cut off a reader of %s: it does not read", scope["path"])
        scope[ABORT]()
    except Exception:  # it has begun: what is left is to show that this is not its end
        log.exception("a stream of %s failed", scope["path"])
        scope[ABORT]()
    finally:
        pump.cancel()
        gone.cancel()
        await asyncio.wait({pump, gone})


async def _pump(stream: Stream, send: Send) -> None:
    async with aclosing(stream.pieces) as pieces:
        async for piece in pieces:
            async with asyncio.timeout(stream.seconds_max):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
