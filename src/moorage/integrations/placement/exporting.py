"""Writes our ledger into an empty database of OpenStack Placement, and checks every row of it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import os_resource_classes
from sqlalchemy import URL

from moorage.integrations.placement.capacity_there import as_offered
from moorage.integrations.placement.judging import single
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import Progress, read_snapshot
from moorage.integrations.placement.rows import KINDS, Rows, decoded, encoded
from moorage.integrations.placement.target import Target, opened
from moorage.integrations.placement.whole_ledger import Read, WholeLedger
from moorage.wire.imports import ConsumerRow, InventoryRow, NameRow, ProviderRow

READS = 3
"""How often the ledger is read until two readings are the same."""

CUSTOM_CLASSES_FROM = 10_000
"""The original's first id of a custom resource class; below are those of the standard ones."""

NAMED_MAX = 1_000


class ExportingError(Exception):
    """The ledger cannot be exported; the message says why, and what to do."""


class ChangingError(ExportingError):
    """The ledger has changed while it was exported."""


@dataclass
class Exported:
    """What was written, and what the original cannot hold."""

    rows: Mapping[str, int]
    already: bool = False
    """Whether the database had all of it before: an earlier export was complete."""
    left_here: Mapping[str, int] = field(default_factory=dict)
    """What stays with Moorage: how many of each."""
    reserved: list[str] = field(default_factory=list)
    """Inventories whose capacity is not offered as a whole: the rest was written as reserved."""
    rounded: list[str] = field(default_factory=list)
    """Ratios that the database keeps in single precision."""


class Export:
    """The export of one server's ledger.

    `run` raises ExportingError, SourceError and the errors of `WholeLedger`.
    """

    def __init__(self, ledger: WholeLedger, progress: Progress, *, trial: bool = False) -> None:
        """Prepare; `trial`: the state of one moment is enough, the ledger may change meanwhile."""
        self._ledger = ledger
        self._progress = progress
        self._trial = trial

    def run(self, url: URL) -> Exported:
        """Write everything, in one transaction.

        No connection is open while the ledger is read: databases and proxies cut one that is idle.
        """
        with opened(url) as target:
            any(target.occupied())  # a database that cannot be used is refused at once
        read = self._one_state()
        closed = self._ledger.offered()
        with opened(url) as target:
            occupied = list(target.occupied())
            wanted = Wanted(read.rows, closed, target)
            if occupied:
                if _difference(wanted, target, self._progress) is None:
                    return self._exported(wanted, already=True)
                raise ExportingError(
                    f"{target.shown} is not empty: {', '.join(occupied)}; make a new database, and"
                    " its schema with `placement-manage db sync`"
                )
            self._write(wanted, target)
            mark = target.snapshot().mark()
            self._check(wanted, target, read, closed)
            target.commit()
            if target.snapshot().mark() != mark:
                raise ExportingError(
                    f"{target.shown} was exported to, but another program has written to it"
                    " meanwhile: stop that, make a new database, and run the same command again"
                )
        return self._exported(wanted)

    def _exported(self, wanted: "Wanted", *, already: bool = False) -> Exported:
        return Exported(
            wanted.rows.counts(), already, self._ledger.beyond(), wanted.reserved, wanted.rounded
        )

    def _one_state(self) -> Read:
        """Return all rows as they were at one moment. Raises ChangingError.

        That two readings are the same says so, too: the moment lies between them.
        """
        last: Read | None = None
        for _ in range(READS):
            now = self._ledger.read(self._progress)
            if now.revision is not None or (last is not None and now.rows == last.rows):
                return now
            last = now
        raise ChangingError(
            "the ledger changes while it is read: stop all that write to it, then run the same"
            " command again"
        )

    def _write(self, wanted: "Wanted", target: Target) -> None:
        done, total = 0, sum(wanted.rows.counts().values())
        for table, rows in wanted.tables():
            for count in target.write(table, rows):
                done += count
                self._progress("writing", done, max(done, total))
        target.continue_ids()

    def _check(
        self,
        wanted: "Wanted",
        target: Target,
        read: Read,
        closed: Mapping[tuple[str, str], int],
    ) -> None:
        """Check what was written, and that it is still the ledger's state."""
        found = _difference(wanted, target, self._progress)
        if found is not None:
            raise ExportingError(f"{target.shown} does not keep what was written: {found}")
        if self._trial or self._ledger.is_at(read.revision):
            return
        now = self._ledger.read(self._progress).rows
        if now != read.rows or self._ledger.offered() != closed:
            raise ChangingError(
                "the ledger has changed during the export, and nothing was written: stop all that"
                " write to it, then run the same command again (--trial writes a state that is"
                " older)"
            )


