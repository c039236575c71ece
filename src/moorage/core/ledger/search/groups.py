"""Which rows can serve which part of a query: the rules of one group, over a block at once.

Source: Placement API reference, "Allocation candidates".
"""

from typing import NamedTuple

import numpy as np

from moorage.core.ledger.requests import AggregateFilter, Group, TraitFilter
from moorage.core.ledger.search.block import Block, Place
from moorage.core.ledger.search.columns import Marks, Mask


class Term(NamedTuple):
    """A part of a group that one provider must serve.

    A suffixed group is one term. The unsuffixed one is a term for each of its classes, as each
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
    """Which rows of a block can serve a term; None: no row.

    `at_home`: for the tree they are in. `abroad`: for another tree, if they are sharing providers.
    """

    at_home: Mask | None
    abroad: Mask | None


NO_ROWS = Rows(None, None)


def terms(groups: tuple[Group, ...]) -> list[Term]:
    """Split the groups of a query into what one provider each must serve."""
    found = []
    for group in groups:
        if group.suffix:
            found.append(Term(group.suffix, group, group.resources))
        else:
            found += [Term("", group, {name: n}) for name, n in group.resources.items()]
    return found


def kinds(terms: list[Term]) -> list[int]:
    """Number the kinds of terms from 0: terms of one kind are served by the very same providers.

    Returns the kind of each term.
    """
    if len(terms) == 1:
        return [0]
    known: dict[object, int] = {}
    return [known.setdefault(_kind(term), len(known)) for term in terms]


def _kind(term: Term) -> object:
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


def rows_that_serve(block: Block, term: Term, in_tree: Place | None) -> Rows:
    """Return the rows of a block that can serve a term, alone and as they are used now.

    `in_tree`: a place in the tree that the group demands, if it demands one.
    """
    group = term.group
    # What an unsuffixed group requires is shared out among the chosen providers: not here.
    required = group.traits.required if term.is_suffixed else ()
    mask = with_resources(block, term.resources)
    if required or group.traits.forbidden:
        mask = _both(mask, having(block, block.traits, required, group.traits.forbidden))
    if in_tree is not None:
        mask = _both(mask, tree_rows(block, in_tree))
    if mask is None:
        return NO_ROWS
    if not (group.aggregates.member_of or group.aggregates.forbidden):
        return Rows(mask, None if in_tree and not term.is_suffixed else mask)
    if term.is_suffixed:
        mask = _both(mask, in_aggregates(block, group.aggregates))
        return Rows(mask, mask)
    at_home = _both(mask, in_aggregates_by_root(block, group.aggregates))
    # Demanding a tree keeps providers of other trees out, shared or not.
    abroad = None if in_tree else _both(mask, in_aggregates(block, group.aggregates))
    return Rows(at_home, abroad)


def with_resources(block: Block, resources: dict[str, int]) -> Mask | None:
    """Which rows can give every one of these amounts? None: no row."""
    mask: Mask = block.here
    for name, amount in resources.items():
        column = block.columns.get(name)
        if column is None:
            return None
        given = column.can_give(amount)
        # Whoever can give something is there.
        mask = given if mask is block.here else mask & given
    return mask


def with_traits(block: Block, traits: TraitFilter) -> Mask | None:
    """Which rows have, by themselves, all required traits and no forbidden one? None: no row."""
    return having(block, block.traits, traits.required, traits.forbidden)


def in_aggregates(block: Block, aggregates: AggregateFilter) -> Mask | None:
    """Which rows are, by themselves, in the aggregates asked for? None: no row."""
    return having(block, block.aggregates, aggregates.member_of, aggregates.forbidden)


def barred_roots(block: Block, aggregates: AggregateFilter) -> Mask | None:
    """Which rows are in a forbidden aggregate, so that nothing is served to a tree of theirs?"""
    return block.aggregates.any_of(aggregates.forbidden)


def having(
    block: Block, marks: Marks, required: tuple[frozenset[str], ...], forbidden: frozenset[str]
) -> Mask | None:
    """Which rows have one name of each required set, and none that is forbidden? None: no row."""
    mask: Mask | None = block.here
    for names in required:
        mask = _both(mask, marks.any_of(names))
        if mask is None:
            return None
    bad = marks.any_of(forbidden) if forbidden else None
    return mask if bad is None or mask is None else mask & ~bad


def in_aggregates_by_root(block: Block, aggregates: AggregateFilter) -> Mask | None:
    """As `in_aggregates`, but a row may also belong to an aggregate by its root.

    A root in a forbidden aggregate bars its whole tree: that is for `barred_roots` to say.
    """
    own = having(block, block.aggregates, aggregates.member_of, frozenset())
    allowed = having(block, block.aggregates, (), aggregates.forbidden)
    return _both(None if own is None else own | own[block.trees.root], allowed)


def tree_rows(block: Block, in_tree: Place) -> Mask | None:
    """Which rows are in the tree of a place? None: no row."""
    if in_tree[0] is not block:
        return None
    mask: Mask = np.equal(block.trees.root, block.trees.root[in_tree[1]])
    return mask


def _both(first: Mask | None, second: Mask | None) -> Mask | None:
    return None if first is None or second is None else first & second
