"""Queries answered from rows rather than from the catalog: consumers, usage, lists of providers."""

from dataclasses import dataclass
from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.model import (
    NO_TAGS,
    Consumer,
    CustomName,
    Described,
)
from moorage.store.api import Plan, Query, Row
from moorage.store.encoding import key_set
from moorage.store.ledger.rows import (
    allocations_from_text,
    consumer_from_row,
    provider_from_row,
    tags_of_texts,
)


@dataclass(slots=True)
class Usages:
    """The usage of a project, or of one user in it."""

    amounts: list[tuple[str | None, str, int]]
    """(consumer type, resource class, sum), sorted."""
    consumers: dict[str | None, int]
    """Number of consumers by consumer type."""


ProviderAllocation = tuple[ConsumerId, int, dict[str, int], Instant]
"""(consumer, its generation, amounts by resource class, when the consumer last changed)."""


def beginning_load() -> Plan[Instant]:
    """Return when this ledger was created."""
    (((at,),),) = yield [Query("beginning_load")]
    return Instant(at)


def consumer_load(uuid: ConsumerId) -> Plan[Consumer | None]:
    """Load one consumer with its allocations."""
    (rows,) = yield [Query("consumers_load", (key_set([uuid]),))]
    return consumer_from_row(rows[0]) if rows else None


def consumer_places_load(
    uuid: ConsumerId,
) -> Plan[tuple[Consumer | None, dict[ProviderId, int]]]:
    """Load one consumer, and the generations of the providers that it has allocations on."""
    rows, places = yield [
        Query("consumers_load", (key_set([uuid]),)),
        Query("consumer_places_load", (uuid,)),
    ]
    return consumer_from_row(rows[0]) if rows else None, dict(places)


def provider_allocations_load(provider: ProviderId) -> Plan[list[ProviderAllocation]]:
    """Load every allocation on one provider, by consumer."""
    (rows,) = yield [Query("holders_load", (provider,))]
    return [
        (holder.uuid, holder.generation, holder.allocations[provider], holder.updated_at)
        for holder in map(consumer_from_row, rows)
    ]


def usages_load(project_id: str, user_id: str | None) -> Plan[Usages]:
    """Sum up the usage of a project; with `user_id`, only of that user's consumers."""
    if user_id is None:
        statements = [
            Query("usages_load_by_project", (project_id,)),
            Query("consumers_count_by_project", (project_id,)),
        ]
    else:
        statements = [
            Query("usages_load_by_user", (project_id, user_id)),
            Query("consumers_count_by_user", (project_id, user_id)),
        ]
    amounts, counts = yield statements
    return Usages([(kind, name, amount) for kind, name, amount in amounts], dict(counts))


def providers_window(after: ProviderId, rows_max: int) -> Plan[list[ProviderId]]:
    """Load the providers whose UUID comes after `after`, in order, at most `rows_max` of them."""
    (rows,) = yield [Query("providers_window", (after, rows_max))]
    return [row[0] for row in rows]


def classes_window(after: str, rows_max: int) -> Plan[tuple[str, list[CustomName]]]:
    """Load custom classes after a name, in order; also the revision, as do those that follow."""
    clock, rows = yield [Query("clock_load"), Query("resource_classes_window", (after, rows_max))]
    return revision_text(clock), [CustomName(*row) for row in rows]


def traits_window(after: str, rows_max: int) -> Plan[tuple[str, list[CustomName]]]:
    """Load custom traits after a name, in order."""
    clock, rows = yield [Query("clock_load"), Query("traits_window", (after, rows_max))]
    return revision_text(clock), [CustomName(*row) for row in rows]


def provider_rows_window(after: str, rows_max: int) -> Plan[tuple[str, list[Described]]]:
    """Load providers with all their data after a UUID, in order, at most `rows_max` of them."""
    clock, rows = yield [Query("clock_load"), Query("provider_rows_window", (after, rows_max))]
    found: list[Described] = []
    for *columns, traits, aggregates in rows:
        provider, inventories = provider_from_row(tuple(columns))
        tags = tags_of_texts(traits, aggregates) if traits is not None else NO_TAGS
        found.append((provider, inventories, tags))
    return revision_text(clock), found


def consumer_rows_window(after: str, rows_max: int) -> Plan[tuple[str, list[Consumer]]]:
    """Load consumers after a UUID, in order, at most `rows_max` of them."""
    clock, rows = yield [Query("clock_load"), Query("consumers_window", (after, rows_max))]
    return revision_text(clock), [consumer_from_row(row) for row in rows]


def revision_text(clock: list[Row]) -> str:
    """Return the revision in the rows of the clock, as cursors write it."""
    ((epoch, revision, _),) = clock
    return f"{epoch}.{revision}"


def provider_leaves_window(rows_max: int) -> Plan[list[ProviderId]]:
    """Load providers without children, at most `rows_max` of them."""
    (rows,) = yield [Query("provider_leaves_window", (rows_max,))]
    return [row[0] for row in rows]


class ConsumerWindow(NamedTuple):
    """Consumers as of a revision, and how many hold something of the provider or tree in all."""

    revision: str
    consumers: list[Consumer]
    holders: int | None
    """None: they were not to be counted."""


def consumers_window(
    after: ConsumerId,
    rows_max: int,
    provider: ProviderId | None,
    project_id: str | None,
    tree: ProviderId | None = None,
) -> Plan[ConsumerWindow]:
    """Load the consumers whose UUID comes after `after`, in order, at most `rows_max` of them.

    Those that hold something of a provider; or else of any provider in the tree of one; or else
    those of a project; or else all. The first window of a provider or a tree counts all of them.
    """
    window, count = (after, rows_max), []
    if provider is not None:
        query = Query("consumers_window_by_provider", (*window, provider))
        count = [Query("holders_count", (provider,))]
    elif tree is not None:
        query = Query("consumers_window_by_tree", (*window, tree))
        count = [Query("holders_count_by_tree", (tree,))]
    elif project_id is not None:
        query = Query("consumers_window_by_project", (*window, project_id))
    else:
        query = Query("consumers_window", window)
    clock, rows, *counts = yield [Query("clock_load"), query, *([] if after else count)]
    holders = counts[0][0][0] if counts else None
    return ConsumerWindow(revision_text(clock), [consumer_from_row(row) for row in rows], holders)


class PlaceRow(NamedTuple):
    """The allocations of a consumer on a provider.

    `since` is the provider's generation when the consumer got its first allocation there.
    """

    provider: ProviderId
    since: int
    consumer: ConsumerId
    amounts: dict[str, int]


def places_load(top: ProviderId) -> Plan[list[PlaceRow]]:
    """Load what consumers hold on a provider and on all below it."""
    tree, held = yield [Query("tree_load", (top,)), Query("places_load_by_tree", (top,))]
    children: dict[str | None, list[ProviderId]] = {}
    for uuid, parent in tree:
        children.setdefault(parent, []).append(uuid)
    below = [top]
    for uuid in below:
        below += children.get(uuid, ())
    wanted = set(below)
    return [
        PlaceRow(provider, since, ConsumerId(consumer), allocations_from_text(text)[provider])
        for provider, since, consumer, text in held
        if provider in wanted
    ]
