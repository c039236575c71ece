"""Why nothing is found: how many providers each condition leaves, and what the nearest ones miss.

The conditions are those of the search, applied one after another instead of all at once.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.core.counting import counted
from moorage.core.ledger.requests import (
    AggregateFilter,
    CandidateOrder,
    CandidateQuery,
    Group,
    TraitFilter,
)
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk, Place
from moorage.core.ledger.search.catalog.columns import Mask
from moorage.core.ledger.search.claim_choice import preferring
from moorage.core.ledger.search.groups import (
    GroupPart,
    having,
    in_aggregates,
    in_aggregates_by_root,
    terms,
    tree_rows,
    with_resources,
)
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CLAIM_STEPS_MAX


class Step(Struct, frozen=True):
    """A condition, and how many providers (or trees) meet it and all conditions before it."""

    condition: str
    left: int


class PartExplained(Struct, frozen=True):
    """A part that one provider must serve: a suffixed group, or one class of the unsuffixed one.

    `resource_class` is None for a suffixed group. `nearest` describes what the providers that meet
    the most conditions lack; None: some meet all.
    """

    suffix: str
    resource_class: str | None
    steps: list[Step]
    nearest: str | None


class Explanation(Struct, frozen=True):
    """The explanation of a query's result.

    `found`: there is a candidate. `exhausted` False: the search for one was cut. `trees`: how many
    trees may serve all parts together, condition after condition. `without`: conditions of which
    dropping any single one would give a candidate. `nearest`: a sentence on what to change; None:
    nothing.
    """

    found: bool
    exhausted: bool
    parts: list[PartExplained]
    trees: list[Step]
    without: list[str]
    nearest: str | None


class Condition(NamedTuple):
    """A condition on one provider; `rows` returns the rows of a chunk that meet it. None: no row.

    `name`, `amount`: of a condition on a resource class.
    """

    words: str
    rows: Callable[[Chunk], Mask | None]
    name: str = ""
    amount: int = 0


def explaining(catalog: Catalog, query: CandidateQuery) -> Steps[Explanation]:
    """Return how many providers each condition leaves; every class and trait in it exists.

    It pauses during every search and after every chunk. The catalog may change in between: each
    figure is as of a different moment.
    """
    answer = yield from preferring(catalog, query, CandidateOrder("pack"), 1, CLAIM_STEPS_MAX)
    yield
    found = bool(answer.candidates)
    parts = []
    for term in terms(query.groups):
        parts.append((yield from _part_explained(catalog, term)))
    trees = yield from _tree_steps(catalog, query)
    without: list[str] = []
    nearest: str | None = None
    if not found:
        possible = all(part.nearest is None for part in parts)
        without = (yield from _without(catalog, query)) if possible else []
        nearest = yield from _nearest(catalog, query, parts, trees, without)
    return Explanation(found, answer.exhausted, parts, trees, without, nearest)


def conditions(term: GroupPart, in_tree: Place | None) -> list[Condition]:
    """Return the conditions on a provider that serves a term in its own tree, in order.

    `in_tree`: a place in the tree that the group demands, if it demands one that exists.
    """
    group, traits = term.group, term.group.traits
    found = [
        Condition(f"has room for {amount} {name}", _giving(name, amount), name, amount)
        for name, amount in term.resources.items()
    ]
    # The traits that an unsuffixed group requires together are a condition on trees.
    for names in traits.required if term.is_suffixed else ():
        found.append(Condition(f"has {' or '.join(sorted(names))}", _having((names,), frozenset())))
    if traits.forbidden:
        words = f"is without {' or '.join(sorted(traits.forbidden))}"
        found.append(Condition(words, _having((), traits.forbidden)))
    if group.in_tree is not None:
        found.append(
            Condition(
                f"is in the tree of {group.in_tree}",
                lambda chunk: tree_rows(chunk, in_tree) if in_tree else None,
            )
        )
    return found + _aggregate_conditions(term)


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


def _part_explained(catalog: Catalog, term: GroupPart) -> Steps[PartExplained]:
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else catalog.places.get(tree))
    resource_class = None if term.is_suffixed else next(iter(term.resources))
    shown = yield from _steps(catalog, asked)
    nearest = None if shown[-1].left else (yield from _lacking(catalog, asked))
    return PartExplained(term.suffix, resource_class, shown, nearest)


def _steps(catalog: Catalog, asked: list[Condition]) -> Steps[list[Step]]:
    """Apply the conditions one after another; those on a class in three steps."""
    finer = [Condition("exists", lambda chunk: chunk.here)]
    for condition in asked:
        if condition.name:
            finer += _class_conditions(condition.name, condition.amount)
        finer.append(condition)
    left = [0] * len(finer)
    for chunk in list(catalog.chunks):
        mask = chunk.here
        for number, condition in enumerate(finer):
            rows = condition.rows(chunk)
            if rows is None:
                break
            mask = mask & rows
            left[number] += int(np.count_nonzero(mask))
        yield
    return [Step(each.words, count) for each, count in zip(finer, left, strict=True)]


def _class_conditions(name: str, amount: int) -> list[Condition]:
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


class _Near(NamedTuple):
    """The rows of one chunk that miss the fewest conditions, and the missed conditions."""

    chunk: Chunk
    rows: NDArray[np.intp]
    missing: NDArray[np.bool_]
    """By condition and row."""


def _lacking(catalog: Catalog, asked: list[Condition]) -> Steps[str]:
    """Return a sentence on what the providers that meet the most conditions lack."""
    near: list[_Near] = []
    fewest = len(asked) + 1
    for chunk in list(catalog.chunks):
        yield
        nobody = np.zeros(chunk.size, dtype=np.bool_)
        met = [nobody if (rows := each.rows(chunk)) is None else rows for each in asked]
        missing = ~np.array(met, dtype=np.bool_).reshape(len(asked), chunk.size)
        count = np.where(chunk.here, missing.sum(axis=0), len(asked) + 1)
        least = int(count.min())
        if least > len(asked) or least > fewest:
            continue
        if least < fewest:
            near, fewest = [], least
        near.append(_Near(chunk, np.flatnonzero(count == least), missing))
    if not near:
        return "there are no providers"
    missed = [
        sum(int(n.missing[number, n.rows].sum()) for n in near) for number in range(len(asked))
    ]
    # If several conditions are missed, report the one that most of the nearest providers miss.
    number = int(np.argmax(missed))
    text = _text(asked[number], number, near, missed[number])
    if fewest > 1:
        text += f"; {fewest} conditions are missed, and no provider misses fewer"
    return text


def _text(condition: Condition, number: int, near: list[_Near], count: int) -> str:
    """Return a sentence on how near the nearest providers are to a condition that they miss."""
    if not condition.name:
        return f"{_which(count)} not meet the condition: {condition.words}"
    name, amount = condition.name, condition.amount
    offering = [(chunk, rows) for chunk, rows in _missing_with(name, number, near) if len(rows)]
    if not offering:
        return f"{name}: {_which(count)} not offer it"
    admitting = [(b, rows[b.columns[name].admits(amount)[rows]]) for b, rows in offering]
    held = sum(len(rows) for _, rows in admitting)
    if not held:
        offer = sum(len(rows) for _, rows in offering)
        return f"{name}: {_which(offer)} not admit {amount} by the unit sizes"
    free = max(int(b.columns[name].free()[rows].max()) for b, rows in admitting if len(rows))
    nearest = "the nearest provider" if held == 1 else f"the freest of the {held} nearest providers"
    return f"{name}: {nearest} has {max(free, 0)} of the required {amount}"


def _which(count: int) -> str:
    return "the nearest provider does" if count == 1 else f"the {count} nearest providers do"


def _missing_with(
    name: str, number: int, near: list[_Near]
) -> Iterator[tuple[Chunk, NDArray[np.intp]]]:
    """Yield the rows that miss a condition on a class although they offer the class."""
    for chunk, rows, missing in near:
        if name in chunk.columns:
            yield chunk, rows[missing[number, rows] & chunk.columns[name].offers()[rows]]


def _tree_steps(catalog: Catalog, query: CandidateQuery) -> Steps[list[Step]]:
    """Return how many trees may serve all parts, then also meet the conditions on whole trees."""
    plain = replace(query, groups=tuple(map(_undemanding, query.groups)), root_traits=TraitFilter())
    asked = [("every part is served by some provider", plain)]
    if plain.groups != query.groups:
        plain = replace(plain, groups=query.groups)
        asked.append(("has the traits that the unsuffixed group requires", plain))
    if query.root_traits != TraitFilter():
        asked.append(("the root has the required traits", query))
    found = []
    for words, each in asked:
        anchors = yield from _anchors(catalog, each)
        found.append(Step(words, sum(len(rows) for _, rows in anchors)))
    return found


def _undemanding(group: Group) -> Group:
    """Return the group; the unsuffixed one without its required traits."""
    if group.suffix:
        return group
    return replace(group, traits=TraitFilter((), group.traits.forbidden))


def _anchors(
    catalog: Catalog, query: CandidateQuery
) -> Steps[list[tuple[Chunk, NDArray[np.intp]]]]:
    search = Search(catalog, query)
    if not (yield from search.beginning()):
        return []
    applied, found = catalog.applied, []
    for chunk in list(catalog.chunks):
        if catalog.applied != applied:
            applied = catalog.applied
            search.again()
        found.append((chunk, search.served_rows(chunk)))
        yield
    return found


def _without(catalog: Catalog, query: CandidateQuery) -> Steps[list[str]]:
    """Return the conditions on whole candidates of which dropping a single one would suffice."""
    lighter: dict[str, CandidateQuery] = {}
    if query.group_policy != "none":
        lighter["group_policy"] = replace(query, group_policy="none")
    if query.same_subtree:
        lighter["same_subtree"] = replace(query, same_subtree=())
    if query.root_traits != TraitFilter():
        lighter["root_required"] = replace(query, root_traits=TraitFilter())
    undemanding = tuple(map(_undemanding, query.groups))
    if undemanding != query.groups:
        lighter["required"] = replace(query, groups=undemanding)
    enough = []
    for name, each in lighter.items():
        if (
            yield from preferring(catalog, each, CandidateOrder("pack"), 1, CLAIM_STEPS_MAX)
        ).candidates:
            enough.append(name)
        yield
    return enough


def _nearest(
    catalog: Catalog,
    query: CandidateQuery,
    parts: list[PartExplained],
    trees: list[Step],
    without: list[str],
) -> Steps[str]:
    lacking = [f"{_part_named(part)}{part.nearest}" for part in parts if part.nearest]
    if lacking:
        return ". ".join(lacking) + "."
    if without:
        return f"It would fit if you dropped {' or '.join(without)}."
    if not trees[0].left:
        return (yield from _best_tree(catalog, query))
    for step in trees[1:]:
        if not step.left:
            return f"No tree that serves every part meets the condition: {step.condition}."
    return (
        f"{counted(trees[-1].left, 'tree')} can serve each part alone, but none can serve all of"
        " them together."
    )


def _part_named(part: PartExplained) -> str:
    return f"Group {part.suffix}: " if part.suffix else ""


def _best_tree(catalog: Catalog, query: CandidateQuery) -> Steps[str]:
    """Return a sentence on how many parts the best tree serves, and which it lacks."""
    asked = terms(query.groups)
    served: dict[tuple[Chunk, int], set[int]] = {}
    for number, term in enumerate(asked):
        single = replace(
            query,
            groups=(replace(_undemanding(term.group), resources=term.resources),),
            root_traits=TraitFilter(),
        )
        for chunk, rows in (yield from _anchors(catalog, single)):
            yield
            for row in rows.tolist():
                served.setdefault((chunk, row), set()).add(number)
    if not served:
        return "Every part is served by some provider, but in no tree that may be used."
    (chunk, row), most = max(served.items(), key=lambda item: len(item[1]))
    missing = [
        term.suffix or next(iter(term.resources))
        for number, term in enumerate(asked)
        if number not in most
    ]
    if not chunk.here[row]:  # deleted meanwhile
        return "No single tree serves every part."
    return (
        f"No single tree serves every part; the best, {chunk.record(row).provider.uuid}, serves "
        f"{len(most)} of {len(asked)} and lacks {', '.join(missing)}."
    )
