"""Long answers: encoded piece by piece while the client reads them, not kept as bytes.

The source of an answer (candidates as tuples) takes at most a tenth of the memory of its bytes.
`service/unsent_memory.py` bounds the memory of all clients together; the minimum read rate bounds
the time of each.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter

from moorage.core.ledger.search.steps import Steps
from moorage.faces.web import ABORT, SEND_SECONDS_MAX, Message, Receive, Scope, Send, gone
from moorage.service.fair_turns import TURN_SECONDS
from moorage.service.unsent_memory import UnsentMemory

WHOLE_BYTES_MAX = 1 << 20
"""Answers of up to this many bytes are sent as a whole, with a content-length."""

SENT_BYTES = 1 << 16
"""Approximate bytes of a longer answer that are sent at a time."""

READ_RATE_MIN = 1 << 18
"""Bytes per second that a client must read of a longer answer, on average."""

REFERENCE_BYTES = 8
"""Bytes of memory per reference."""

log = logging.getLogger("moorage.http")


class LongAnswer:
    """The body of an answer that is partly encoded. Its owner must close it.

    Args:
        begun: The pieces that are encoded already.
        rest: Encodes the remaining pieces, each in about a millisecond.
        size: Bytes of memory that the answer occupies until it is closed.
        unsent: The memory budget that it counts against.

    Raises:
        Error: OVERLOADED, the budget is used up.
    """

    def __init__(
        self, begun: deque[bytes], rest: Iterator[bytes], size: int, unsent: UnsentMemory
    ) -> None:
        unsent.take(size)
        self._begun = begun
        self._rest = rest
        self._size = size
        self._unsent = unsent

    def next(self) -> bytes:
        """Return the bytes to send next; empty at the end."""
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
        """Release the memory and drop all pieces."""
        self._unsent.give_back(self._size)
        self._size = 0
        self._begun.clear()
        self._rest = iter(())


Body = bytes | LongAnswer


def begun(pieces: Iterator[bytes], size: int, unsent: UnsentMemory) -> Steps[Body]:
    """Encode a short answer completely, or the beginning of a long one.

    Args:
        pieces: The encoded pieces of the answer.
        size: Bytes of memory that `pieces` occupies while it exists.
        unsent: The memory budget of long answers.

    Raises:
        Error: OVERLOADED, the answer is long and the budget is used up.
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

    A client may delay it by `SEND_SECONDS_MAX` in total, and by one more second for every
    `READ_RATE_MIN` bytes that it has read. After that, and on any failure, the connection is cut,
    so that an incomplete answer never looks complete.

    Args:
        start: The start message. It may have to wait until an earlier answer has been read.
        answer: The body.
        scope: Of the request.
        receive: Of the ASGI application.
        send: Of the ASGI application.
        turn: Waits for a turn to encode a piece.
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
        scope[ABORT]()  # the client has disconnected, or its request was refused meanwhile
    except TimeoutError:
        log.info("closed a connection to %s: its client does not read fast enough", scope["path"])
        scope[ABORT]()
    except BaseException:
        scope[ABORT]()
        raise
    finally:
        leaving.cancel()


async def _sent(message: Message, send: Send, patience: float) -> float:
    """Send a message and return the seconds it took. Raises TimeoutError after `patience`."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(patience):
        await send(message)
    return loop.time() - began