def _difference(wanted: "Wanted", target: Target, progress: Progress) -> str | None:
    """Return how the database differs from what it should have; None: in nothing."""
    odd = Oddities()
    there = read_snapshot(target.snapshot(), odd, progress).rows
    for code, found in odd.refused():
        return f"{code}: {found.named[0]}"
    for kind in KINDS:
        left, right = wanted.rows.of(kind), there.of(kind)
        if left.keys() != right.keys():
            key = min(left.keys() ^ right.keys())
            return f"{kind} {key} is {'missing' if key in left else 'too much'}"
        for key, row in left.items():
            if row != right[key]:
                one, other = (_to_seconds(json.loads(each)) for each in (row, right[key]))
                if one != other:
                    names = [name for name in one if one[name] != other[name]]
                    was, is_ = one[names[0]], other[names[0]]
                    return f"{kind} {key}: {names[0]} is {is_!r} instead of {was!r}"
    return None


def _to_seconds(value: Any, name: str = "") -> Any:
    """Return a row whose times are whole seconds: the microseconds stand for an order."""
    if isinstance(value, dict):
        return {key: _to_seconds(of, key) for key, of in value.items()}
    if name in ("created_at", "updated_at"):
        return value.partition(".")[0].removesuffix("Z").removesuffix("+00:00")
    return value


