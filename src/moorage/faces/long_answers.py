"""Answers too long to be kept as bytes: each is written while the client reads it.

What an answer is written from (a candidate is a tuple) takes a tenth of its bytes or less. The
memory of all clients together is bounded by `service/unsent_memory.py`, the time of one by the
rate at which it must read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

from moorage.core.ledger.search.steps import Steps
from moorage.faces.web import ABORT, SEND_SECONDS_MAX, Message, Receive, Scope, Send, gone
from moorage.service.fair_turns import TURN_SECONDS
from moorage.service.unsent_memory import Unsent

WHOLE_BYTES_MAX = 1 << 20
"""Bytes of an answer up to which it is written as a whole, and says how long it is."""

SENT_BYTES = 1 << 16
"""Bytes of a longer answer that are sent in one go, or a little more."""

READ_RATE_MIN = 1 << 18
"""Bytes a second that a client must read of a longer answer, on average."""

REFERENCE_BYTES = 8
"""Memory of a reference."""

log = logging.getLogger("moorage.http")


class LongAnswer:
    """The body of an answer that has begun to be written. Whoever has it closes it.

    Args:
        begun: The pieces that are written already.
        rest: Writes the others, each in about a millisecond.
        size: Bytes that all of this takes until it is closed.
        unsent: Where room for it is taken.

    Raises:
        Error: OVERLOADED, there is no room.
    """

    def __init__(
        self, begun: deque[bytes], rest: Iterator[bytes], size: int, unsent: Unsent
    ) -> None:
        unsent.take(size)
        self._begun = begun
        self._rest = rest
        self._size = size
        self._unsent = unsent

    def next(self) -> bytes:
        """Return what is to be sent next; nothing: that was all."""
        pieces: list[bytes] = []
        size, end = 0, perf_counter() + TURN_SECONDS
        while size < SENT_BYTES and not (size and perf_counter() >= end):
            piece = self._begun.popleft() if self._begun else next(self._rest, None)
            if piece is None:
                break
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Let go of everything."""
        self._unsent.give_back(self._size)
        self._size = 0
        self._begun.clear()
        self._rest = iter(())


Body = bytes | LongAnswer


def begun(pieces: Iterator[bytes], size: int, unsent: Unsent) -> Steps[Body]:
    """Write an answer if it is short, or else its beginning.

    Args:
        pieces: What it consists of.
        size: Bytes that `pieces` holds while it lasts.
        unsent: Where room for a long answer is taken.

    Raises:
        Error: OVERLOADED, it is long, and there is no room.
    """
    written: deque[bytes] = deque()
    length = 0
    for piece in pieces:
        written.append(piece)
        length += len(piece)
        if length > WHOLE_BYTES_MAX:
            return LongAnswer(written, pieces, size + length, unsent)
        yield
    return b"".join(written)


async def long_send(
    start: Message,
    answer: LongAnswer,
    scope: Scope,
    receive: Receive,
    send: Send,
    turn: Callable[[], Awaitable[None]],
) -> None:
    """Send a long answer.

    A client may keep it waiting for `SEND_SECONDS_MAX` altogether, and for a second more with each
    `READ_RATE_MIN` bytes that it has read. Beyond, and when anything fails, the connection is cut:
    an answer that is not whole never looks as if it were.

    Args:
        start: Its head. It may have to wait, too: for the answer of an earlier request to be read.
        answer: Its body.
        scope: Of the request.
        receive: Of the ASGI application.
        send: Of the ASGI application.
        turn: Waits for a turn to write a piece.
    """
    leaving = asyncio.ensure_future(gone(receive))
    try:
        patience = SEND_SECONDS_MAX - await _sent(start, send, SEND_SECONDS_MAX)
        while not leaving.done():
            await turn()
            piece = answer.next()
            message = {"type": "http.response.body", "body": piece, "more_body": bool(piece)}
            seconds = await _sent(message, send, patience)
            if not piece:
                return
            patience += len(piece) / READ_RATE_MIN - seconds
        scope[ABORT]()  # it has gone, or its request was refused while this was sent
    except TimeoutError:
        log.info("cut off a reader of %s: it does not read fast enough", scope["path"])
        scope[ABORT]()
    except BaseException:
        scope[ABORT]()
        raise
    finally:
        leaving.cancel()


async def _sent(message: Message, send: Send, patience: float) -> float:
    """Send a message; return how many seconds it took. Raises TimeoutError: too many."""
    began = perf_counter()
    async with asyncio.timeout(patience):
        await send(message)
    return perf_counter() - began
