"""Large changes in small parts, so that whoever applies them can let others through in between."""

from collections.abc import Sized
from itertools import islice

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.steps import Steps

PART_PROVIDERS = 64
"""Providers in one part: one or two milliseconds."""

IMAGES_AT_ONCE = 512
"""After-images of a batch that are applied at once, in a few milliseconds: every usual batch."""


def applying(fleet: Fleet, changes: Changes, size: int = PART_PROVIDERS) -> Steps[None]:
    """Do what `fleet.apply` does, with rests in between. Nobody should look before its end.

    Providers that come, go, move or get another name are one part, however many they are.
    """
    for old, new in changes.renamed_classes.items():
        for _ in fleet.renaming(old, new):
            yield
    placed = {
        uuid: provider
        for uuid, provider in changes.providers.items()
        if provider is None or not fleet.keeps_place(provider)
    }
    rest = _by_provider(changes)
    head = Changes(classes=changes.classes, traits=changes.traits)
    for uuid in placed:
        _move(changes, rest, uuid, head)
    fleet.apply(head)
    yield
    while rest:
        part = Changes()
        for uuid in list(islice(rest, size)):
            _move(changes, rest, uuid, part)
        fleet.apply(part)
        yield


def is_large(changes: Changes) -> bool:
    """Is it so much work to apply changes that it should be done in parts?"""
    images = len(changes.providers) + len(changes.inventories) + len(changes.tags)
    return images > IMAGES_AT_ONCE or bool(changes.renamed_classes)


def _by_provider(changes: Changes) -> dict[ProviderId, list[str]]:
    """Return whose anything has changed, and of which classes the inventory."""
    found: dict[ProviderId, list[str]] = {uuid: [] for uuid in changes.providers}
    for uuid, name in changes.inventories:
        found.setdefault(uuid, []).append(name)
    for uuid in changes.tags:
        found.setdefault(uuid, [])
    return found


def _move(
    changes: Changes, rest: dict[ProviderId, list[str]], uuid: ProviderId, part: Changes
) -> None:
    """Let a part have what is left to be changed of a provider."""
    for name in rest.pop(uuid, ()):
        part.inventories[uuid, name] = changes.inventories[uuid, name]
    if uuid in changes.providers:
        part.providers[uuid] = changes.providers[uuid]
    if uuid in changes.tags:
        part.tags[uuid] = changes.tags[uuid]


class Belongings:
    """Everything of a fleet that is proportional to it, but not the fleet itself."""

    def __init__(self, fleet: Fleet) -> None:
        self._dicts = fleet.dicts()
        self._lists = [block.records for block in fleet.blocks]

    def held(self) -> list[Sized]:
        """Return what is still there."""
        return [*self._lists, *self._dicts]

    def emptied(self) -> Steps[None]:
        """Let it go, with rests in between. To be called when the fleet is gone."""
        for records in self._lists:
            while records:
                del records[-PART_PROVIDERS:]
                yield
        for one in self._dicts:
            while one:
                for _ in range(min(len(one), 16 * PART_PROVIDERS)):
                    one.popitem()
                yield
