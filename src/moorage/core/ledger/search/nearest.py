"""What the providers lack that come nearest to serving a part of a query.

Fleets have providers of many kinds: a condition on hosts says nothing about network cards. So only
the relevant providers are judged: those that offer all classes of the part. Among those that miss
the fewest conditions, the sentence names the condition at which the last of them fall when the
conditions are applied one after another, as the steps of an explanation show it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.core.counting import counted
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.conditions import Condition
from moorage.core.ledger.search.steps import Steps

OTHERS_NAMED_MAX = 3
"""Other conditions that a sentence names, each of which a provider misses alone."""

Counts = NDArray[np.intp]


class _Near(NamedTuple):
    """The rows of one chunk that miss the fewest conditions, and the missed conditions."""

    chunk: Chunk
    rows: NDArray[np.intp]
    missing: NDArray[np.bool_]
    """By condition and row."""

    @property
    def firsts(self) -> Counts:
        """The first condition that each of the rows misses."""
        firsts: Counts = self.missing[:, self.rows].argmax(axis=0)
        return firsts


def lacking(catalog: Catalog, asked: list[Condition]) -> Steps[str]:
    """Return a sentence on what the nearest providers lack; none meets all conditions."""
    classes = [condition.name for condition in asked if condition.name]
    most, rows = yield from _most_classes(catalog, classes)
    if not rows:
        return "there are no providers"
    if most < len(classes):
        return (yield from _not_offered(catalog, classes, rows if most else 0))
    near, fewest = yield from _nearest(catalog, asked, classes)
    if not near:  # the catalog has changed meanwhile
        return "the providers that offer it have just changed; ask again"
    number = max(int(each.firsts.max()) for each in near)
    fallen = [each._replace(rows=each.rows[each.firsts == number]) for each in near]
    text = _text(asked[number], [each for each in fallen if len(each.rows)])
    if fewest > 1:
        return f"{text}; {fewest} conditions are missed, and no provider misses fewer"
    return text + _others(asked, near, number)


def _offered(chunk: Chunk, classes: list[str]) -> Counts:
    """Return how many of the classes each row offers; rows without a provider: -1."""
    count = np.zeros(chunk.size, dtype=np.intp)
    for name in classes:
        if name in chunk.columns:
            count += chunk.columns[name].offers()
    return np.where(chunk.here, count, -1)


def _most_classes(catalog: Catalog, classes: list[str]) -> Steps[tuple[int, int]]:
    """Return the most classes that a provider offers, and how many providers offer as many."""
    most, rows = 0, 0
    for chunk in list(catalog.chunks):
        yield
        count = _offered(chunk, classes)
        here = int(count.max(initial=-1))
        if here > most:
            most, rows = here, 0
        rows += int(np.count_nonzero(count == most))
    return most, rows


def _not_offered(catalog: Catalog, classes: list[str], rows: int) -> Steps[str]:
    """Return a sentence on the classes that are not offered, or by no provider together.

    `rows`: how many providers offer the most of them; 0: no provider offers any.
    """
    somewhere: set[str] = set()
    for chunk in list(catalog.chunks):
        yield
        for name in classes:
            if name in chunk.columns and bool((chunk.columns[name].offers() & chunk.here).any()):
                somewhere.add(name)
    nowhere = [name for name in classes if name not in somewhere]
    if not nowhere:
        return f"no provider offers {' and '.join(classes)} together"
    which = f"{_which(rows)} not offer it" if rows else "no provider offers it"
    return f"{' and '.join(nowhere)}: {which}"


def _nearest(
    catalog: Catalog, asked: list[Condition], classes: list[str]
) -> Steps[tuple[list[_Near], int]]:
    """Return the relevant rows that miss the fewest conditions, and how many they miss."""
    near: list[_Near] = []
    fewest = len(asked) + 1
    for chunk in list(catalog.chunks):
        yield
        nobody = np.zeros(chunk.size, dtype=np.bool_)
        met = [nobody if (rows := each.rows(chunk)) is None else rows for each in asked]
        missing = ~np.array(met, dtype=np.bool_).reshape(len(asked), chunk.size)
        relevant = _offered(chunk, classes) == len(classes)
        count = np.where(relevant, missing.sum(axis=0), len(asked) + 1)
        least = int(count.min(initial=len(asked) + 1))
        if not 0 < least <= min(fewest, len(asked)):
            continue
        if least < fewest:
            near, fewest = [], least
        near.append(_Near(chunk, np.flatnonzero(count == least), missing))
    return near, fewest


def _others(asked: list[Condition], near: list[_Near], number: int) -> str:
    """Return the other conditions that some providers miss alone, those of most providers first."""
    counts = [
        (sum(int((each.firsts == other).sum()) for each in near), other)
        for other in range(len(asked))
        if other != number
    ]
    named = sorted((each for each in counts if each[0]), key=lambda each: (-each[0], each[1]))
    return "".join(
        f"; {counted(count, 'other')} {'misses' if count == 1 else 'miss'} only the condition: "
        f"{asked[other].words}"
        for count, other in named[:OTHERS_NAMED_MAX]
    )


def _text(condition: Condition, near: list[_Near]) -> str:
    """Return a sentence on how near the nearest providers are to a condition that they miss."""
    count = sum(len(each.rows) for each in near)
    if not condition.name:
        return f"{_which(count)} not meet the condition: {condition.words}"
    name, amount = condition.name, condition.amount
    columns = [(each.chunk.columns[name], each.rows) for each in near if name in each.chunk.columns]
    admitting = [(column, rows[column.admits(amount)[rows]]) for column, rows in columns]
    held = sum(len(rows) for _, rows in admitting)
    if not held:
        return f"{name}: {_which(count)} not admit {amount} by the unit sizes"
    free = max(int(column.free()[rows].max()) for column, rows in admitting if len(rows))
    nearest = "the nearest provider" if held == 1 else f"the freest of the {held} nearest providers"
    return f"{name}: {nearest} has {max(free, 0)} of the required {amount}"


def _which(count: int) -> str:
    return "the nearest provider does" if count == 1 else f"the {count} nearest providers do"
