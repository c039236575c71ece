"""The change feed: all committed changes in order, by long polling or as a stream of events.

Source of the stream's form: HTML Living Standard, "Server-sent events".
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from http import HTTPStatus
from typing import TypeVar

import msgspec

from moorage.core.errors import Code, Error
from moorage.faces.streaming import Stream
from moorage.faces.v1 import problems
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.feed.change_rows import value_of
from moorage.service.feed.watch import ChangesGoneError, Cursor, Seen
from moorage.service.pages import check_limit
from moorage.service.values import check_wait
from moorage.wire.changes import VALUES, Change, Changes
from moorage.wire.operations import feed as operations
from moorage.wire.operations.feed import EVENTS
from moorage.wire.pages import ChangesAsked

BEAT_SECONDS = 15.0
"""How often an idle stream sends its cursor, so that each side notices if the other is gone."""

STREAM_ROWS_MAX = 100
"""Changes that a stream reads at a time; it keeps at most this many for a reader that stalls."""

PIECE_BYTES = 32_768
"""Events are combined into pieces of about this size."""

T = TypeVar("T")


async def watch(request: Request[None, ChangesAsked]) -> Changes | Stream | None:
    """Return the changes after a cursor, waiting until there are any, or a stream of them."""
    asked = request.parameters
    wait = check_wait(asked.wait)
    check_limit(asked.limit)
    kinds = _kinds(asked.kinds)
    service = request.service.watch
    events = EVENTS in request.headers.get("accept", "")
    place = (events and request.headers.get("last-event-id")) or asked.after
    after = Cursor.parse(place) if place else await service.now()
    try:
        if events:
            await service.window(after, kinds, 1)  # raises before the stream begins
            return Stream(EVENTS, _events(request, after, kinds))
        window = await _unless_gone(
            request, service.awaited(after, kinds, seconds=wait, rows_max=asked.limit)
        )
    except ChangesGoneError as gone:
        raise _gone(gone) from None
    return Changes(changes=[_shown(one) for one in window.changes], next=str(window.next))


HANDLERS: Handlers = {
    operations.WATCH: watch,
}


def _kinds(names: str | None) -> frozenset[str]:
    kinds = frozenset(VALUES if names is None else names.split(","))
    if not kinds <= VALUES.keys():
        raise Error(
            Code.INVALID,
            f"There is no kind {min(kinds - VALUES.keys())!r}; the kinds are {', '.join(VALUES)}.",
        )
    return kinds


def _shown(seen: Seen) -> Change:
    row = seen.row
    value = None if row.body is None else value_of(row.kind, row.body)
    return Change(revision=row.revision, n=row.n, kind=row.kind, key=row.key, value=value)


def _gone(error: ChangesGoneError) -> ProblemError:
    refusal = problems.problem_of(error)
    refusal.oldest = str(error.oldest)
    return refusal


def _problem(error: Error | ProblemError) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    return _gone(error) if isinstance(error, ChangesGoneError) else problems.problem_of(error)


async def _unless_gone(request: Request[None, ChangesAsked], asked: Awaitable[T]) -> T:
    """Wait for an answer; cancel it if the caller disconnects."""
    answer = asyncio.ensure_future(asked)
    gone = asyncio.ensure_future(request.disconnected())
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, problems.REFUSED, "The caller has gone away."
            )
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()


async def _events(
    request: Request[None, ChangesAsked], after: Cursor, kinds: frozenset[str]
) -> AsyncGenerator[bytes, None]:
    """Yield the changes after a cursor as events, combined into pieces, until the service stops.

    Reads one window of rows at a time, and the next one only after this one has been sent.
    """
    service, rows_max = request.service.watch, min(request.parameters.limit, STREAM_ROWS_MAX)
    yield f"id: {after}\n\n".encode()
    while not service.closed:
        try:
            window = await service.awaited(after, kinds, seconds=BEAT_SECONDS, rows_max=rows_max)
            await request.still()  # the token may have been revoked meanwhile
        except (Error, ProblemError) as error:
            problem = problems.body_of(_problem(error), request.request_id)
            yield b"event: problem\ndata: " + problem + b"\n\n"
            return
        piece = bytearray()
        for one in window.changes:
            data = msgspec.json.encode(_shown(one))
            piece += f"id: {one.cursor}\ndata: ".encode() + data + b"\n\n"
            if len(piece) >= PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
        if window.changes and window.next == window.changes[-1].cursor:
            rest = b""
        else:
            rest = f"id: {window.next}\n\n".encode()
        if piece or rest:
            yield bytes(piece) + rest
        after = window.next
