"""Reads the providers of a snapshot, with their inventories, traits and aggregates."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moorage.integrations.placement.inventories import inventory_of
from moorage.integrations.placement.names import Names
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.rows import encoded
from moorage.integrations.placement.values import (
    integer_of,
    name_of,
    times_of,
    uuid_of,
)
from moorage.wire.imports import InventoryRow, ProviderRow

Table = Iterable[tuple[Any, ...]]


@dataclass(slots=True)
class ReadProvider:
    """A provider of the original, by the id of its row."""

    key: int
    uuid: str
    name: str
    generation: int
    root: Any
    parent: Any
    created_at: datetime
    updated_at: datetime
    inventories: dict[str, InventoryRow] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)


class Providers:
    """The providers that can be kept, by the ids of their rows."""

    def __init__(self, rows: Table, oddities: Oddities) -> None:
        self._oddities = oddities
        self.by_key: dict[Any, ReadProvider] = {}
        self._read(rows)
        self._check_parents()
        self._check_roots()

    def _read(self, rows: Table) -> None:
        uuids: set[str] = set()
        names: set[str] = set()
        for key, uuid_value, name_value, generation, root, parent, created, updated in rows:
            what = f"provider {uuid_value!r}, id {key}"
            uuid = uuid_of(uuid_value, self._oddities, "provider")
            name = name_of(name_value)
            if uuid is None or uuid in uuids or key in self.by_key:
                self._oddities.note("provider_uuid_invalid", what)
                continue
            if name is None or name in names:
                self._oddities.note("provider_name_invalid", f"{what}, name {name_value!r}")
                continue
            uuids.add(uuid)
            names.add(name)
            number = integer_of(generation, 0)
            if number is None:
                self._oddities.note("generation_missing", f"{what}: {generation!r}")
            at, changed = times_of(created, updated, key, self._oddities, what)
            self.by_key[key] = ReadProvider(key, uuid, name, number or 0, root, parent, at, changed)

    def _check_parents(self) -> None:
        """Take out what is not below a root of its own; the rest is a forest then."""
        tops: dict[Any, str] = {}
        for key in list(self.by_key):
            self._settle(key, tops)
        for key, code in tops.items():
            if code:
                gone = self.by_key.pop(key)
                self._oddities.note(
                    code, f"provider {gone.uuid} ({gone.name}), parent {gone.parent}"
                )

    def _settle(self, key: Any, settled: dict[Any, str]) -> None:
        """Find out for a provider, and all above it, whether it can be kept: "" or a code."""
        line: dict[Any, None] = {}
        at: Any = key
        while at is not None and at not in settled and at in self.by_key and at not in line:
            line[at] = None
            at = self.by_key[at].parent
        if at is None:
            code = ""
        elif at in line:
            code = "parent_cycle"
        else:
            above = settled.get(at)
            code = "parent_missing" if above is None or above else ""
        for one in line:
            settled[one] = code

    def _check_roots(self) -> None:
        tops: dict[Any, Any] = {}
        for key, one in self.by_key.items():
            line = [key]
            while line[-1] not in tops and self.by_key[line[-1]].parent is not None:
                line.append(self.by_key[line[-1]].parent)
            top = tops.get(line[-1], line[-1])
            tops.update(dict.fromkeys(line, top))
            if one.root is None:
                self._oddities.note("root_missing", f"provider {one.uuid} ({one.name})")
            elif one.root != top:
                known = self.by_key.get(one.root)
                self._oddities.note(
                    "root_wrong",
                    f"provider {one.uuid} ({one.name}): root"
                    f" {one.root if known is None else known.uuid} instead of"
                    f" {self.by_key[top].uuid}",
                )

    def add_inventories(self, rows: Table, classes: Names) -> None:
        """Add the rows of `inventories`."""
        for key, provider_key, class_key, *numbers, ratio, created, updated in rows:
            one = self.by_key.get(provider_key)
            if one is None:
                self._oddities.note(
                    "inventory_without_provider", f"inventory {key} of provider id {provider_key}"
                )
                continue
            what = f"provider {one.uuid} ({one.name}), inventory {key}"
            name = classes.of(class_key, what)
            if name is None:
                continue
            if name in one.inventories:
                self._oddities.note("inventory_twice", f"{what} of {name}")
                continue
            what = f"{what} of {name}"
            times = times_of(created, updated, key, self._oddities, what)
            found = inventory_of([*numbers, ratio], times, self._oddities, what)
            if found is not None:
                one.inventories[name] = found

    def add_traits(self, rows: Table, traits: Names) -> None:
        """Add the rows of `resource_provider_traits`."""
        for provider_key, trait_key in rows:
            one = self.by_key.get(provider_key)
            if one is None:
                self._oddities.note(
                    "trait_without_provider", f"trait {trait_key} of provider id {provider_key}"
                )
                continue
            name = traits.of(trait_key, f"provider {one.uuid} ({one.name})")
            if name is not None:
                one.traits.add(name)

    def add_aggregates(self, rows: Table, aggregates: Table) -> None:
        """Add the rows of `resource_provider_aggregates`, by those of `placement_aggregates`."""
        uuids = {key: uuid_of(value, self._oddities, "aggregate") for key, value in aggregates}
        for provider_key, aggregate_key in rows:
            one = self.by_key.get(provider_key)
            uuid = uuids.get(aggregate_key)
            what = f"aggregate {uuid or aggregate_key} of provider id {provider_key}"
            if one is None:
                self._oddities.note("aggregate_without_provider", what)
            elif uuid is None:
                self._oddities.note("aggregate_invalid", f"{what} ({one.uuid})")
            else:
                one.aggregates.add(uuid)

    def encoded(self) -> dict[str, bytes]:
        """Return all rows."""
        return dict(self._encoded())

    def _encoded(self) -> Iterator[tuple[str, bytes]]:
        for one in self.by_key.values():
            row = ProviderRow(
                uuid=one.uuid,
                name=one.name,
                generation=one.generation,
                parent=None if one.parent is None else self.by_key[one.parent].uuid,
                created_at=one.created_at,
                updated_at=one.updated_at,
                inventories=dict(sorted(one.inventories.items())),
                traits=sorted(one.traits),
                aggregates=sorted(one.aggregates),
            )
            yield one.uuid, encoded(row)
