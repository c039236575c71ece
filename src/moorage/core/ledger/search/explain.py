"""Why nothing is found: how many providers each condition leaves, and what the nearest ones miss.

The conditions are those of the search, applied one after another instead of all at once. To find
the parts that exclude each other, parts are left out one after another, and stay out as long as the
rest does not fit either. The remaining parts fit nowhere together, but do without any one of them.

Fleets have providers of many kinds: a condition on hosts says nothing about network cards. So only
the relevant providers are judged: those that offer all classes of the part. Among those that miss
the fewest conditions, the sentence names the condition at which the last of them fall when the
conditions are applied one after another, as the steps of an explanation show it.
"""

from collections.abc import Callable
from typing import NamedTuple

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
from moorage.core.ledger.search.conditions import Condition, class_conditions, conditions
from moorage.core.ledger.search.groups import GroupPart, terms
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
    found = []
    for words, each in trees_asked(query):
        anchors = yield from anchors_of(catalog, each)
        found.append(Step(words, sum(len(rows) for _, rows in anchors)))
    return found


def trees_asked(query: CandidateQuery) -> list[tuple[str, CandidateQuery]]:
    """Return the conditions on whole trees, each as a query that has those before it, too."""
    plain = replace(query, groups=tuple(map(_undemanding, query.groups)), root_traits=TraitFilter())
    asked = [("every part is served by some provider", plain)]
    if plain.groups != query.groups:
        plain = replace(plain, groups=query.groups)
        asked.append(("has the traits that the unsuffixed group requires", plain))
    if query.root_traits != TraitFilter():
        asked.append(("the root has the required traits", query))
    return asked


def alone(query: CandidateQuery, term: GroupPart) -> CandidateQuery:
    """Return the query for a single part, without the conditions on whole trees."""
    group = replace(_undemanding(term.group), resources=term.resources)
    return replace(query, groups=(group,), root_traits=TraitFilter())


def _undemanding(group: Group) -> Group:
    """Return the group; the unsuffixed one without its required traits."""
    if group.suffix:
        return group
    return replace(group, traits=TraitFilter((), group.traits.forbidden))


def anchors_of(
    catalog: Catalog, query: CandidateQuery
) -> Steps[list[tuple[Chunk, NDArray[np.intp]]]]:
    """Return the roots of the trees that may serve each part of the query, by chunk."""
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
    missed = [f"{_part_named(part)}{part.nearest}" for part in parts if part.nearest]
    if missed:
        return ". ".join(missed) + "."
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
        for chunk, rows in (yield from anchors_of(catalog, alone(query, term))):
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


PARTS_MAX = 16
"""Of more parts none is left out, since each takes a search."""

STEPS_MAX = CANDIDATE_STEPS_MAX // PARTS_MAX
"""Of one of these searches: all of them take as many steps as a query may."""

NAMED_MAX = 4
"""Parts that a sentence names."""

Parts = list[GroupPart]


def competing(catalog: Catalog, query: CandidateQuery) -> Steps[Parts]:
    """Return parts that fit nowhere together, as few as possible; the query fits nowhere.

    Where a search is cut, its part stays: perhaps the rest fits.
    """
    parts = terms(query.groups)
    if not 2 < len(parts) <= PARTS_MAX or not (yield from _fits_nowhere(catalog, query, parts)):
        return parts
    for part in reversed(parts):
        fewer = [each for each in parts if each is not part]
        if (yield from _fits_nowhere(catalog, query, fewer)):
            parts = fewer
    return parts


def together(parts: Parts, of: int) -> str:
    """Return the end of "none can serve": some or all parts of a query that has `of` parts."""
    shared = frozenset.intersection(*(frozenset(part.resources) for part in parts))
    reason = f"; each of these needs {' and '.join(sorted(shared))}" if shared else ""
    if len(parts) < 2 or len(parts) == of > 2:
        return f"all of them together{reason}"
    names = [f"group {part.suffix}" if part.suffix else _class(part) for part in parts]
    if len(names) > NAMED_MAX:
        names[NAMED_MAX - 1 :] = [f"{len(names) - NAMED_MAX + 1} more"]
    return f"{', '.join(names[:-1])} and {names[-1]} together{reason}"


def only(query: CandidateQuery, parts: Parts) -> CandidateQuery:
    """Return the query for some of its parts.

    The traits that the unsuffixed group requires are left out, because any of its providers may
    have them.
    """
    plain = {_class(part): part.resources[_class(part)] for part in parts if not part.suffix}
    kept = {part.suffix for part in parts}
    groups = tuple(
        each
        if each.suffix
        else replace(each, resources=plain, traits=TraitFilter((), each.traits.forbidden))
        for each in query.groups
        if each.suffix in kept
    )
    subtrees = [suffixes & kept for suffixes in query.same_subtree]
    return replace(
        query, groups=groups, same_subtree=tuple(each for each in subtrees if len(each) > 1)
    )


def _fits_nowhere(catalog: Catalog, query: CandidateQuery, parts: Parts) -> Steps[bool]:
    fewer, first = only(query, parts), CandidateOrder("pack")
    answer = yield from preferring(catalog, fewer, first, 1, STEPS_MAX)
    yield
    return answer.exhausted and not answer.candidates


def _class(part: GroupPart) -> str:
    return next(iter(part.resources))


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
    near, fewest = yield from _nearest_rows(catalog, asked, classes)
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


def _nearest_rows(
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
