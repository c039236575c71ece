"""A naive search: it enumerates all combinations and checks each of them.

It is written from the text of the Placement API reference and shares only the types of the model
and of the requests with the real search. For small catalogs only.
"""

from collections.abc import Iterable, Iterator
from itertools import product

from moorage.core.ids import ProviderId
from moorage.core.ledger.model import Inventory, ProviderRecord
from moorage.core.ledger.requests import (
    AggregateFilter,
    CandidateQuery,
    Group,
    ProviderQuery,
    TraitFilter,
)

Records = dict[ProviderId, ProviderRecord]
Plain = tuple[
    frozenset[tuple[ProviderId, frozenset[tuple[str, int]]]],
    frozenset[tuple[str, frozenset[ProviderId]]],
]
"""A candidate as a hashable value: allocations and mappings."""

Choice = tuple[Group, str | None, ProviderId]
"""A group, the class that is served (None: the whole group), and the provider that serves it."""


def naive_candidates(records: Records, query: CandidateQuery) -> set[Plain]:
    """Return all candidates."""
    return set().union(*naive_by_anchor(records, query).values())


def naive_by_anchor(records: Records, query: CandidateQuery) -> dict[ProviderId, set[Plain]]:
    """Return all candidates by their anchor, the root of a tree."""
    found = {
        root: set(_at_anchor(records, query, root))
        for root, record in records.items()
        if record.provider.parent is None and has_traits(record, query.root_traits)
    }
    return {root: each for root, each in found.items() if each}


def naive_summaries(
    records: Records, query: CandidateQuery, found: Iterable[Plain]
) -> set[ProviderId]:
    """Return the providers that the summaries of these candidates must contain."""
    giving = {uuid for allocations, _ in found for uuid, _ in allocations}
    if not query.nested:
        return giving
    roots = {records[uuid].provider.root for uuid in giving}
    return {uuid for uuid in records if records[uuid].provider.root in roots}


def naive_providers(records: Records, query: ProviderQuery) -> set[ProviderId]:
    """Return the providers that meet every condition of a listing."""
    found = set()
    for uuid, record in records.items():
        if query.name is not None and record.provider.name != query.name:
            continue
        if query.uuid is not None and uuid != query.uuid:
            continue
        if query.in_tree is not None and not _same_tree(records, uuid, query.in_tree):
            continue
        if not all(can_give(record, name, n) for name, n in query.resources.items()):
            continue
        if has_traits(record, query.traits) and is_member(record, query.aggregates):
            found.add(uuid)
    return found


def can_give(record: ProviderRecord, name: str, amount: int) -> bool:
    """Return whether the provider can give this amount of a class."""
    inventory = record.inventories.get(name)
    if inventory is None:
        return False
    if amount < inventory.min_unit or amount > inventory.max_unit:
        return False
    return amount % inventory.step_size == 0 and _has_left(inventory, amount)


def has_traits(record: ProviderRecord, traits: TraitFilter) -> bool:
    """Return whether the provider itself has all required and no forbidden traits."""
    return _meets(record.tags.traits, traits.required) and not (
        record.tags.traits & traits.forbidden
    )


def is_member(record: ProviderRecord, aggregates: AggregateFilter) -> bool:
    """Return whether the provider itself is in all required and no forbidden aggregates."""
    return _meets(record.tags.aggregates, aggregates.member_of) and not (
        record.tags.aggregates & aggregates.forbidden
    )


def _has_left(inventory: Inventory, amount: int) -> bool:
    limit = (inventory.total - inventory.reserved) * inventory.allocation_ratio
    return inventory.used + amount <= limit


def _meets(names: frozenset[str], required: Iterable[frozenset[str]]) -> bool:
    return all(names & any_of for any_of in required)


def _same_tree(records: Records, uuid: ProviderId, other: ProviderId) -> bool:
    return other in records and records[uuid].provider.root == records[other].provider.root


