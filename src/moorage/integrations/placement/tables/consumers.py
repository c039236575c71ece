"""Reads the consumers of a snapshot, with their allocations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moorage.integrations.placement.capacity_there import note_over_capacity
from moorage.integrations.placement.names import Names
from moorage.integrations.placement.oddities import Fate, Oddities
from moorage.integrations.placement.rows import encoded
from moorage.integrations.placement.tables.providers import Providers
from moorage.integrations.placement.values import (
    INCOMPLETE,
    instant_of,
    integer_of,
    text_of,
    times_of,
    type_of,
    uuid_of,
)
from moorage.wire.imports import ConsumerRow

Table = Iterable[tuple[Any, ...]]


@dataclass(slots=True)
class Held:
    """The allocations of one consumer, and when the first was made, and the last changed."""

    amounts: dict[tuple[int, str], int] = field(default_factory=dict)
    first: datetime | None = None
    last: datetime | None = None
    row: int = 0


class Owners:
    """Projects, users and consumer types by the ids of their rows."""

    def __init__(self, projects: Table, users: Table, types: Table) -> None:
        self.projects = {key: text_of(value) for key, value in projects}
        self.users = {key: text_of(value) for key, value in users}
        self.types = {key: type_of(value) for key, value in types}


class Consumers:
    """The consumers that can be kept."""

    def __init__(self, providers: Providers, classes: Names, oddities: Oddities) -> None:
        self._providers = providers
        self._classes = classes
        self._oddities = oddities
        self._held: dict[str, Held] = {}
        self._invalid: set[str] = set()
        self._used: dict[tuple[int, str], int] = {}
        self.rows: dict[str, bytes] = {}

    def add_allocations(self, rows: Table) -> None:
        """Add the rows of `allocations`."""
        spelled: dict[Any, str | None] = {}
        for key, provider_key, consumer, class_key, used, created, updated in rows:
            what = f"allocation {key} of consumer {consumer}"
            uuid = spelled[consumer] if consumer in spelled else self._spelled(consumer, spelled)
            if uuid is None:
                self._oddities.note("consumer_uuid_invalid", what)
                continue
            place = self._place(what, provider_key, class_key)
            if place is None:
                continue
            amount = integer_of(used, 1)
            if amount is None:
                self._oddities.note("allocation_invalid", f"{what}: {used}")
                continue
            self._add(uuid, key, place, amount, instant_of(created), instant_of(updated))

    def _spelled(self, consumer: Any, spelled: dict[Any, str | None]) -> str | None:
        found = spelled[consumer] = uuid_of(consumer, self._oddities, "consumer")
        return found

    def _place(self, what: str, provider_key: Any, class_key: Any) -> tuple[int, str] | None:
        """Return the inventory that an allocation is of; None: there is none."""
        provider = self._providers.by_key.get(provider_key)
        if provider is None:
            self._oddities.note(
                "allocation_without_provider", f"{what} on provider id {provider_key}"
            )
            return None
        name = self._classes.of(class_key, what)
        if name is None:
            return None
        if name not in provider.inventories:
            self._oddities.note(
                "allocation_without_inventory",
                f"{what} of {name} on provider {provider.uuid} ({provider.name})",
            )
            return None
        return provider.key, name

    def _add(
        self,
        uuid: str,
        key: int,
        place: tuple[int, str],
        amount: int,
        created: datetime | None,
        updated: datetime | None,
    ) -> None:
        held = self._held.get(uuid)
        if held is None:
            held = self._held[uuid] = Held(first=created, row=key)
        before = held.amounts.get(place, 0)
        if before:
            where = f"{place[1]} on provider {self._providers.by_key[place[0]].uuid}"
            fate = self._oddities.note(
                "allocation_twice", f"consumer {uuid}, {where}: {before}, {amount}"
            )
            amount += before if fate is Fate.COMPLETED else 0
        held.amounts[place] = amount
        changed = updated or created
        if changed is not None and (held.last is None or changed > held.last):
            held.last = changed

    def add_consumers(self, rows: Table, owners: Owners) -> None:
        """Add the rows of `consumers`, after the allocations."""
        for key, value, project_key, user_key, generation, *rest in rows:
            *type_keys, created, updated = rest
            what = f"consumer {value}"
            uuid = uuid_of(value, self._oddities, "consumer")
            if uuid is None or uuid in self.rows or uuid in self._invalid:
                self._oddities.note("consumer_uuid_invalid", f"{what}, id {key}")
                continue
            held = self._held.pop(uuid, None)
            if held is None:
                self._oddities.note("consumer_empty", what)
                continue
            project = self._owner(f"{what}, project", owners.projects, project_key)
            user = self._owner(f"{what}, user", owners.users, user_key)
            if project is None or user is None:
                self._invalid.add(uuid)
                continue
            number = integer_of(generation, 0)
            if number is None:
                self._oddities.note("generation_missing", f"{what}: {generation!r}")
            kind = self._type(what, owners.types, type_keys[0] if type_keys else None)
            times = times_of(created, updated, key, self._oddities, what)
            self._row(uuid, held, number or 0, (project, user, kind), times)

    def _owner(self, what: str, known: Mapping[Any, str | None], key: Any) -> str | None:
        """Return a project or a user; None: the consumer is left out."""
        found = known.get(key)
        if found is None:
            fate = self._oddities.note("consumer_owner_missing", f"{what} id {key}")
            found = INCOMPLETE if fate is Fate.COMPLETED else None
        return found

    def _type(self, what: str, known: Mapping[Any, str | None], key: Any) -> str | None:
        if key is None:
            self._oddities.note("consumer_typeless", what)
            return None
        found = known.get(key)
        if found is None:
            self._oddities.note("consumer_type_missing", f"{what}, type id {key}")
        return found

    def _row(
        self,
        uuid: str,
        held: Held,
        generation: int,
        owner: tuple[str, str, str | None],
        times: tuple[datetime, datetime],
    ) -> None:
        """Add a row. The API tells when allocations have changed, not when their consumer has."""
        project, user, kind = owner
        if INCOMPLETE in (project, user):
            self._oddities.note("consumer_incomplete", f"consumer {uuid}")
        created, changed = times
        if held.last is not None:
            changed = max(created, held.last)
        allocations: dict[str, dict[str, int]] = {}
        for place, amount in sorted(held.amounts.items()):
            self._used[place] = self._used.get(place, 0) + amount
            provider = self._providers.by_key[place[0]].uuid
            allocations.setdefault(provider, {})[place[1]] = amount
        self.rows[uuid] = encoded(
            ConsumerRow(
                uuid=uuid,
                generation=generation,
                project=project,
                user=user,
                type=kind,
                allocations=dict(sorted(allocations.items())),
                created_at=created,
                updated_at=changed,
            )
        )

    def end(self) -> None:
        """Add allocations of consumers without a record; say which inventories hold too much."""
        for uuid, held in self._held.items():
            fate = self._oddities.note("consumer_missing", f"consumer {uuid}")
            if fate is Fate.COMPLETED:
                times = times_of(
                    held.first, held.last, held.row, self._oddities, f"consumer {uuid}"
                )
                self._row(uuid, held, 0, (INCOMPLETE, INCOMPLETE, None), times)
        self._held.clear()
        for (key, name), used in self._used.items():
            provider = self._providers.by_key[key]
            shown = f"{provider.uuid} ({provider.name})"
            note_over_capacity(self._oddities, shown, name, provider.inventories[name], used)
