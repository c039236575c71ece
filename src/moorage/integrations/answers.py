"""Reads answers of other systems: never more than fits into memory, and only what is JSON."""

import json
from typing import Any

import aiohttp

ANSWER_BYTES_MAX = 64 << 20
"""Bytes of one answer, by default."""

VALUES_MAX = 2_000_000
"""Values in one answer: even a short one takes some 100 bytes of memory."""

PIECE_BYTES = 1 << 16


class LongAnswerError(aiohttp.ClientError):
    """An answer is longer than is read; the message says how long it may be."""


async def read_answer(answer: aiohttp.ClientResponse, most: int = ANSWER_BYTES_MAX) -> bytes:
    """Return the body of an answer. Raises LongAnswerError, and what the connection raises."""
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.content.iter_chunked(PIECE_BYTES):
        size += len(piece)
        if size > most:
            answer.close()
            raise LongAnswerError(f"the answer is longer than {most >> 20} MiB")
        pieces.append(piece)
    return b"".join(pieces)


def json_of(body: bytes, values_max: int = VALUES_MAX) -> Any:
    """Decode JSON. Raises ValueError, also for NaN, very deep nesting and too many values."""
    # Each value but the first follows a comma or an opening bracket.
    if sum(map(body.count, (b",", b"[", b"{"))) > values_max:
        raise ValueError("it has too many values")
    try:
        return json.loads(body, parse_constant=_refused)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def object_of(body: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object that is the body of an answer; if there is none: None, and why."""
    try:
        content = json_of(body)
    except ValueError as error:
        return None, f"the answer is not JSON: {error}"
    if not isinstance(content, dict):
        return None, "the answer is not a JSON object"
    return content, "no reason is given"


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
