"""Which rows can serve which part of a query: the rules of one group, for a whole chunk.

Source: Placement API reference, "Allocation candidates".
"""

from typing import NamedTuple

import numpy as np

from moorage.core.ledger.requests import AggregateFilter, Group, TraitFilter
from moorage.core.ledger.search.catalog.chunk import Chunk, Place
from moorage.core.ledger.search.catalog.columns import Marks, Mask


class GroupPart(NamedTuple):
    """A part of a group that one provider must serve.

    A suffixed group is one term. The unsuffixed group has one term per class, because each class
    may come from another provider.
    """

    suffix: str
    group: Group
    resources: dict[str, int]

    @property
    def is_suffixed(self) -> bool:
        """Must the provider serve the whole group?"""
        return self.suffix != ""


class Rows(NamedTuple):
    """Which rows of a chunk can serve a term; None: no row.

    `at_home`: for their own tree. `abroad`: for other trees, if they are sharing providers.
    """

    at_home: Mask | None
    abroad: Mask | None


NO_ROWS = Rows(None, None)


def terms(groups: tuple[Group, ...]) -> list[GroupPart]:
    """Split the groups of a query into parts that one provider each must serve."""
    found = []
    for group in groups:
        if group.suffix:
            found.append(GroupPart(group.suffix, group, group.resources))
        else:
            found += [GroupPart("", group, {name: n}) for name, n in group.resources.items()]
    return found


def kinds(terms: list[GroupPart]) -> list[int]:
    """Return the kind of each term, numbered from 0: the same providers serve terms of one kind."""
    if len(terms) == 1:
        return [0]
    known: dict[object, int] = {}
    return [known.setdefault(_kind(term), len(known)) for term in terms]


def _kind(term: GroupPart) -> object:
    group = term.group
    return (
        term.is_suffixed,
        frozenset(term.resources.items()),
        (frozenset(group.traits.required), group.traits.forbidden),
        (frozenset(group.aggregates.member_of), group.aggregates.forbidden),
        group.in_tree,
    )


def shared_needs(groups: tuple[Group, ...]) -> list[frozenset[str]]:
    """Return the trait sets that the providers of the unsuffixed group must meet together."""
    return [names for group in groups if not group.suffix for names in group.traits.required]


def rows_that_serve(chunk: Chunk, term: GroupPart, in_tree: Place | None) -> Rows:
    """Return the rows of a chunk that can serve a term alone, at their present usage.

    `in_tree`: a place in the tree that the group demands, if it demands one.
    """
    group = term.group
    # The providers of an unsuffixed group must have its traits only together: not tested here.
    required = group.traits.required if term.is_suffixed else ()
    mask = with_resources(chunk, term.resources)
    if required or group.traits.forbidden:
        mask = _both(mask, having(chunk, chunk.traits, required, group.traits.forbidden))
    if in_tree is not None:
        mask = _both(mask, tree_rows(chunk, in_tree))
    if mask is None:
        return NO_ROWS
    if not (group.aggregates.member_of or group.aggregates.forbidden):
        return Rows(mask, None if in_tree and not term.is_suffixed else mask)
    if term.is_suffixed:
        mask = _both(mask, in_aggregates(chunk, group.aggregates))
        return Rows(mask, mask)
    at_home = _both(mask, in_aggregates_by_root(chunk, group.aggregates))
    # A demanded tree excludes all providers of other trees, even sharing ones.
    abroad = None if in_tree else _both(mask, in_aggregates(chunk, group.aggregates))
    return Rows(at_home, abroad)


def with_resources(chunk: Chunk, resources: dict[str, int]) -> Mask | None:
    """Which rows can give every one of these amounts? None: no row."""
    mask: Mask = chunk.here
    for name, amount in resources.items():
        column = chunk.columns.get(name)
        if column is None:
            return None
        given = column.can_give(amount)
        # Rows that can give an amount are not empty.
        mask = given if mask is chunk.here else mask & given
    return mask


def with_traits(chunk: Chunk, traits: TraitFilter) -> Mask | None:
    """Which rows alone have all required traits and no forbidden one? None: no row."""
    return having(chunk, chunk.traits, traits.required, traits.forbidden)


def in_aggregates(chunk: Chunk, aggregates: AggregateFilter) -> Mask | None:
    """Which rows themselves are in the requested aggregates? None: no row."""
    return having(chunk, chunk.aggregates, aggregates.member_of, aggregates.forbidden)


def barred_roots(chunk: Chunk, aggregates: AggregateFilter) -> Mask | None:
    """Which rows are in a forbidden aggregate? Nothing may serve a tree with such a root."""
    return chunk.aggregates.any_of(aggregates.forbidden)


def having(
    chunk: Chunk, marks: Marks, required: tuple[frozenset[str], ...], forbidden: frozenset[str]
) -> Mask | None:
    """Which rows have a name of each required set, and no forbidden one? None: no row."""
    mask: Mask | None = chunk.here
    for names in required:
        mask = _both(mask, marks.any_of(names))
        if mask is None:
            return None
    bad = marks.any_of(forbidden) if forbidden else None
    return mask if bad is None or mask is None else mask & ~bad


def in_aggregates_by_root(chunk: Chunk, aggregates: AggregateFilter) -> Mask | None:
    """As `in_aggregates`, but a row also belongs to the aggregates of its root.

    A root in a forbidden aggregate bars its whole tree; `barred_roots` tests that.
    """
    own = having(chunk, chunk.aggregates, aggregates.member_of, frozenset())
    allowed = having(chunk, chunk.aggregates, (), aggregates.forbidden)
    return _both(None if own is None else own | own[chunk.trees.root], allowed)


def tree_rows(chunk: Chunk, in_tree: Place) -> Mask | None:
    """Which rows are in the tree of a place? None: no row."""
    if in_tree[0] is not chunk:
        return None
    mask: Mask = np.equal(chunk.trees.root, chunk.trees.root[in_tree[1]])
    return mask


def _both(first: Mask | None, second: Mask | None) -> Mask | None:
    return None if first is None or second is None else first & second
