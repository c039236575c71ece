"""Endless answers, written piece by piece as the caller reads them.

Memory per caller is bounded by the connection's buffers. A caller that does not read for
`SEND_SECONDS_MAX` is disconnected.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from moorage.faces.web import ABORT, SEND_SECONDS_MAX, Scope, Send

log = logging.getLogger("moorage.streams")

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is made while it is sent; `pieces` is closed when the caller disconnects."""

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
    """Send a stream until it ends, its caller disconnects, or has not read for too long."""
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
        log.info("closed a stream of %s: its client does not read", scope["path"])
        scope[ABORT]()
    except Exception:  # the response has begun: only an abort shows that it is incomplete
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
