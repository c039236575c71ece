"""A catalog as bytes, in parts: one for each chunk, and a last one for the rest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from msgspec import Struct, msgpack

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import CustomName, ProviderRecord
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.packed_chunk import LAYOUT as CHUNK_LAYOUT
from moorage.core.ledger.search.catalog.packed_chunk import packed


class _Rest(Struct, frozen=True, array_like=True):
    """What a catalog has besides its chunks."""

    providers: int
    """The number of all providers."""
    sharing: list[ProviderId]
    classes: dict[str, CustomName]
    traits: dict[str, CustomName]


LAYOUT = [*CHUNK_LAYOUT, *([one.__name__, *one.__struct_fields__] for one in (_Rest, CustomName))]
"""What the bytes depend on: another release can read them only if it has the same."""


@dataclass(frozen=True, slots=True)
class View:
    """A catalog as of one moment; records are immutable, so only references are copied."""

    chunks: list[tuple[Iterable[ProviderRecord | None], int]]
    """The records of each chunk, and how many rows it began with."""
    rest: bytes
    providers: int

    @classmethod
    def of(cls, catalog: Catalog) -> "View":
        """Return the catalog as of now."""
        rest = _Rest(len(catalog), list(catalog.sharing), catalog.classes, catalog.traits)
        return cls(
            [(chunk.held(), chunk.step) for chunk in catalog.chunks],
            msgpack.encode(rest),
            len(catalog),
        )

    def parts(self) -> Iterator[bytes]:
        """Yield the parts; each takes a millisecond or two. May run in another thread."""
        for records, step in self.chunks:
            yield packed(list(records), step)
        yield self.rest


class Restorer:
    """Fills an empty catalog from parts. Do not read the catalog before `finish`.

    All methods raise ValueError, LookupError: these are not the parts of a catalog.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shared = catalog.shared_values()
        self._last: bytes | None = None

    def take(self, part: bytes) -> None:
        """Add the next part."""
        if self._last is not None:
            self._catalog.restore(self._last, self._shared)
        self._last = part

    def finish(self) -> None:
        """End after the last part."""
        if self._last is None:
            raise ValueError("there are no parts")
        rest = msgpack.decode(self._last, type=_Rest)
        catalog = self._catalog
        if len(catalog) != rest.providers:
            raise ValueError("there are more or fewer providers than were stored")
        catalog.sharing.update(dict.fromkeys(rest.sharing))
        catalog.learn(rest.classes, rest.traits)
