"""The typed native API of Boskos' resources, for moving from Boskos and back."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.client.calling import Room
from moorage.wire.operations import pools
from moorage.wire.pools.boskos import BoskosOutcome, BoskosResource, BoskosResourcesWanted


class Boskos(Room):
    """The slots of one server as resources. Every call raises what those of `Admission` raise."""

    def resources(self, kind: str) -> Iterator[BoskosResource]:
        """Yield all resources of a type, by name."""
        for page in self._pages(pools.LIST_BOSKOS_RESOURCES, kind):
            yield from page.resources

    def take_over(self, kind: str, resources: list[BoskosResource]) -> list[BoskosOutcome]:
        """Take over all resources of a type; return the result for each slot, by name."""
        wanted = BoskosResourcesWanted(resources=resources)
        return self._call(pools.IMPORT_BOSKOS_RESOURCES, kind, body=wanted).outcomes
