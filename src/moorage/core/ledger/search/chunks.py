"""Large changes in small chunks, so that other requests can be served between two of them."""

from collections.abc import Sized
from itertools import islice

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.steps import Steps

CHUNK_PROVIDERS = 64
"""Providers in one chunk: one or two milliseconds."""

IMAGES_AT_ONCE = 512
"""After-images that a batch may have to be applied at once, in a few milliseconds."""


def applying(fleet: Fleet, changes: Changes, size: int = CHUNK_PROVIDERS) -> Steps[None]:
    """Do what `fleet.apply` does, yielding in between. Do not read the fleet before it ends.

    Providers that come, go, move or are renamed are one chunk, however many there are.
    """
    for old, new in changes.renamed_classes.items():
        for _ in fleet.renaming(old, new):
            yield
    placed = {
        uuid: provider
        for uuid, provider in changes.providers.items()
        if provider is None or not fleet.keeps_place(provider)
    }
    for uuid, provider in changes.providers.items():
        if provider is not None and provider.root in placed:
            placed.setdefault(uuid, provider)
    rest = _by_provider(changes)
    head = Changes(classes=changes.classes, traits=changes.traits)
    for uuid in placed:
        _move(changes, rest, uuid, head)
    fleet.apply(head)
    yield
    while rest:
        chunk = Changes()
        for uuid in list(islice(rest, size)):
            _move(changes, rest, uuid, chunk)
        fleet.apply(chunk)
        yield


def is_large(changes: Changes) -> bool:
    """Is there enough to apply that it should be done in chunks?"""
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
    changes: Changes, rest: dict[ProviderId, list[str]], uuid: ProviderId, chunk: Changes
) -> None:
    """Move the remaining changes of a provider to a chunk."""
    for name in rest.pop(uuid, ()):
        chunk.inventories[uuid, name] = changes.inventories[uuid, name]
    if uuid in changes.providers:
        chunk.providers[uuid] = changes.providers[uuid]
    if uuid in changes.tags:
        chunk.tags[uuid] = changes.tags[uuid]


class Belongings:
    """The collections of a fleet, without the fleet itself, to be freed bit by bit."""

    def __init__(self, fleet: Fleet) -> None:
        self._dicts = fleet.dicts()
        self._lists = [block.records for block in fleet.blocks]
        self._gauges = fleet.summaries.classes

    def held(self) -> list[Sized]:
        """Return the collections; the freed ones are empty."""
        return [*self._lists, *self._dicts]

    def emptied(self) -> Steps[None]:
        """Empty them, yielding in between. Call this when nothing else refers to the fleet."""
        for records in self._lists:
            while records:
                del records[-CHUNK_PROVIDERS:]
                yield
        for one in self._dicts:
            while one:
                for _ in range(min(len(one), 16 * CHUNK_PROVIDERS)):
                    one.popitem()
                yield
        for gauge in self._gauges.values():
            gauge.forget()
            yield
