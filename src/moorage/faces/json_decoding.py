"""JSON bodies for all faces: decoded strictly, and in pieces if they are long.

JSON that is malformed, too deep, too long or that repeats a key is refused with a reason
(`RefusalError`) before a handler sees it.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from moorage.core.limits import BODY_VALUES_MAX
from moorage.faces.web import RefusalError

T = TypeVar("T")

LONG_BYTES = 32_768
"""Bodies of at least this many bytes are decoded in a thread: it takes a few milliseconds."""

PIECE_BYTES = 1 << 20
"""Bytes of JSON that are decoded at a time, while no other thread can run: five milliseconds."""

RUN_BYTES, RUN_VALUES = PIECE_BYTES // 4, 10_000
"""Bytes and number of short members of an object or a list that are decoded together."""

_decoding = ThreadPoolExecutor(2, "moorage-decode")


async def decoded(body: bytes, work: Callable[[], T]) -> T:
    """Run `work` for a body: at once or, if it has at least `LONG_BYTES`, in a thread."""
    if len(body) < LONG_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_decoding, work)


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def json_decode(body: bytes) -> Any:
    """Decode JSON strictly: UTF-8, bounded depth, no NaN, no NUL, no repeated key.

    Raises:
        RefusalError: 400, `Malformed JSON: ` and the reason; 413 for more values than
            `BODY_VALUES_MAX`.
    """
    if len(body) > BODY_VALUES_MAX:
        _count_values(body)
    try:
        # Without escapes every colon of the text survives decoding, unless a key is repeated.
        if len(body) > PIECE_BYTES:
            value, colons = _loose(body)
        else:
            value = msgspec.json.decode(body)
            colons = msgspec.json.encode(value).count(b":")
        if b"\\" in body or body.count(b":") != colons:
            json.loads(body, object_pairs_hook=_pairs)
            if _NUL.search(msgspec.json.encode(value)):
                raise ValueError("it contains the character NUL")
        return value
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except ValueError as error:  # msgspec's and json's own errors are ValueErrors
        reason = str(error)
    raise RefusalError(HTTPStatus.BAD_REQUEST, f"Malformed JSON: {reason}")


def plain_decode(body: bytes, kind: type[T]) -> T | None:
    """Return JSON that surely is of this type, at a fraction of the cost of `json_decode`.

    Returns None for all others: some are valid, such as those with escapes. Of a type with defaults
    that are encoded, nothing is sure.
    """
    decoder = _decoder_of(kind)  # type: ignore[arg-type] # types are hashable
    if decoder is None:
        return None
    try:
        decoded: T = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    # An unknown or a repeated name has a colon more than what was decoded.
    if b"\\" in body or body.count(b":") != msgspec.json.encode(decoded).count(b":"):
        return None
    return decoded


@cache
def _decoder_of(kind: type[T]) -> msgspec.json.Decoder[T] | None:
    """Return the decoder of a type; None: a value of it may encode members that were not sent."""
    return msgspec.json.Decoder(kind) if _is_exact(msgspec.inspect.type_info(kind)) else None


def _is_exact(kind: Any) -> bool:
    """Return whether values of a type encode at most the members that were sent."""
    if isinstance(kind, (msgspec.inspect.StructType, msgspec.inspect.DataclassType)):
        config = getattr(kind.cls, "__struct_config__", None)
        omits = config is not None and config.omit_defaults
        return all(
            # UNSET is the one default that is not encoded, and that is not shown here.
            (omits or each.default is each.default_factory is msgspec.NODEFAULT)
            and _is_exact(each.type)
            for each in kind.fields
        )
    inner = [getattr(kind, name, None) for name in ("key_type", "value_type", "item_type")]
    inner += [*getattr(kind, "types", ()), *getattr(kind, "item_types", ())]
    return all(_is_exact(each) for each in inner if each is not None)


def _count_values(body: bytes) -> None:
    """Refuse a body with too many values before decoding any. Raises RefusalError: 413.

    Each value but the first follows a comma or an opening bracket.
    """
    count = 0
    for begin in range(0, len(body), PIECE_BYTES):
        for mark in (b",", b"{", b"["):
            count += body.count(mark, begin, begin + PIECE_BYTES)
        if count >= BODY_VALUES_MAX:
            raise RefusalError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"The request body has more than {BODY_VALUES_MAX} values.",
            )


def _loose(body: bytes, levels: int = 3) -> tuple[Any, int]:
    """Decode JSON, keeping the last of repeated keys; return the value and its number of colons.

    On the outer `levels`, long objects and lists are decoded member by member, so that other
    threads can run in between.
    """
    if not levels or len(body) <= PIECE_BYTES:
        value = msgspec.json.decode(body)
        return value, msgspec.json.encode(value).count(b":")
    first = body[:PIECE_BYTES].lstrip()[:1]
    total = 0
    if first == b"{":
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        values, total = _members(list(members.values()), levels)
        for name in members:
            total += 1 + name.count(":")
        return dict(zip(members, values, strict=True)), total
    if first == b"[":
        return _members(msgspec.json.decode(body, type=list[msgspec.Raw]), levels)
    value = msgspec.json.decode(body)
    return value, msgspec.json.encode(value).count(b":")


def _members(raws: list[msgspec.Raw], levels: int) -> tuple[list[Any], int]:
    """Decode the members of an object or a list: short ones together, long ones one by one."""
    items: list[Any] = []
    run: list[msgspec.Raw] = []
    total = size = 0
    for raw in raws:
        length = len(memoryview(raw))
        if run and (size + length > RUN_BYTES or len(run) == RUN_VALUES):
            total += _run(run, items)
            run, size = [], 0
        if length > RUN_BYTES:
            item, colons = _loose(bytes(raw), levels - 1)
            items.append(item)
            total += colons
        else:
            run.append(raw)
            size += length
    return items, total + _run(run, items)


def _run(raws: list[msgspec.Raw], items: list[Any]) -> int:
    """Decode members together, append them to `items` and return their number of colons."""
    values = msgspec.json.decode(b"[" + b",".join(raws) + b"]")
    items += values
    return msgspec.json.encode(values).count(b":")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
    raise ValueError(f"the key {twice!r} is given more than once")
