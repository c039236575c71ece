"""The typed native API of named slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.client.calling import Room
from moorage.client.transport import Transport
from moorage.wire.operations import pools
from moorage.wire.slots import DrainWanted, Slot, SlotLabelsWanted, SlotsWanted


class Slots(Room):
    """The named slots of one pool. Every call raises what those of `Admission` raise."""

    def __init__(self, transport: Transport, pool: str) -> None:
        super().__init__(transport)
        self._pool = pool

    def all(self) -> Iterator[Slot]:
        """Yield all slots, by name."""
        for page in self._pages(pools.LIST_SLOTS, self._pool):
            yield from page.slots

    def add(self, names: list[str], labels: Mapping[str, str]) -> None:
        """Make free slots with these labels."""
        wanted = SlotsWanted(names=names, labels=dict(labels))
        self._call(pools.ADD_SLOTS, self._pool, body=wanted)

    def label(self, name: str, labels: Mapping[str, str]) -> Slot:
        """Replace the labels of a slot."""
        wanted = SlotLabelsWanted(labels=dict(labels))
        return self._call(pools.LABEL_SLOT, self._pool, name, body=wanted)

    def drain(self, name: str, *, keep: bool = False, reason: str = "") -> Slot | None:
        """Keep a slot from further grants; return it, or None if it is gone already."""
        wanted = DrainWanted(keep=keep, reason=reason)
        return self._call(pools.DRAIN_SLOT, self._pool, name, body=wanted).slot

    def resume(self, name: str) -> Slot:
        """Let a drained slot be granted again."""
        return self._call(pools.RESUME_SLOT, self._pool, name)

    def remove(self, name: str) -> None:
        """Remove a free slot."""
        self._call(pools.REMOVE_SLOT, self._pool, name)
