"""Which chunks may serve a query, by the summaries alone, without opening any chunk."""

from collections.abc import Collection, Sequence

import numpy as np

from moorage.core.ledger.requests import CandidateQuery
from moorage.core.ledger.search.catalog.chunk import Place
from moorage.core.ledger.search.catalog.summaries import Counts, Summaries
from moorage.core.ledger.search.groups import GroupPart


def prospects(
    summaries: Summaries,
    query: CandidateQuery,
    terms: Sequence[GroupPart],
    numbers: Collection[int],
    in_tree: Sequence[Place | None],
    abroad: Collection[int],
    needs: Sequence[frozenset[str]],
) -> Counts:
    """Return an upper bound of the anchors of each chunk.

    An anchor needs a row of its own tree for every term that no sharing provider can serve, and one
    for every set of traits that the unsuffixed group requires. So the smallest count of such rows
    bounds the anchors of a chunk.

    Args:
        summaries: Of the chunks.
        query: The request.
        terms: The terms of the query.
        numbers: The number of one term of each kind.
        in_tree: For each term a place in the tree that it demands, if it demands one.
        abroad: The numbers of the terms that a sharing provider can serve for other trees.
        needs: The trait sets that the providers of the unsuffixed group must meet together.
    """
    most: Counts = summaries.rows.rows[: summaries.size].copy()
    for number in numbers:
        if number not in abroad:
            _narrow(most, summaries, terms[number], in_tree[number])
    required = [*query.root_traits.required, *(() if abroad else needs)]
    for names in required:
        np.minimum(most, summaries.rows_named(summaries.traits, names), out=most)
    return most


def _narrow(most: Counts, summaries: Summaries, term: GroupPart, place: Place | None) -> None:
    """Lower the counts to those of the rows that may serve a term at home."""
    if place is not None:
        most[: place[0].number] = 0
        most[place[0].number + 1 :] = 0
    for name, amount in term.resources.items():
        rows = summaries.rows_with(name, amount)
        if rows is None:
            most[:] = 0
        else:
            np.minimum(most, rows, out=most)
    for names in term.group.traits.required if term.is_suffixed else ():
        np.minimum(most, summaries.rows_named(summaries.traits, names), out=most)
    for names in term.group.aggregates.member_of:
        np.minimum(most, summaries.rows_named(summaries.aggregates, names), out=most)
