"""Reads all of the original over its API, for those who cannot read its database.

The API shows no moment as a whole: each provider and each consumer is read by itself, and again if
it has changed meanwhile. `--finish` reads everything twice, and refuses an original that changes.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from moorage.client.transport import UnreachableError
from moorage.integrations.placement.asking import MISFITS, Answer, PlacementApi, not_placement
from moorage.integrations.placement.capacity_there import note_over_capacity
from moorage.integrations.placement.inventories import inventory_of
from moorage.integrations.placement.names import CLASSES, TRAITS
from moorage.integrations.placement.oddities import Fate, Oddities
from moorage.integrations.placement.reading import Progress, Reading
from moorage.integrations.placement.rows import Rows, decoded, encoded
from moorage.integrations.placement.source_error import SourceError
from moorage.integrations.placement.values import (
    BEGINNING,
    INCOMPLETE,
    integer_of,
    is_custom,
    name_of,
    text_of,
    type_of,
    uuid_of,
)
from moorage.wire.imports import ConsumerRow, InventoryRow, NameRow, ProviderRow

V = TypeVar("V")

IN_FLIGHT = 8
"""Requests at the same time."""

ATTEMPTS = 10
"""How often something is read that changes while it is read."""

OLDEST = 28
"""The oldest microversion, 1.28 of Rocky, that tells the generations of consumers."""

TYPED = 38

NUMBERS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")

COMPLETED = Fate.COMPLETED

BLIND = (
    "consumers without allocations, which refused requests have left behind",
    "allocations, inventories and traits of providers that have no record",
    "allocations of consumers that have no record, from before Stein",
    "providers without a root, from before Rocky",
)
"""What only the database shows."""


@dataclass
class _Provider:
    """A provider, from several answers of one generation; values are as they were sent."""

    shown: dict[str, Any]
    inventories: dict[str, Any] = field(default_factory=dict)
    offered: datetime = BEGINNING
    """When its inventories have changed."""
    traits: list[str] = field(default_factory=list)
    aggregates: set[str] = field(default_factory=set)
    consumers: list[str] = field(default_factory=list)
    changed: datetime = BEGINNING


class ApiSource:
    """The original by its API; a `Source`."""

    def __init__(self, api: PlacementApi) -> None:
        self._api = api
        self.shown = api.url

    def read(self, oddities: Oddities, progress: Progress) -> Reading:
        """See `Source`."""
        try:
            return _ApiReading(self._api, oddities, progress).whole()
        except UnreachableError as error:
            raise SourceError(str(error)) from None
        except MISFITS as error:
            raise not_placement(self._api.url, error) from None

    def is_unchanged(self, reading: Reading) -> bool:
        """See `Source`. Only another reading can tell."""
        return False

    def warnings(self) -> list[str]:
        """See `Source`."""
        return [
            "the API cannot tell everything, see api_ in the report; with --database, all is read"
        ]

    def behind(self) -> str | None:
        """See `Source`."""
        return None

    def close(self) -> None:
        """See `Source`."""
        self._api.close()


class _ApiReading:
    """One reading of everything. Raises SourceError, UnreachableError."""

    def __init__(self, api: PlacementApi, oddities: Oddities, progress: Progress) -> None:
        self._api = api
        self._oddities = oddities
        self._progress = progress
        self._done = 0
        self._total = 0
        self._rows = Rows()
        self._inventories: dict[str, dict[str, InventoryRow]] = {}
        self._used: dict[tuple[str, str], int] = {}
        self._provider_names: set[str] = set()
        self._typed = True

    def whole(self) -> Reading:
        """Read names, providers, and the consumers on them."""
        self._agree()
        self._names("/resource_classes", "resource_classes", CLASSES, self._rows.classes)
        self._names("/traits", "traits", TRAITS, self._rows.traits)
        shown = self._value("/resource_providers")["resource_providers"]
        self._total = len(shown)
        consumers: dict[str, None] = {}
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for one in pool.map(self._provider, [one["uuid"] for one in shown]):
                self._step("reading providers")
                if one is not None:
                    self._add_provider(one)
                    consumers.update(dict.fromkeys(one.consumers))
            self._take_orphans_out()
            self._done, self._total = 0, len(consumers)
            for name, answer in pool.map(self._consumer, consumers):
                self._step("reading consumers")
                self._add_consumer(name, answer)
        for (provider, name), used in self._used.items():
            note_over_capacity(
                self._oddities, provider, name, self._inventories[provider][name], used
            )
        for what in BLIND:
            self._oddities.note("api_blind", what)
        for kind, count in self._rows.counts().items():
            if count:
                self._oddities.note("api_time_unknown", f"{count} {kind}")
        return Reading(self._rows, self._oddities, f"the API at microversion 1.{self._api.minor}")

    def _agree(self) -> None:
        self._api.minor = 0
        self._api.minor = self._api.agree()
        if self._api.minor < OLDEST:
            raise SourceError(
                f"{self._api.url} has microversion 1.{self._api.minor}, older than 1.{OLDEST}: read"
                " its database instead, see --database"
            )
        self._typed = self._api.minor >= TYPED
        if not self._typed:
            self._oddities.note("api_blind", "types of consumers, which it does not have yet")

    def _step(self, what: str) -> None:
        self._done += 1
        self._progress(what, self._done, max(self._done, self._total))

    def _get(self, path: str) -> Answer:
        """Return an answer that is a success, or says that something is gone."""
        answer = self._api.get(path)
        if answer.status in (401, 403):
            raise SourceError(
                f"{self._api.url} answers {answer.status} for {path}: --source-token must be an"
                " administrator's"
            )
        if answer.status not in (200, 204, 404):
            raise SourceError(f"{self._api.url} answers {answer.status} for {path}")
        return answer

    def _value(self, path: str) -> Any:
        answer = self._get(path)
        if answer.status == 404:
            raise SourceError(f"{self._api.url} has nothing at {path}: it is no Placement API")
        return answer.value

    def _names(
        self, path: str, member: str, standard: frozenset[str], rows: dict[str, bytes]
    ) -> None:
        found = self._value(path)[member]
        for one in found:
            name = one if isinstance(one, str) else one["name"]
            if is_custom(name):
                at = _time(self._get(f"{path}/{name}"))
                rows[name] = encoded(NameRow(name=name, created_at=at, updated_at=at))
            elif name not in standard:
                self._oddities.note("name_unused", name)

    def _provider(self, uuid: str) -> _Provider | None:
        """Read a provider until all answers are of one generation; None: it is gone."""
        for _ in range(ATTEMPTS):
            path = f"/resource_providers/{uuid}"
            parts = [
                self._get(f"{path}{part}")
                for part in ("", "/inventories", "/traits", "/aggregates", "/allocations")
            ]
            if any(part.status == 404 for part in parts):
                return None
            shown, *rest = parts
            if all(
                part.value["resource_provider_generation"] == shown.value["generation"]
                for part in rest
            ):
                return self._put_together(shown, *rest)
        raise SourceError(f"provider {uuid} changes faster than it can be read")

    def _put_together(
        self, shown: Answer, inventories: Answer, traits: Answer, aggregates: Answer, held: Answer
    ) -> _Provider:
        return _Provider(
            shown.value,
            dict(sorted(inventories.value["inventories"].items())),
            _time(inventories),
            sorted(traits.value["traits"]),
            set(aggregates.value["aggregates"]),
            list(held.value["allocations"]),
            _time(shown),
        )

    def _add_provider(self, one: _Provider) -> None:
        named, given = one.shown["uuid"], one.shown["name"]
        what = f"provider {named} ({given})"
        uuid = uuid_of(named, self._oddities, "provider")
        name = name_of(given)
        if uuid is None or uuid in self._rows.providers:
            self._oddities.note("provider_uuid_invalid", what)
            return
        if name is None or name in self._provider_names:
            self._oddities.note("provider_name_invalid", what)
            return
        parent, above = one.shown.get("parent_provider_uuid"), None
        if parent is not None:
            above = uuid_of(parent, self._oddities, "provider")
            if above is None:
                self._oddities.note("parent_missing", f"{what}, parent {parent}")
                return
        self._provider_names.add(name)
        inventories = dict(self._offered(one, what))
        self._inventories[uuid] = inventories
        self._rows.providers[uuid] = encoded(
            ProviderRow(
                uuid=uuid,
                name=name,
                generation=self._generation(one.shown["generation"], what),
                parent=above,
                created_at=one.changed,
                updated_at=one.changed,
                inventories=inventories,
                traits=[
                    trait
                    for trait, _ in self._known(
                        dict.fromkeys(one.traits), TRAITS, "trait_unknown", what
                    )
                ],
                aggregates=sorted(self._aggregates(one.aggregates, what)),
            )
        )

    def _offered(self, one: _Provider, what: str) -> Iterator[tuple[str, InventoryRow]]:
        for name, given in self._known(one.inventories, CLASSES, "class_unknown", what):
            values = [given[member] for member in NUMBERS]
            times = one.offered, one.offered
            found = inventory_of(values, times, self._oddities, f"{what}, {name}")
            if found is not None:
                yield name, found

    def _generation(self, given: Any, what: str) -> int:
        number = integer_of(given, 0)
        if number is None:
            self._oddities.note("generation_missing", what)
        return number or 0

    def _known(
        self, named: dict[str, V], standard: frozenset[str], code: str, what: str
    ) -> Iterator[tuple[str, V]]:
        for name, value in named.items():
            if text_of(name) is not None and (name in standard or is_custom(name)):
                yield name, value
            else:
                self._oddities.note(code, f"{what}: {name}")

    def _aggregates(self, named: Iterable[str], what: str) -> Iterator[str]:
        for one in named:
            uuid = uuid_of(one, self._oddities, "aggregate")
            if uuid is None:
                self._oddities.note("aggregate_invalid", f"aggregate {one} of {what}")
            else:
                yield uuid

    def _take_orphans_out(self) -> None:
        """Take out providers whose parent is not there, and those that are below themselves.

        While the others were read, a parent may have come or gone, or may have changed places with
        its child.
        """
        parents = {
            key: decoded("providers", row).parent for key, row in self._rows.providers.items()
        }
        gone = True
        while gone:
            gone = False
            for key, parent in list(parents.items()):
                if parent is not None and parent not in parents:
                    self._oddities.note("parent_missing", f"provider {key}, parent {parent}")
                    del parents[key], self._rows.providers[key], self._inventories[key]
                    gone = True
        for key in _below_themselves(parents):
            self._oddities.note("parent_cycle", f"provider {key}, parent {parents[key]}")
            del self._rows.providers[key], self._inventories[key]

    def _consumer(self, name: str) -> tuple[str, Answer]:
        return name, self._get(f"/allocations/{name}")

    def _add_consumer(self, name: str, answer: Answer) -> None:
        uuid = uuid_of(name, self._oddities, "consumer")
        if uuid is None or uuid in self._rows.consumers:
            self._oddities.note("consumer_uuid_invalid", f"consumer {name}")
            return
        allocations = self._amounts(uuid, answer.value["allocations"])
        if not allocations:
            return  # it is gone, since the provider was read
        project, user = (text_of(answer.value[name]) for name in ("project_id", "user_id"))
        if project is None or user is None:
            if self._oddities.note("consumer_owner_missing", f"consumer {uuid}") is not COMPLETED:
                return
            project, user = project or INCOMPLETE, user or INCOMPLETE
        if INCOMPLETE in (project, user):
            self._oddities.note("consumer_incomplete", f"consumer {uuid}")
        kind = type_of(answer.value.get("consumer_type")) if self._typed else None
        if kind is None:
            self._oddities.note("consumer_typeless", f"consumer {uuid}")
        for provider, amounts in allocations.items():
            for resource, amount in amounts.items():
                place = provider, resource
                self._used[place] = self._used.get(place, 0) + amount
        at = _time(answer)
        self._rows.consumers[uuid] = encoded(
            ConsumerRow(
                uuid=uuid,
                generation=self._generation(answer.value["consumer_generation"], uuid),
                project=project,
                user=user,
                type=kind,
                allocations=allocations,
                created_at=at,
                updated_at=at,
            )
        )

    def _amounts(self, consumer: str, named: dict[str, Any]) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for provider, one in sorted(named.items()):
            uuid = uuid_of(provider, self._oddities, "provider")
            offered = self._inventories.get(uuid or "")
            for resource, amount in sorted(one["resources"].items()):
                what = f"consumer {consumer}, {resource} on provider {provider}"
                if uuid is None or offered is None:
                    self._oddities.note("allocation_without_provider", what)
                elif resource not in offered:
                    self._oddities.note("allocation_without_inventory", what)
                elif integer_of(amount, 1) is None:
                    self._oddities.note("allocation_invalid", what)
                else:
                    found.setdefault(uuid, {})[resource] = amount
        return found


def _below_themselves(parents: dict[str, str | None]) -> list[str]:
    """Return what is in a cycle of parents, or below one; every parent is there."""
    settled: dict[str, bool] = {}
    for key in parents:
        line: dict[str, None] = {}
        at: str | None = key
        while at is not None and at not in settled and at not in line:
            line[at] = None
            at = parents[at]
        wrong = at is not None and (at in line or settled[at])
        settled.update(dict.fromkeys(line, wrong))
    return [key for key, wrong in settled.items() if wrong]


def _time(answer: Answer) -> datetime:
    """Return when something has changed last, to the second."""
    if answer.modified is None:
        return BEGINNING
    return datetime.fromtimestamp(answer.modified, UTC)
