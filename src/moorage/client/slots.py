"""The typed native API of named slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import quote

from moorage.client.decoding import decode
from moorage.client.transport import Transport
from moorage.wire.pages import PAGE_MAX
from moorage.wire.slots import Drained, DrainWanted, Slot, SlotLabelsWanted, SlotPage, SlotsWanted

T = TypeVar("T")


class Slots:
    """The named slots of one pool. Every call raises what those of `Admission` raise."""

    def __init__(self, transport: Transport, pool: str) -> None:
        self._transport = transport
        self._path = f"/v1/pools/{quote(pool)}:slots"

    def all(self) -> Iterator[Slot]:
        """Yield all slots, by name."""
        cursor: str | None = None
        while True:
            after = "" if cursor is None else f"&cursor={quote(cursor, safe='')}"
            page = self._ask(SlotPage, "GET", f"{self._path}?limit={PAGE_MAX}{after}")
            yield from page.slots
            if (cursor := page.next) is None:
                return

    def add(self, names: list[str], labels: Mapping[str, str]) -> None:
        """Make free slots with these labels."""
        wanted = SlotsWanted(names=names, labels=dict(labels))
        self._transport.request("POST", self._path, asdict(wanted))

    def label(self, name: str, labels: Mapping[str, str]) -> Slot:
        """Replace the labels of a slot."""
        body = asdict(SlotLabelsWanted(labels=dict(labels)))
        return self._ask(Slot, "PUT", f"{self._slot(name)}/labels", body)

    def drain(self, name: str, *, keep: bool = False, reason: str = "") -> Slot | None:
        """Keep a slot from further grants; return it, or None if it is gone already."""
        body = asdict(DrainWanted(keep=keep, reason=reason))
        return self._ask(Drained, "POST", f"{self._slot(name)}/drain", body).slot

    def resume(self, name: str) -> Slot:
        """Let a drained slot be granted again."""
        return self._ask(Slot, "POST", f"{self._slot(name)}/resume")

    def remove(self, name: str) -> None:
        """Remove a free slot."""
        self._transport.request("DELETE", self._slot(name))

    def _slot(self, name: str) -> str:
        return f"{self._path}/{quote(name, safe='')}"

    def _ask(self, kind: type[T], method: str, path: str, body: Any = None) -> T:
        return decode(kind, self._transport.request(method, path, body))
