"""Large changes are applied in small parts, so that other requests are served in between."""

from collections.abc import Sized
from itertools import islice

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.steps import Steps

PART_PROVIDERS = 64
"""Providers in one part: one or two milliseconds."""

IMAGES_AT_ONCE = 512
"""A batch with at most this many after-images is applied at once, in a few milliseconds."""


def applying(catalog: Catalog, changes: Changes, size: int = PART_PROVIDERS) -> Steps[None]:
    """As `catalog.apply`, but yielding in between. Do not read the catalog before it ends.

    All providers that are added, removed, moved or renamed form one part, of any size.
    """
    for old, new in changes.renamed_classes.items():
        for _ in catalog.renaming(old, new):
            yield
    placed = {
        uuid: provider
        for uuid, provider in changes.providers.items()
        if provider is None or not catalog.keeps_place(provider)
    }
    for uuid, provider in changes.providers.items():
        if provider is not None and provider.root in placed:
            placed.setdefault(uuid, provider)
    rest = _by_provider(changes)
    head = Changes(classes=changes.classes, traits=changes.traits)
    for uuid in placed:
        _move(changes, rest, uuid, head)
    catalog.apply(head)
    yield
    while rest:
        part = Changes()
        for uuid in list(islice(rest, size)):
            _move(changes, rest, uuid, part)
        catalog.apply(part)
        yield


def is_large(changes: Changes) -> bool:
    """Are there enough changes to apply them in parts?"""
    images = len(changes.providers) + len(changes.inventories) + len(changes.tags)
    return images > IMAGES_AT_ONCE or bool(changes.renamed_classes)


def _by_provider(changes: Changes) -> dict[ProviderId, list[str]]:
    """Return the providers that change, each with the classes whose inventories change."""
    found: dict[ProviderId, list[str]] = {uuid: [] for uuid in changes.providers}
    for uuid, name in changes.inventories:
        found.setdefault(uuid, []).append(name)
    for uuid in changes.tags:
        found.setdefault(uuid, [])
    return found


def _move(
    changes: Changes, rest: dict[ProviderId, list[str]], uuid: ProviderId, part: Changes
) -> None:
    """Move the remaining changes of a provider to a part."""
    for name in rest.pop(uuid, ()):
        part.inventories[uuid, name] = changes.inventories[uuid, name]
    if uuid in changes.providers:
        part.providers[uuid] = changes.providers[uuid]
    if uuid in changes.tags:
        part.tags[uuid] = changes.tags[uuid]


class CatalogRemains:
    """The collections of a catalog, without the catalog itself, to be freed in small parts."""

    def __init__(self, catalog: Catalog) -> None:
        self._dicts = catalog.dicts()
        self._lists = [chunk.records for chunk in catalog.chunks if not chunk.is_packed]
        self._gauges = catalog.summaries.classes

    def held(self) -> list[Sized]:
        """Return the collections; the freed ones are empty."""
        return [*self._lists, *self._dicts]

    def emptied(self) -> Steps[None]:
        """Empty them, yielding in between. Call this when nothing else refers to the catalog."""
        for records in self._lists:
            while records:
                del records[-PART_PROVIDERS:]
                yield
        for one in self._dicts:
            while one:
                for _ in range(min(len(one), 16 * PART_PROVIDERS)):
                    one.popitem()
                yield
        for gauge in self._gauges.values():
            gauge.forget()
            yield
