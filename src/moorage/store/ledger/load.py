"""Loads the facts that a batch needs by their keys, with a few set statements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from moorage.core.ids import ProviderId
from moorage.core.ledger.facts import Facts, Keys
from moorage.core.ledger.model import CustomName, Provider
from moorage.store.api import Plan, Query, Row
from moorage.store.encoding import key_set
from moorage.store.ledger.rows import consumer_from_row, provider_from_row, tags_from_row

Step = tuple[Query, Callable[[Sequence[Row]], None]]
"""A statement, and the function that takes its rows."""


def facts_load(
    keys: Keys, standard_classes: frozenset[str], standard_traits: frozenset[str]
) -> Plan[Facts]:
    """Load what the keys name; missing objects are not in the facts.

    `names` contains the name of every loaded provider. `children` is complete for `keys.parents`
    and for every provider of the trees in `keys.trees`.

    In a shared database, what may change is locked until the transaction ends, always in this
    order: ledger, structure, consumers, providers (including those that a consumer leaves).
    """
    if keys.class_uses or keys.trait_uses:
        keys = yield from _of_known_words(keys)
    facts = Facts(standard_classes, standard_traits, keys)
    locks = _locks(keys)
    if keys.consumers:
        consumers = key_set(keys.consumers)
        *_, found = yield [*locks, Query("consumers_lock", (consumers,))]
        facts.consumers.update((row[0], consumer_from_row(row)) for row in found)
        locks = []
    steps = [*_provider_steps(keys, facts), *_word_steps(keys, facts)]
    if steps:
        results = yield [*locks, *(query for query, _ in steps)]
        for (_, take), rows in zip(steps, results[len(locks) :], strict=True):
            take(rows)
    return facts


def _of_known_words(keys: Keys) -> Plan[Keys]:
    """Drop the classes and traits whose uses are needed and that do not exist.

    Counting uses scans all providers under a lock that blocks all changes of providers. If a name
    does not exist now, the whole batch treats it as missing.
    """
    classes, traits = yield [
        Query("resource_classes_load", (key_set(keys.class_uses),)),
        Query("traits_load", (key_set(keys.trait_uses),)),
    ]
    no_classes = keys.class_uses.difference(row[0] for row in classes)
    no_traits = keys.trait_uses.difference(row[0] for row in traits)
    return replace(
        keys,
        classes=keys.classes - no_classes,
        class_uses=keys.class_uses - no_classes,
        traits=keys.traits - no_traits,
        trait_uses=keys.trait_uses - no_traits,
    )


def _locks(keys: Keys) -> list[Query]:
    """Return the locks for what has no row yet, or too many rows to lock.

    The ledger's lock is first, shared or not: waiting for it while holding the structure lock would
    block all transactions that need both.
    """
    alone = bool(keys.class_uses or keys.trait_uses)
    structure = bool(keys.names or keys.parents or keys.trees)
    locks = []
    if alone or structure:
        locks.append(Query("ledger_lock") if alone else Query("ledger_share"))
    if structure:
        locks.append(Query("structure_lock"))
    return locks


def _provider_steps(keys: Keys, facts: Facts) -> list[Step]:
    held_on = {
        provider for consumer in facts.consumers.values() for provider in consumer.allocations
    }
    known = keys.providers | held_on | keys.tags | keys.parents

    def providers(rows: Iterable[Row]) -> None:
        for row in rows:
            _provider(facts, row)

    def children(rows: Iterable[Row]) -> None:
        for row in rows:
            _child(facts, _provider(facts, row))

    def trees(rows: Iterable[Row]) -> None:
        members = [_provider(facts, row) for row in rows]
        for member in members:
            facts.children.setdefault(member.uuid, set())
        for member in members:
            _child(facts, member)

    def tags(rows: Iterable[Row]) -> None:
        facts.tags.update((row[0], tags_from_row(row)) for row in rows)

    def lock(asked: str) -> Query:
        if keys.trees:
            return Query("providers_lock_by_tree", (asked, key_set(keys.trees)))
        return Query("providers_lock", (asked,))

    for parent in keys.parents:
        facts.children[parent] = set()
    return [
        *_step(known | keys.trees, providers, lock),
        *_step(keys.names, providers, lambda asked: Query("providers_load_by_name", (asked,))),
        *_step(keys.parents, children, lambda asked: Query("providers_load_by_parent", (asked,))),
        *_step(keys.trees, trees, lambda asked: Query("providers_load_by_tree", (asked,))),
        *_step(keys.tags, tags, lambda asked: Query("tags_load", (asked,))),
    ]


def _word_steps(keys: Keys, facts: Facts) -> list[Step]:
    # A decision can only remove uses by loaded providers: one use more than these is enough.
    most = 1 + len(keys.providers | keys.tags)

    def classes(rows: Iterable[Row]) -> None:
        facts.classes.update((row[0], CustomName(*row)) for row in rows)

    def traits(rows: Iterable[Row]) -> None:
        facts.traits.update((row[0], CustomName(*row)) for row in rows)

    def class_uses(rows: Iterable[Row]) -> None:
        for name, uses, managed in rows:
            facts.class_uses[name] = uses
            if managed:
                facts.managed_classes.add(name)

    def trait_uses(rows: Iterable[Row]) -> None:
        facts.trait_uses.update(dict(rows))

    return [
        *_step(keys.classes, classes, lambda asked: Query("resource_classes_load", (asked,))),
        *_step(keys.traits, traits, lambda asked: Query("traits_load", (asked,))),
        *_step(
            keys.class_uses,
            class_uses,
            lambda asked: Query("resource_class_uses_count", (asked, most)),
        ),
        *_step(keys.trait_uses, trait_uses, lambda asked: Query("trait_uses_count", (asked, most))),
    ]


def _step(
    asked: Iterable[str], take: Callable[[Sequence[Row]], None], query: Callable[[str], Query]
) -> list[Step]:
    """Return the step for a set of keys; no step for an empty set."""
    names = sorted(asked)
    return [(query(key_set(names)), take)] if names else []


def _provider(facts: Facts, row: Row) -> Provider:
    provider, facts.inventories[provider.uuid] = provider_from_row(row)
    facts.providers[provider.uuid] = provider
    facts.names[provider.name] = provider.uuid
    return provider


def _child(facts: Facts, child: Provider) -> None:
    if child.parent is not None:
        children: set[ProviderId] = facts.children.setdefault(child.parent, set())
        children.add(child.uuid)
