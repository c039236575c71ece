"""Checks the database for consistency: computes every sum and every tree from the rows again.

Use `read_aside`: it reads everything. Each difference is one line of text for people.
"""

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Provider
from moorage.store.admission import check as admission_check
from moorage.store.api import Plan, Query
from moorage.store.fleet import check as fleet_check
from moorage.store.ledger.rows import provider_from_row, tags_from_row
from moorage.store.offers_check import offers_differences_load


def content_plans(
    standard_classes: frozenset[str], standard_traits: frozenset[str]
) -> list[Plan[list[str]]]:
    """Return the plans that check the contents of an undamaged file; run each in its own snapshot.

    A long snapshot stops SQLite from reusing its log, and PostgreSQL from removing dead rows.
    """
    return [
        _sums(),
        _adrift(),
        _words(standard_classes, standard_traits),
        _reported(),
        _trees(),
        admission_check.differences_load(),
        fleet_check.differences_load(),
        offers_differences_load(),
    ]


def file_differences_load() -> Plan[list[str]]:
    """Return the damage of the file itself."""
    (pages,) = yield [Query("integrity_check")]
    return [f"file: {row[0]}" for row in pages if row[0] != "ok"]


def _trees() -> Plan[list[str]]:
    (rows,) = yield [Query("providers_snapshot")]
    return tree_differences({row[0]: provider_from_row(row)[0] for row in rows})


def _sums() -> Plan[list[str]]:
    sums, generations, holds = yield [
        Query("inventory_sums_differ"),
        Query("consumer_generations_wrong"),
        Query("allocations_not_positive"),
    ]
    found = [
        f"inventory {name} of provider {provider}: used is {used}, allocations sum up to {total}"
        for provider, name, used, total in sums
    ]
    found += [f"consumer {uuid}: generation {generation}" for uuid, generation in generations]
    return found + [
        f"allocation of consumer {consumer} on {name} of provider {provider}: amount {amount}"
        for consumer, provider, name, amount in holds
    ]


def tree_differences(providers: dict[ProviderId, Provider]) -> list[str]:
    """Return the errors in generations, parents and roots of these providers, in order."""
    found = []
    for uuid, provider in providers.items():
        if provider.generation < 0:
            found.append(f"provider {uuid}: generation {provider.generation}")
        parent = providers.get(provider.parent) if provider.parent is not None else None
        if provider.parent is None:
            if provider.root != uuid:
                found.append(f"provider {uuid}: no parent, but its root is {provider.root}")
        elif parent is None:
            found.append(f"provider {uuid}: its parent {provider.parent} does not exist")
        elif parent.root != provider.root:
            found.append(f"provider {uuid}: root {provider.root}, its parent's is {parent.root}")
        if _loops(providers, provider):
            found.append(f"provider {uuid}: it is its own ancestor")
    return found


def _loops(providers: dict[ProviderId, Provider], start: Provider) -> bool:
    seen: set[ProviderId] = set()
    at: Provider | None = start
    while at is not None and at.parent is not None and at.uuid not in seen:
        seen.add(at.uuid)
        at = providers.get(at.parent)
    return at is not None and at.uuid == start.uuid and start.uuid in seen


def _adrift() -> Plan[list[str]]:
    """Find rows that refer to rows that do not exist."""
    tags, allocations, missing, adrift, idle = yield [
        Query("tags_adrift"),
        Query("allocations_adrift"),
        Query("holders_missing"),
        Query("holders_adrift"),
        Query("consumers_idle"),
    ]
    return [
        *(f"traits and aggregates: provider {provider} does not exist" for (provider,) in tags),
        *(
            f"allocation of consumer {consumer}: provider {provider} has no inventory of {name}"
            for consumer, provider, name in allocations
        ),
        *(
            f"holders of provider {provider}: consumer {consumer} is missing"
            for provider, consumer in missing
        ),
        *(
            f"holders of provider {provider}: consumer {consumer} has no allocation on it"
            for provider, consumer in adrift
        ),
        *(f"consumer {consumer}: it has no allocations" for (consumer,) in idle),
    ]


def _words(standard_classes: frozenset[str], standard_traits: frozenset[str]) -> Plan[list[str]]:
    """Find resource classes and traits that are used but do not exist."""
    classes, traits, used_classes, used_traits = yield [
        Query("resource_classes_snapshot"),
        Query("traits_snapshot"),
        Query("inventory_classes_load"),
        Query("tags_names_load"),
    ]
    known_classes = standard_classes.union(row[0] for row in classes)
    known_traits = standard_traits.union(row[0] for row in traits)
    return [
        *(f"inventory: no resource class {n}" for (n,) in used_classes if n not in known_classes),
        *(f"traits: no trait {n}" for (n,) in used_traits if n not in known_traits),
    ]


def _reported() -> Plan[list[str]]:
    """Find traits that reports have set, according to the rows, but that are not there."""
    (rows,) = yield [Query("tags_reported_snapshot")]
    found = []
    for row in rows:
        tags = tags_from_row(row)
        for one in tags.reported:
            found += [
                f"traits of provider {row[0]}: group '{one.group}' has set {name}, it is not there"
                for name in sorted(one.traits - tags.traits)
            ]
    return found
