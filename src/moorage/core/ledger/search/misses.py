"""Which places come nearest to a query that fits nowhere, by name, and what each of them lacks.

The counterpart of `explain.py`, which says the same of all providers together in one sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.conditions import Condition, conditions
from moorage.core.ledger.search.explain import Explanation, alone, anchors_of, trees_asked
from moorage.core.ledger.search.groups import GroupPart, terms
from moorage.core.ledger.search.steps import Steps

Lack = NDArray[np.float64]
"""How far each row is from meeting all conditions: 0 meets all, infinite is no provider."""


class Miss(Struct, frozen=True):
    """A provider that nearly serves a part, or a tree that nearly serves all parts.

    `part` names the part as an explanation does: the suffix of a group, or a class; empty: all
    parts. `lacks` are short phrases such as `has 2 of the required 4 VCPU`.
    """

    part: str
    provider: ProviderId
    name: str
    root: ProviderId
    lacks: tuple[str, ...]


class Misses(Struct, frozen=True):
    """The nearest misses, and how many other places miss as few conditions."""

    nearest: tuple[Miss, ...]
    more: int


def missing(
    catalog: Catalog, query: CandidateQuery, explained: Explanation, most: int
) -> Steps[Misses]:
    """Return up to `most` nearest misses of a query that was explained, and that fits nowhere.

    If some parts are served by no provider, the misses are those of these parts. Otherwise they
    are trees. It pauses after every chunk; the catalog may change in between.
    """
    unserved = [
        term
        for term, part in zip(terms(query.groups), explained.parts, strict=True)
        if part.nearest is not None
    ]
    if not unserved:
        return (yield from _trees(catalog, query, most))
    found: list[Miss] = []
    more = 0
    for number, term in enumerate(unserved):
        share = -(-(most - len(found)) // (len(unserved) - number))
        misses, others = yield from _of_part(catalog, term, share)
        found += misses
        more += others
    return Misses(tuple(found), more)


def _of_part(catalog: Catalog, term: GroupPart, most: int) -> Steps[tuple[list[Miss], int]]:
    """Return the providers that lack the least of a part, and how many miss as few conditions."""
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else catalog.places.get(tree))
    fewest, count = len(asked) + 1, 0
    found: list[tuple[float, str, Miss]] = []
    for chunk in list(catalog.chunks):
        yield
        missed = _missed(chunk, asked)
        counts = np.where(_relevant(chunk, asked), missed.sum(axis=0), len(asked) + 1)
        least = int(counts.min(initial=len(asked) + 1))
        if not 0 < least <= min(fewest, len(asked)):
            continue
        if least < fewest:
            fewest, count, found = least, 0, []
        rows = np.flatnonzero(counts == least)
        count += len(rows)
        lack = _lack(chunk, asked, missed)[rows]
        near = nsmallest(
            most,
            zip(lack.tolist(), _names(chunk, rows), rows.tolist(), strict=True),
        )
        found += [
            (far, name, _miss(chunk, row, term, asked, missed[:, row])) for far, name, row in near
        ]
        found = nsmallest(most, found, key=lambda each: each[:2])
    return [one for _, _, one in found], count - len(found)


def _names(chunk: Chunk, rows: NDArray[np.intp]) -> Iterator[str]:
    return (chunk.record(row).provider.name for row in rows.tolist())


def _missed(chunk: Chunk, asked: Sequence[Condition]) -> NDArray[np.bool_]:
    """Return which conditions each row misses, by condition and row."""
    nobody = np.zeros(chunk.size, dtype=np.bool_)
    met = [nobody if (rows := each.rows(chunk)) is None else rows for each in asked]
    missed: NDArray[np.bool_] = ~np.array(met, dtype=np.bool_).reshape(len(asked), chunk.size)
    return missed


def _relevant(chunk: Chunk, asked: Iterable[Condition]) -> NDArray[np.bool_]:
    """Return the rows that offer any class of the part, or all if it asks for none."""
    classes = [each.name for each in asked if each.name]
    offers = np.zeros(chunk.size, dtype=np.bool_)
    for name in classes:
        if name in chunk.columns:
            offers |= chunk.columns[name].offers()
    here: NDArray[np.bool_] = chunk.here & offers if classes else chunk.here
    return here


def _lack(chunk: Chunk, asked: Sequence[Condition], missed: NDArray[np.bool_]) -> Lack:
    """Return how far each row is away: a part of 1 for each amount, 1 for other conditions."""
    far: Lack = np.zeros(chunk.size)
    for number, condition in enumerate(asked):
        share = np.ones(chunk.size)
        column = chunk.columns.get(condition.name)
        if column is not None and condition.amount:
            short = (condition.amount - column.free()) / condition.amount
            share = np.where(column.admits(condition.amount), np.clip(short, 0.0, 1.0), 1.0)
        far += np.where(missed[number], share, 0.0)
    return far


def _miss(
    chunk: Chunk,
    row: int,
    term: GroupPart,
    asked: Sequence[Condition],
    missed: NDArray[np.bool_],
) -> Miss:
    """Return what a row lacks, given which conditions it misses."""
    provider = chunk.record(row).provider
    lacks = [
        _lacks(chunk, row, condition)
        for condition, is_missed in zip(asked, missed, strict=True)
        if is_missed
    ]
    if provider.withheld is not None:
        lacks.append(f"nothing is offered: {provider.withheld.reason}")
    part = term.suffix or next(iter(term.resources), "")
    return Miss(part, provider.uuid, provider.name, provider.root, tuple(lacks))


def _lacks(chunk: Chunk, row: int, condition: Condition) -> str:
    """Return a phrase on what a row lacks of one condition that it misses."""
    name, amount = condition.name, condition.amount
    if not name:
        return f"does not meet: {condition.words}"
    column = chunk.columns.get(name)
    if column is None or not column.offers()[row]:
        return f"offers no {name}"
    if not column.admits(amount)[row]:
        return f"does not admit {amount} {name} by its unit sizes"
    return f"has {max(0, int(column.free()[row]))} of the required {amount} {name}"


def _trees(catalog: Catalog, query: CandidateQuery, most: int) -> Steps[Misses]:
    """Return the trees that serve the most: every part, but not together; or the most parts."""
    reached: list[tuple[Chunk, int]] = []
    lacks = "serves each part alone, but not all of them together"
    for words, each in trees_asked(query):
        now = yield from _roots(catalog, each)
        if not now:
            lacks = f"does not meet: {words}"
            break
        reached = now
    if reached:
        return _named(((place, (lacks,)) for place in reached), most)
    return (yield from _by_parts(catalog, query, most))


def _by_parts(catalog: Catalog, query: CandidateQuery, most: int) -> Steps[Misses]:
    """Return the trees that serve the most parts, and which parts they lack."""
    asked = terms(query.groups)
    served: dict[tuple[Chunk, int], set[int]] = {}
    for number, term in enumerate(asked):
        for place in (yield from _roots(catalog, alone(query, term))):
            served.setdefault(place, set()).add(number)
    best = max(map(len, served.values()), default=0)
    names = [term.suffix or next(iter(term.resources), "") for term in asked]
    lacking = (
        (place, tuple(f"lacks {name}" for at, name in enumerate(names) if at not in parts))
        for place, parts in served.items()
        if len(parts) == best
    )
    return _named(lacking, most)


def _roots(catalog: Catalog, query: CandidateQuery) -> Steps[list[tuple[Chunk, int]]]:
    """Return the roots of the trees that may serve each part of the query."""
    anchors = yield from anchors_of(catalog, query)
    return [(chunk, row) for chunk, rows in anchors for row in rows.tolist()]


def _named(found: Iterable[tuple[tuple[Chunk, int], tuple[str, ...]]], most: int) -> Misses:
    """Return the first of these trees by name, and how many more there are."""
    misses = list(_misses_of(found))
    first = nsmallest(most, misses, key=lambda one: one.name)
    return Misses(tuple(first), len(misses) - len(first))


def _misses_of(
    found: Iterable[tuple[tuple[Chunk, int], tuple[str, ...]]],
) -> Iterator[Miss]:
    for (chunk, row), lacks in found:
        if chunk.here[row]:  # not deleted meanwhile
            provider = chunk.record(row).provider
            yield Miss("", provider.uuid, provider.name, provider.root, lacks)
