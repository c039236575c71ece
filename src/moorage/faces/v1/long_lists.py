"""Bodies with one long list, which is cut into members that are decoded a few at a time."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from moorage.core.limits import AROUND_BYTES_MAX, BULK_PROVIDERS_MAX, PROVIDER_BYTES_MAX
from moorage.faces.json_decoding import decoded, json_decode
from moorage.faces.json_lists import (
    Cut,
    LongMemberError,
    ManyMembersError,
    NoListError,
    cut,
)
from moorage.faces.v1.decoding import fitted, misfit
from moorage.faces.web import RefusalError
from moorage.service.fair_turns import Pieces
from moorage.service.ledger.bulk import check_count

T = TypeVar("T")
W = TypeVar("W")

RUN_BYTES = 8_192
"""Members of this many bytes are decoded together: less than half a millisecond."""


async def parts_of(body: bytes, pieces: Pieces, name: str, check: Callable[[bytes], object]) -> Cut:
    """Find the members of the list in a body.

    Args:
        body: the body.
        pieces: for pauses.
        name: of the list, for the message.
        check: decodes a body without a list; usually it raises a more precise error.

    Raises RefusalError, and `Error`: LIMIT_EXCEEDED.
    """
    work = cut(body, members_max=BULK_PROVIDERS_MAX, member_bytes_max=PROVIDER_BYTES_MAX)
    try:
        return await pieces.driven(work)
    except NoListError:
        check(body[:AROUND_BYTES_MAX])
        raise misfit(f"it must be an object with a list `{name}`") from None
    except ManyMembersError:
        check_count(BULK_PROVIDERS_MAX + 1)
        raise
    except LongMemberError:
        raise RefusalError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The description of one provider is longer than {PROVIDER_BYTES_MAX} bytes.",
        ) from None
    except ValueError as error:
        raise misfit(str(error)) from None


async def members_of(
    body: bytes, parts: Cut, pieces: Pieces, kind: type[W], convert: Callable[[W], T]
) -> AsyncIterator[T]:
    """Decode the members of a list in their order, at most `RUN_BYTES` before the first is yielded.

    Raises RefusalError, and what `convert` raises.
    """

    def converted(text: bytes, run: list[bytes]) -> list[T]:
        return [convert(fitted(value, kind)) for value in _values(text, run)]

    async for run in pieces.each(_runs(body, parts.members)):
        text = b"[%b]" % b",".join(run)
        for member in await decoded(text, partial(converted, text, run)):
            yield member


def _runs(body: bytes, members: Iterable[tuple[int, int]]) -> Iterator[list[bytes]]:
    """Divide members into those that are decoded together; a long one is alone."""
    run: list[bytes] = []
    size = 0
    for begin, end in members:
        if run and size + end - begin > RUN_BYTES:
            yield run
            run, size = [], 0
        run.append(body[begin:end])
        size += end - begin
    if run:
        yield run


def _values(text: bytes, run: list[bytes]) -> list[Any]:
    """Decode members: as one text or, so that an error is about one of them, one by one."""
    with suppress(RefusalError):
        values: list[Any] = json_decode(text)
        if len(values) == len(run):
            return values
    return [json_decode(member) for member in run]