class Wanted:
    """What the tables of a target are to have."""

    def __init__(self, rows: Rows, closed: Mapping[tuple[str, str], int], target: Target) -> None:
        """Prepare the rows.

        Args:
            rows: of the ledger.
            closed: the units that are not offered, by provider and resource class.
            target: where they go: it has standard names already, and may keep less.
        """
        self._target = target
        self.reserved: list[str] = []
        self.rounded: list[str] = []
        self.rows = Rows(rows.classes, rows.traits, {}, rows.consumers)
        self._providers: list[ProviderRow] = []
        for uuid, row in rows.providers.items():
            provider = self._fitting(decoded("providers", row), closed)
            self._providers.append(provider)
            self.rows.providers[uuid] = encoded(provider)
        self._providers.sort(key=lambda one: (one.created_at, one.uuid))
        self._ids = {row.uuid: number for number, row in enumerate(self._providers, 1)}
        self._consumers: list[ConsumerRow] = sorted(
            (decoded("consumers", row) for row in rows.consumers.values()),
            key=lambda one: (one.created_at, one.uuid),
        )

    def _fitting(self, row: ProviderRow, closed: Mapping[tuple[str, str], int]) -> ProviderRow:
        """Return a provider as the original can hold it."""
        inventories = dict(row.inventories)
        for name, one in row.inventories.items():
            what = f"{name} of {row.uuid} ({row.name})"
            if shut := closed.get((row.uuid, name)):
                inventories[name] = as_offered(one, shut)
                _note(self.reserved, f"{what}: {shut} of {one.total} are not offered")
            ratio = one.allocation_ratio
            if self._target.single_precision and (kept := single(ratio)) != ratio:
                inventories[name] = replace(inventories[name], allocation_ratio=kept)
                _note(self.rounded, f"{what}: {ratio} becomes {kept}")
        return replace(row, inventories=inventories)

    def tables(self) -> Iterator[tuple[str, Iterable[Mapping[str, Any]]]]:
        """Yield all tables with their new rows, in an order that foreign keys permit."""
        classes = self._classes()
        traits = self._traits()
        aggregates = self._named(one for row in self._providers for one in row.aggregates)
        projects = self._named(one.project for one in self._consumers)
        users = self._named(one.user for one in self._consumers)
        types = self._named(one.type for one in self._consumers if one.type is not None)
        oldest = self._oldest()
        yield "resource_classes", self._name_rows(classes, "resource_classes", "classes", oldest)
        yield "traits", self._name_rows(traits, "traits", "traits", oldest)
        yield "placement_aggregates", _plain(aggregates, "uuid", oldest)
        yield "projects", _plain(projects, "external_id", oldest)
        yield "users", _plain(users, "external_id", oldest)
        yield "consumer_types", _plain(types, "name", oldest)
        yield "resource_providers", self._provider_rows()
        yield "resource_provider_traits", self._tags("trait_id", "traits", traits)
        yield "resource_provider_aggregates", self._tags("aggregate_id", "aggregates", aggregates)
        yield "inventories", self._inventory_rows(classes)
        yield "consumers", self._consumer_rows(projects, users, types)
        yield "allocations", self._allocation_rows(classes)

    def _oldest(self) -> datetime | None:
        """Return the time of rows of which we know none."""
        every = [row.created_at for row in self._providers]
        every += [row.created_at for row in self._consumers]
        return self._time(min(every)) if every else None

    def _time(self, value: datetime) -> datetime:
        """Return a time as the original writes it: in UTC, without saying so."""
        plain = value.replace(tzinfo=None)
        return plain if self._target.keeps_microseconds else plain.replace(microsecond=0)

    def _times(self, row: NameRow | ProviderRow | InventoryRow | ConsumerRow) -> dict[str, Any]:
        at, changed = self._time(row.created_at), self._time(row.updated_at)
        return {"created_at": at, "updated_at": None if changed == at else changed}

    def _classes(self) -> dict[str, int]:
        """Return the ids of all classes: the original numbers the standard ones by their list."""
        ids = dict(self._target.names("resource_classes"))
        used = {name for row in self._providers for name in row.inventories}
        for one in self._consumers:
            for amounts in one.allocations.values():
                used.update(amounts)
        for name in sorted(used - ids.keys() - self.rows.classes.keys()):
            ids[name] = os_resource_classes.STANDARDS.index(name)
        following = max([CUSTOM_CLASSES_FROM - 1, *ids.values()]) + 1
        custom = [name for name in _by_age(self.rows.classes) if name not in ids]
        return ids | {name: following + number for number, name in enumerate(custom)}

    def _traits(self) -> dict[str, int]:
        ids = dict(self._target.names("traits"))
        used = {name for row in self._providers for name in row.traits}
        new = [*sorted(used - ids.keys() - self.rows.traits.keys()), *_by_age(self.rows.traits)]
        following = max(ids.values(), default=0) + 1
        return ids | {name: following + number for number, name in enumerate(new)}

    def _name_rows(
        self, ids: dict[str, int], table: str, kind: Any, oldest: datetime | None
    ) -> Iterator[Mapping[str, Any]]:
        there = self._target.names(table)
        custom = self.rows.of(kind)
        for name, number in ids.items():
            if name in there:
                continue
            times: dict[str, Any] = {"created_at": oldest, "updated_at": None}
            if name in custom:
                times = self._times(decoded(kind, custom[name]))
            yield {"id": number, "name": name, **times}

    def _named(self, names: Iterable[str]) -> dict[str, int]:
        return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}

    def _provider_rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield providers, each after its parent."""
        rows = {row.uuid: row for row in self._providers}
        roots: dict[str, int] = {}
        for row in self._providers:
            line: list[ProviderRow] = []
            at: ProviderRow | None = row
            while at is not None and at.uuid not in roots:
                line.append(at)
                at = None if at.parent is None else rows[at.parent]
            for one in reversed(line):
                parent = one.parent
                roots[one.uuid] = self._ids[one.uuid] if parent is None else roots[parent]
                yield {
                    "id": self._ids[one.uuid],
                    "uuid": one.uuid,
                    "name": one.name,
                    "generation": one.generation,
                    "root_provider_id": roots[one.uuid],
                    "parent_provider_id": None if parent is None else self._ids[parent],
                    **self._times(one),
                }

    def _tags(
        self, column: str, member: str, ids: Mapping[str, int]
    ) -> Iterator[Mapping[str, Any]]:
        for row in self._providers:
            at = self._time(row.updated_at)
            for name in getattr(row, member):
                yield {
                    "resource_provider_id": self._ids[row.uuid],
                    column: ids[name],
                    "created_at": at,
                    "updated_at": None,
                }

    def _inventory_rows(self, classes: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
        every = [
            (one.created_at, self._ids[row.uuid], classes[name], one)
            for row in self._providers
            for name, one in row.inventories.items()
        ]
        every.sort(key=lambda one: one[:3])
        for number, (_, provider, class_id, one) in enumerate(every, 1):
            yield {
                "id": number,
                "resource_provider_id": provider,
                "resource_class_id": class_id,
                "total": one.total,
                "reserved": one.reserved,
                "min_unit": one.min_unit,
                "max_unit": one.max_unit,
                "step_size": one.step_size,
                "allocation_ratio": one.allocation_ratio,
                **self._times(one),
            }

    def _consumer_rows(
        self, projects: Mapping[str, int], users: Mapping[str, int], types: Mapping[str, int]
    ) -> Iterator[Mapping[str, Any]]:
        for number, one in enumerate(self._consumers, 1):
            yield {
                "id": number,
                "uuid": one.uuid,
                "project_id": projects[one.project],
                "user_id": users[one.user],
                "generation": one.generation,
                "consumer_type_id": None if one.type is None else types[one.type],
                **self._times(one),
            }

    def _allocation_rows(self, classes: Mapping[str, int]) -> Iterator[Mapping[str, Any]]:
        """Yield allocations: the original writes all of a consumer again whenever one changes."""
        number = 0
        for consumer in self._consumers:
            at = self._time(consumer.updated_at)
            for uuid, amounts in consumer.allocations.items():
                for name, amount in amounts.items():
                    number += 1
                    yield {
                        "id": number,
                        "resource_provider_id": self._ids[uuid],
                        "consumer_id": consumer.uuid,
                        "resource_class_id": classes[name],
                        "used": amount,
                        "created_at": at,
                        "updated_at": None,
                    }


def _plain(ids: Mapping[str, int], column: str, at: datetime | None) -> Iterator[Mapping[str, Any]]:
    for name, number in ids.items():
        yield {"id": number, column: name, "created_at": at, "updated_at": None}


def _by_age(rows: Mapping[str, bytes]) -> list[str]:
    return sorted(rows, key=lambda name: (json.loads(rows[name])["created_at"], name))


def _note(notes: list[str], text: str) -> None:
    if len(notes) < NAMED_MAX:
        notes.append(text)
