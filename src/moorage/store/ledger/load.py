"""Loads the facts that a batch needs by their keys, with a few set statements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts, HoldersCame, Keys
from moorage.core.ledger.model import CustomName, Provider
from moorage.core.limits import HOLDERS_MAX
from moorage.core.restart import Restart
from moorage.store.api import Plan, Query, Row, Statement
from moorage.store.encoding import key_set
from moorage.store.ledger.rows import consumer_from_row, provider_from_row, tags_from_row

Take = Callable[[Facts, Sequence[Row]], None]
"""Adds rows to the facts."""

Step = tuple[Query, Take]
"""A statement, and the function that takes its rows."""

LEVELS_MAX = 16
"""Levels above a provider that are read, one statement for each: most trees have few."""

LOCKS = frozenset({"ledger_lock", "ledger_share", "structure_lock"})
"""Statements that only lock."""

UNLOCKED = {
    "consumers_lock": Query("consumers_load"),
    "providers_lock": Query("providers_load"),
    "providers_lock_by_tree": Query("providers_load_with_trees"),
}
"""The statements that return the same rows without locking them."""


def facts_load(
    keys: Keys, standard_classes: frozenset[str], standard_traits: frozenset[str]
) -> Plan[Facts]:
    """Load what the keys name; missing objects are not in the facts.

    `names` contains the name of every loaded provider. `children` is complete for `keys.parents`
    and for every provider of the trees in `keys.trees`.

    In a shared database, what may change is locked until the transaction ends, always in this
    order: ledger, structure, consumers, providers (including those that a consumer leaves).

    All consumers of `keys.holders` are looked up before they are locked, and again once nobody can
    come any more. Raises Restart: somebody has come in between. If they are more than
    `HOLDERS_MAX`, none is loaded, and the facts say so.
    """
    if keys.class_uses or keys.trait_uses:
        keys = yield from _of_known_words(keys)
    facts = Facts(standard_classes, standard_traits, keys)
    locks = _locks(keys)
    consumers = keys.consumers
    if keys.holders:
        *_, rows = yield [*locks, Query("holders_of", (key_set(keys.holders),))]
        held = {consumer for _, consumer in rows}
        if len(held) > HOLDERS_MAX:
            facts.holders_left_out = len(held)
            keys = replace(keys, holders=set())
        else:
            consumers = consumers | held
        locks = []
    if consumers:
        *_, found = yield [*locks, Query("consumers_lock", (key_set(consumers),))]
        for row in found:
            facts.consumers[row[0]] = consumer_from_row(row)
        locks = []
    steps = _provider_steps(keys, facts) + _word_steps(keys)
    if steps:
        results = yield [*locks, *[query for query, _ in steps]]
        for (_, take), rows in zip(steps, results[len(locks) :], strict=True):
            take(facts, rows)
    if keys.holders:
        _check_holders(facts, keys, consumers)
    return facts


def facts_read(
    keys: Keys, standard_classes: frozenset[str], standard_traits: frozenset[str]
) -> Plan[Facts]:
    """Load the same in a snapshot, without a lock; use `read_aside`."""
    plan = facts_load(keys, standard_classes, standard_traits)
    try:
        asked = next(plan)
        while True:
            found = yield [_unlocked(one) for one in asked if one.block not in LOCKS]
            rest = iter(found)
            asked = plan.send([[] if one.block in LOCKS else next(rest) for one in asked])
    except StopIteration as stop:
        facts: Facts = stop.value
        return facts


def above_read(facts: Facts, providers: set[ProviderId]) -> Plan[None]:
    """Add what is above some loaded providers, up to `LEVELS_MAX` levels, without a lock.

    Use `read_aside`.
    """
    level = providers
    for _ in range(LEVELS_MAX):
        known = (facts.providers[uuid].parent for uuid in level if uuid in facts.providers)
        level = {parent for parent in known if parent is not None}
        if missing := level - facts.providers.keys():
            (rows,) = yield [Query("providers_load", (key_set(missing),))]
            _providers(facts, rows)
        if not level:
            return


def _unlocked(statement: Statement) -> Statement:
    plain = UNLOCKED.get(statement.block)
    return statement if plain is None else statement._replace(block=plain.block)


def _check_holders(facts: Facts, keys: Keys, loaded: set[ConsumerId]) -> None:
    """Raise Restart if a consumer that is not loaded has come; next time, nobody else may."""
    came = set[ConsumerId]().union(*facts.holders.values()) - loaded
    if came:
        raise Restart(HoldersCame(Keys(consumers=came, crowded=set(keys.holders))))


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
    alone = bool(keys.class_uses or keys.trait_uses or keys.crowded or keys.created_again)
    structure = bool(keys.names or keys.parents or keys.trees)
    locks = []
    # A statement that waits for its own lock does not see rows that were inserted meanwhile.
    if alone or structure or keys.returned:
        locks.append(Query("ledger_lock") if alone else Query("ledger_share"))
    if structure:
        locks.append(Query("structure_lock"))
    return locks


def _provider_steps(keys: Keys, facts: Facts) -> list[Step]:
    known = keys.providers | keys.tags | keys.parents | keys.holders
    for consumer in facts.consumers.values():
        known |= consumer.allocations.keys()
    steps: list[Step] = []
    if keys.trees:
        asked = (key_set(known | keys.trees), key_set(keys.trees))
        steps.append((Query("providers_lock_by_tree", asked), _providers))
    elif known:
        steps.append((Query("providers_lock", (key_set(known),)), _providers))
    if keys.names:
        steps.append((Query("providers_load_by_name", (key_set(keys.names),)), _providers))
    if keys.parents:
        for parent in keys.parents:
            facts.children[parent] = set()
        steps.append((Query("providers_load_by_parent", (key_set(keys.parents),)), _children))
    if keys.trees:
        steps.append((Query("providers_load_by_tree", (key_set(keys.trees),)), _trees))
    if keys.tags:
        steps.append((Query("tags_load", (key_set(keys.tags),)), _tags))
    if keys.holders:
        for provider in keys.holders:
            facts.holders[provider] = set()
        steps.append((Query("holders_of", (key_set(keys.holders),)), _holders))
    return steps


def _word_steps(keys: Keys) -> list[Step]:
    # A decision can only remove uses by loaded providers: one use more than these is enough.
    most = 1 + len(keys.providers | keys.tags)
    steps: list[Step] = []
    if keys.classes:
        steps.append((Query("resource_classes_load", (key_set(keys.classes),)), _classes))
    if keys.traits:
        steps.append((Query("traits_load", (key_set(keys.traits),)), _traits))
    if keys.class_uses:
        asked = (key_set(keys.class_uses), most)
        steps.append((Query("resource_class_uses_count", asked), _class_uses))
    if keys.trait_uses:
        asked = (key_set(keys.trait_uses), most)
        steps.append((Query("trait_uses_count", asked), _trait_uses))
    return steps


def _providers(facts: Facts, rows: Iterable[Row]) -> None:
    for row in rows:
        _provider(facts, row)


def _children(facts: Facts, rows: Iterable[Row]) -> None:
    for row in rows:
        _child(facts, _provider(facts, row))


def _trees(facts: Facts, rows: Iterable[Row]) -> None:
    members = [_provider(facts, row) for row in rows]
    for member in members:
        facts.children.setdefault(member.uuid, set())
    for member in members:
        _child(facts, member)


def _tags(facts: Facts, rows: Iterable[Row]) -> None:
    facts.tags.update((row[0], tags_from_row(row)) for row in rows)


def _holders(facts: Facts, rows: Iterable[Row]) -> None:
    for provider, consumer in rows:
        facts.holders[provider].add(consumer)


def _classes(facts: Facts, rows: Iterable[Row]) -> None:
    facts.classes.update((row[0], CustomName(*row)) for row in rows)


def _traits(facts: Facts, rows: Iterable[Row]) -> None:
    facts.traits.update((row[0], CustomName(*row)) for row in rows)


def _class_uses(facts: Facts, rows: Iterable[Row]) -> None:
    for name, uses, managed in rows:
        facts.class_uses[name] = uses
        if managed:
            facts.managed_classes.add(name)


def _trait_uses(facts: Facts, rows: Iterable[Row]) -> None:
    facts.trait_uses.update(dict(rows))


def _provider(facts: Facts, row: Row) -> Provider:
    provider, facts.inventories[provider.uuid] = provider_from_row(row)
    facts.providers[provider.uuid] = provider
    facts.names[provider.name] = provider.uuid
    return provider


def _child(facts: Facts, child: Provider) -> None:
    if child.parent is not None:
        children: set[ProviderId] = facts.children.setdefault(child.parent, set())
        children.add(child.uuid)