def _shares_with(records: Records, sharer: ProviderId, root: ProviderId) -> bool:
    """Return whether a sharing provider shares an aggregate with the tree of `root`."""
    tags = records[sharer].tags
    if "MISC_SHARES_VIA_AGGREGATE" not in tags.traits:
        return False
    return any(
        record.provider.root == root and record.tags.aggregates & tags.aggregates
        for record in records.values()
    )


def _at_anchor(records: Records, query: CandidateQuery, root: ProviderId) -> Iterator[Plain]:
    parts: list[tuple[Group, str | None]] = []
    for group in query.groups:
        if group.suffix:
            parts.append((group, None))
        else:
            parts += [(group, name) for name in group.resources]
    options = [
        [(group, name, uuid) for uuid in records if _may_serve(records, group, name, uuid, root)]
        for group, name in parts
    ]
    for choices in product(*options):
        allocations = _sum(choices)
        if _holds(records, query, choices, allocations):
            yield _plain(choices, allocations)


def _may_serve(
    records: Records, group: Group, name: str | None, uuid: ProviderId, root: ProviderId
) -> bool:
    """Return whether a provider may serve a group, or one class of the unsuffixed group."""
    record = records[uuid]
    at_home = record.provider.root == root
    if not at_home and not _shares_with(records, uuid, root):
        return False
    if group.in_tree is not None and not _same_tree(records, uuid, group.in_tree):
        return False
    if record.tags.traits & group.traits.forbidden:
        return False
    if name is None:
        return (
            all(can_give(record, each, n) for each, n in group.resources.items())
            and has_traits(record, group.traits)
            and is_member(record, group.aggregates)
        )
    if not can_give(record, name, group.resources[name]):
        return False
    if group.in_tree is not None and not at_home:
        return False
    wanted, forbidden = group.aggregates.member_of, group.aggregates.forbidden
    own, of_root = record.tags.aggregates, records[root].tags.aggregates
    if (own | of_root) & forbidden:
        return False
    return _meets(own, wanted) or (at_home and _meets(of_root, wanted))


def _sum(choices: tuple[Choice, ...]) -> dict[ProviderId, dict[str, int]]:
    allocations: dict[ProviderId, dict[str, int]] = {}
    for group, name, uuid in choices:
        for each, amount in group.resources.items():
            if name in (None, each):
                given = allocations.setdefault(uuid, {})
                given[each] = given.get(each, 0) + amount
    return allocations


def _holds(
    records: Records,
    query: CandidateQuery,
    choices: tuple[Choice, ...],
    allocations: dict[ProviderId, dict[str, int]],
) -> bool:
    """Return whether the choices meet all conditions that concern more than one of them."""
    for uuid, given in allocations.items():
        for name, amount in given.items():
            inventory = records[uuid].inventories[name]
            if amount > inventory.max_unit or not _has_left(inventory, amount):
                return False
    suffixed = [uuid for group, _, uuid in choices if group.suffix]
    if query.group_policy == "isolate" and len(set(suffixed)) < len(suffixed):
        return False
    for group in query.groups:
        chosen = [uuid for by, _, uuid in choices if by is group]
        traits = frozenset(trait for uuid in chosen for trait in records[uuid].tags.traits)
        if not _meets(traits, group.traits.required):
            return False
    for names in query.same_subtree:
        named = {uuid for group, _, uuid in choices if group.suffix in names}
        if not any(named <= _below(records, top) for top in named):
            return False
    roots = [records[uuid].provider.root for uuid in allocations]
    return query.nested or len(set(roots)) == len(roots)


def _below(records: Records, top: ProviderId) -> set[ProviderId]:
    """Return a provider and its descendants."""
    found = {top}
    while True:
        more = {uuid for uuid in records if records[uuid].provider.parent in found} - found
        if not more:
            return found
        found |= more


def _plain(choices: tuple[Choice, ...], allocations: dict[ProviderId, dict[str, int]]) -> Plain:
    mappings: dict[str, set[ProviderId]] = {}
    for group, _, uuid in choices:
        mappings.setdefault(group.suffix, set()).add(uuid)
    return (
        frozenset((uuid, frozenset(given.items())) for uuid, given in allocations.items()),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in mappings.items()),
    )
