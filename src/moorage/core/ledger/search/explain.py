"""Why nothing is found: how many providers each condition leaves, and what the nearest ones miss.

The conditions are those of the search, applied one after another instead of all at once.
"""

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.core.counting import counted
from moorage.core.ledger.requests import (
    AggregateFilter,
    CandidateAnswer,
    CandidateOrder,
    CandidateQuery,
    Group,
    TraitFilter,
)
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.catalog.chunk import Chunk
from moorage.core.ledger.search.claim_choice import preferring
from moorage.core.ledger.search.competing import competing, together
from moorage.core.ledger.search.conditions import Condition, class_conditions, conditions
from moorage.core.ledger.search.groups import GroupPart, terms
from moorage.core.ledger.search.nearest import lacking
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATE_STEPS_MAX

UNFINISHED = (
    "The search ran out of steps, or the catalog kept changing, before anything was found: it may "
    "fit. Ask again, or make the query more specific."
)


ON_CANDIDATES = ("group_policy", "same_subtree", "root_required", "required")
"""Conditions on whole candidates: no provider misses them alone, so no part names them."""


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


def explaining(catalog: Catalog, query: CandidateQuery) -> Steps[Explanation]:
    """Return how many providers each condition leaves; every class and trait in it exists.

    It pauses during every search and after every chunk. The catalog may change in between: each
    figure is as of a different moment.
    """
    answer = yield from _searched(catalog, query)
    yield
    found = bool(answer.candidates)
    parts = []
    for term in terms(query.groups):
        parts.append((yield from _part_explained(catalog, term)))
    trees = yield from _tree_steps(catalog, query)
    without: list[str] = []
    nearest: str | None = None
    if not found and answer.exhausted:
        without = yield from _without(catalog, query)
        nearest = yield from _nearest(catalog, query, parts, trees, without)
    elif not found:
        nearest = UNFINISHED
    return Explanation(found, answer.exhausted, parts, trees, without, nearest)


def _part_explained(catalog: Catalog, term: GroupPart) -> Steps[PartExplained]:
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else catalog.places.get(tree))
    resource_class = None if term.is_suffixed else next(iter(term.resources))
    shown = yield from _steps(catalog, asked)
    nearest = None if shown[-1].left else (yield from lacking(catalog, asked))
    return PartExplained(term.suffix, resource_class, shown, nearest)


def _steps(catalog: Catalog, asked: list[Condition]) -> Steps[list[Step]]:
    """Apply the conditions one after another; those on a class in three steps."""
    finer = [Condition("exists", lambda chunk: chunk.here)]
    for condition in asked:
        if condition.name:
            finer += class_conditions(condition.name, condition.amount)
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


def _searched(catalog: Catalog, query: CandidateQuery) -> Steps[CandidateAnswer]:
    """Search for one candidate as a claim does, with as many steps as a query may take."""
    return preferring(catalog, query, CandidateOrder("pack"), 1, CANDIDATE_STEPS_MAX)


def _without(catalog: Catalog, query: CandidateQuery) -> Steps[list[str]]:
    """Return the kinds of conditions of which dropping all of a single one would suffice."""
    lighter = {
        "group_policy": replace(query, group_policy="none"),
        "same_subtree": _unrelated(query),
        "root_required": replace(query, root_traits=TraitFilter()),
        "required": _with_groups(
            query, lambda g: replace(g, traits=TraitFilter((), g.traits.forbidden))
        ),
        "forbidden": _with_groups(
            query, lambda g: replace(g, traits=TraitFilter(g.traits.required))
        ),
        "member_of": _with_groups(query, lambda g: replace(g, aggregates=AggregateFilter())),
        "in_tree": _with_groups(query, lambda g: replace(g, in_tree=None)),
    }
    enough = []
    for name, each in lighter.items():
        if each != query and (yield from _searched(catalog, each)).candidates:
            enough.append(name)
        yield
    return enough


def _with_groups(query: CandidateQuery, change: Callable[[Group], Group]) -> CandidateQuery:
    return replace(query, groups=tuple(map(change, query.groups)))


def _unrelated(query: CandidateQuery) -> CandidateQuery:
    return replace(query, same_subtree=())


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
    whole = [name for name in without if name in ON_CANDIDATES]
    if whole:
        return f"It would fit if you dropped {' or '.join(whole)}."
    if not trees[0].left:
        return (yield from _best_tree(catalog, query))
    for step in trees[1:]:
        if not step.left:
            return f"No tree that serves every part meets the condition: {step.condition}."
    if without:
        return f"It would fit if you dropped {' or '.join(without)}."
    text = together((yield from competing(catalog, query)), len(parts))
    return (
        f"{counted(trees[-1].left, 'tree')} can serve each part alone, but none can serve {text}."
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
