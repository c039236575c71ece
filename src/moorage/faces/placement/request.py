"""One request and its answer, as handlers see them."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import msgspec

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.steps import Steps
from moorage.faces.long_answers import Body, begun
from moorage.faces.placement.input.bodies import body_check, body_decode, body_value
from moorage.faces.placement.problems import ProblemError
from moorage.faces.web import Limits, decoded
from moorage.service.app import Service

T = TypeVar("T")

MICROSECONDS = 1_000_000

PIECE_ITEMS = 64
"""Entries of a long answer that are written in one go: about a millisecond."""


NEVER: Final = Instant(0)
"""The time of what has none: nothing is shown, or nothing has been updated."""


@dataclass(slots=True)
class Answer:
    """What a handler gives back. `body` None is an empty answer without a content type.

    A long body is written while it is sent.
    `modified` is shown as last-modified from 1.15 on; None: such answers do not carry it. NEVER:
    they do, but this one has nothing to show there.
    `location` is a path below the service's root.
    """

    status: int
    body: Body | None = None
    modified: Instant | None = None
    location: str | None = None


@dataclass(slots=True)
class Request:
    """A request that has passed every check that needs no handler.

    `version` is the minor microversion, `path` the variable parts of the address in order,
    `prefix` the path the service is mounted under.
    """

    service: Service
    version: int
    path: tuple[str, ...]
    query_string: bytes
    body: bytes
    prefix: str
    limits: Limits
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the client has gone away."""

    async def decode(self, kind: type[T]) -> T:
        """Return the body as one of `schemas`' types. Raises ProblemError, RefusalError: 400."""
        return await self.read(partial(body_decode, self.body, kind))

    async def read(self, work: Callable[[], T]) -> T:
        """Do what there is to do with the body, off the event loop if it is long."""
        return await decoded(self.body, work)

    async def decode_both(self, kind: type[T]) -> tuple[T, Any]:
        """Return the body as one of `schemas`' types, and as it was sent. Raises as `decode`."""

        def both() -> tuple[T, Any]:
            sent = body_value(self.body)
            return body_check(sent, kind, len(self.body)), sent

        return await self.read(both)

    def written(self, pieces: Iterator[bytes], size: int) -> Steps[Body]:
        """Write an answer, or the beginning of a long one.

        Args:
            pieces: What it consists of.
            size: Bytes that `pieces` holds while it lasts.

        Raises:
            Error: OVERLOADED, it is long, and too many others are still being read.
        """
        return begun(pieces, size, self.service.unsent)

    async def catalog(self) -> Catalog:
        """Return every provider as of now."""
        return await self.service.index.current()

    async def provider(self, missing: str = "{}") -> ProviderRecord:
        """Return the provider that the address names first.

        Args:
            missing: what a 404 says; braces stand for the sentence that names the provider, `{0}`
                and `{1}` for the sentence and the UUID.

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
        """Return the time, for answers that are as of now."""
        return self.service.clock.now()


def json_answer(value: Any, modified: Instant | None = None, status: int = 200) -> Answer:
    """Return an answer with a JSON body."""
    return Answer(status, msgspec.json.encode(value), modified)


def pieces_of(
    begin: bytes, items: Sequence[T], write: Callable[[Sequence[T]], bytes], end: bytes
) -> Iterator[bytes]:
    """Write a long list: what goes before it, its entries joined by commas, what goes after it."""
    yield begin
    for first in range(0, len(items), PIECE_ITEMS):
        yield (b"," if first else b"") + write(items[first : first + PIECE_ITEMS])
    yield end


def members_json(value: list[Any] | dict[str, Any]) -> bytes:
    """Write the inside of a list or an object, without its brackets."""
    return msgspec.json.encode(value)[1:-1]


def http_date(instant: Instant) -> str:
    """Return an instant as HTTP writes it, in whole seconds."""
    return _http_date(instant // MICROSECONDS)


@lru_cache(maxsize=1_024)
def _http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
