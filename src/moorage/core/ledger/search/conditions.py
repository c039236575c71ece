"""The conditions on one provider that serves a part of a query, one by one, for explanations.

Together they are those of the search (`groups.py`), which applies them all at once.
"""

from collections.abc import Callable
from typing import NamedTuple

from moorage.core.ledger.requests import AggregateFilter
from moorage.core.ledger.search.catalog.chunk import Chunk, Place
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.groups import (
    GroupPart,
    having,
    in_aggregates,
    in_aggregates_by_root,
    tree_rows,
    with_resources,
)


class Condition(NamedTuple):
    """A condition on one provider; `rows` returns the rows of a chunk that meet it. None: no row.

    `name`, `amount`: of a condition on a resource class.
    """

    words: str
    rows: Callable[[Chunk], Mask | None]
    name: str = ""
    amount: int = 0


def conditions(term: GroupPart, in_tree: Place | None) -> list[Condition]:
    """Return the conditions on a provider that serves a term in its own tree, in order.

    Conditions on its place come first: a question about a tree or an aggregate is about what is
    lacking there.

    `in_tree`: a place in the tree that the group demands, if it demands one that exists.
    """
    group, traits = term.group, term.group.traits
    found: list[Condition] = []
    if group.in_tree is not None:
        found.append(
            Condition(
                f"is in the tree of {group.in_tree}",
                lambda chunk: tree_rows(chunk, in_tree) if in_tree else None,
            )
        )
    found += _aggregate_conditions(term)
    found += [
        Condition(f"has room for {amount} {name}", _giving(name, amount), name, amount)
        for name, amount in term.resources.items()
    ]
    # The traits that an unsuffixed group requires together are a condition on trees.
    for names in traits.required if term.is_suffixed else ():
        found.append(Condition(f"has {' or '.join(sorted(names))}", _having((names,), frozenset())))
    if traits.forbidden:
        words = f"is without {' or '.join(sorted(traits.forbidden))}"
        found.append(Condition(words, _having((), traits.forbidden)))
    return found


def _aggregate_conditions(term: GroupPart) -> list[Condition]:
    aggregates = term.group.aggregates
    judge = in_aggregates if term.is_suffixed else in_aggregates_by_root
    found = []
    if aggregates.member_of:
        needed = AggregateFilter(aggregates.member_of)
        words = " and ".join(" or ".join(sorted(names)) for names in aggregates.member_of)
        found.append(Condition(f"is in aggregate {words}", lambda chunk: judge(chunk, needed)))
    if aggregates.forbidden:
        barred = AggregateFilter((), aggregates.forbidden)
        words = f"is not in aggregate {' or '.join(sorted(aggregates.forbidden))}"
        found.append(Condition(words, lambda chunk: judge(chunk, barred)))
    return found


def _giving(name: str, amount: int) -> Callable[[Chunk], Mask | None]:
    return lambda chunk: with_resources(chunk, {name: amount})


def _having(
    required: tuple[frozenset[str], ...], forbidden: frozenset[str]
) -> Callable[[Chunk], Mask | None]:
    return lambda chunk: having(chunk, chunk.traits, required, forbidden)


def class_conditions(name: str, amount: int) -> list[Condition]:
    """Return what a provider must meet before it can have room for an amount of a class."""

    def offered(chunk: Chunk) -> Mask | None:
        column = chunk.columns.get(name)
        return None if column is None else column.offers()

    def admitted(chunk: Chunk) -> Mask | None:
        column = chunk.columns.get(name)
        return None if column is None else column.admits(amount)

    return [
        Condition(f"offers {name}", offered),
        Condition(f"admits {amount} {name} in one piece", admitted),
    ]
