"""The input and output of handlers."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from email.utils import formatdate
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from moorage.core.clock import SECOND, Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.faces.json_decoding import decoded
from moorage.faces.long_answers import Body, begun
from moorage.faces.placement.input.bodies import body_check, body_decode, body_value
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.web import Limits
from moorage.service.app import Service

T = TypeVar("T")


PIECE_ITEMS = 64
"""Entries of a long answer that are encoded at a time: about a millisecond."""


NEVER: Final = Instant(0)
"""Stands for a missing time: the list is empty, or there was no update."""


class Response(Struct):
    """The answer of a handler. `body` None: an empty answer without a content type.

    A long body is encoded while it is sent.
    `modified` is sent as last-modified from 1.15 on, with cache-control; None: neither of them.
    NEVER: cache-control only.
    `location` is a path below the service's root.
    """

    status: int
    body: Body | None = None
    modified: Instant | None = None
    location: str | None = None


class Request(Struct):
    """A request that has passed all checks before the handler.

    `version` is the minor microversion, `path` the variables of the address in order, `prefix` the
    path that the service is mounted at.
    """

    service: Service
    version: int
    path: tuple[str, ...]
    query_string: bytes
    body: bytes
    prefix: str
    limits: Limits
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the client has disconnected."""

    async def decode(self, kind: type[T]) -> T:
        """Return the body as one of `schemas`' types. Raises ProblemError, RefusalError: 400."""
        return await decoded(self.body, partial(body_decode, self.body, kind))

    async def decode_both(self, kind: type[T]) -> tuple[T, Any]:
        """Return the body as one of `schemas`' types, and as sent. Raises as `decode`."""

        def both() -> tuple[T, Any]:
            sent = body_value(self.body)
            return body_check(sent, kind, len(self.body)), sent

        return await decoded(self.body, both)

    def written(self, pieces: Iterator[bytes], size: int) -> Steps[Body]:
        """Encode an answer, or the beginning of a long one.

        Args:
            pieces: The encoded pieces of the answer.
            size: Bytes of memory that `pieces` occupies while it exists.

        Raises:
            Error: OVERLOADED, it is long, and unread answers use up the memory budget.
        """
        return begun(pieces, size, self.service.unsent)

    async def catalog(self) -> Catalog:
        """Return the up-to-date catalog of providers."""
        return await self.service.index.current()

    async def provider(self, missing: str = "{}") -> ProviderRecord:
        """Return the provider that the address names first.

        Args:
            missing: text of the 404; `{}` and `{0}` stand for the sentence that names the provider,
                `{1}` for its UUID.

        Raises:
            ProblemError: 404, there is no such provider.
        """
        catalog = await self.catalog()
        named = self.path[0]
        record = catalog.record(ProviderId(named.lower()))
        if record is None:
            sentence = f"No resource provider with uuid {named} found"
            raise ProblemError(404, missing.format(sentence, named))
        return record

    def now(self) -> Instant:
        """Return the current time, for answers that reflect the current state."""
        return self.service.clock.now()


def json_answer(value: Any, modified: Instant | None = None, status: int = 200) -> Response:
    """Return an answer with a JSON body."""
    return Response(status, msgspec.json.encode(value), modified)


def pieces_of(
    begin: bytes, items: Sequence[T], write: Callable[[Sequence[T]], bytes], end: bytes
) -> Iterator[bytes]:
    """Encode a long list in pieces: `begin`, the entries separated by commas, `end`."""
    if len(items) <= PIECE_ITEMS:
        yield begin + write(items) + end if items else begin + end
        return
    yield begin
    for first in range(0, len(items), PIECE_ITEMS):
        yield (b"," if first else b"") + write(items[first : first + PIECE_ITEMS])
    yield end


def members_json(value: list[Any] | dict[str, Any]) -> bytes:
    """Encode a list or an object without its brackets."""
    return msgspec.json.encode(value)[1:-1]


def http_date(instant: Instant) -> str:
    """Return an instant in HTTP's date format, in whole seconds."""
    return _http_date(instant // SECOND)


@lru_cache(maxsize=1_024)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
