"""Why nothing is found: how many providers each condition leaves, and which is nearest to met.

The conditions are those of the search itself, applied one after another instead of all at once.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.core.ledger.requests import AggregateFilter, CandidateQuery, Group, Order, TraitFilter
from moorage.core.ledger.search.anchors import Search
from moorage.core.ledger.search.block import Block, Place
from moorage.core.ledger.search.choosing import preferring
from moorage.core.ledger.search.columns import Mask
from moorage.core.ledger.search.fleet import Fleet
from moorage.core.ledger.search.groups import (
    Term,
    having,
    in_aggregates,
    in_aggregates_by_root,
    terms,
    tree_rows,
    with_resources,
)
from moorage.core.ledger.search.steps import Steps, to_end
from moorage.core.limits import CLAIM_STEPS_MAX


class Step(Struct, frozen=True):
    """A condition, and how many providers (or trees) meet it and all conditions before it."""

    condition: str
    left: int


class PartExplained(Struct, frozen=True):
    """What one provider must serve: a suffixed group, or one class of the unsuffixed one.

    `resource_class` is None for a suffixed group. `nearest` says what the providers that meet most
    of it are lacking; None: some meet all of it.
    """

    suffix: str
    resource_class: str | None
    steps: list[Step]
    nearest: str | None


class Explanation(Struct, frozen=True):
    """What became of a question.

    `found`: there is a candidate. `exhausted` False: the search for one was given up. `trees`: how
    many trees may serve all parts together, condition after condition. `without`: conditions such
    that there would be a candidate without any single one of them. `nearest`: the one sentence
    that says what to change; None: nothing.
    """

    found: bool
    exhausted: bool
    parts: list[PartExplained]
    trees: list[Step]
    without: list[str]
    nearest: str | None


class Condition(NamedTuple):
    """A part of what is asked of one provider; `rows` says who in a block meets it. None: nobody.

    `name`, `amount`: of a condition on a resource class.
    """

    words: str
    rows: Callable[[Block], Mask | None]
    name: str = ""
    amount: int = 0


def explain(fleet: Fleet, query: CandidateQuery) -> Explanation:
    """Say what each condition of a question leaves; every class and trait in it exists."""
    return to_end(explaining(fleet, query))


def explaining(fleet: Fleet, query: CandidateQuery) -> Steps[Explanation]:
    """As `explain`, with rests during every search and after every block that is looked at.

    What is counted may change in between: each figure is as of its own moment.
    """
    answer = yield from preferring(fleet, query, Order("pack"), 1, CLAIM_STEPS_MAX)
    yield
    found = bool(answer.candidates)
    parts = []
    for term in terms(query.groups):
        parts.append((yield from _part_explained(fleet, term)))
    trees = yield from _tree_steps(fleet, query)
    without: list[str] = []
    nearest: str | None = None
    if not found:
        possible = all(part.nearest is None for part in parts)
        without = (yield from _without(fleet, query)) if possible else []
        nearest = yield from _nearest(fleet, query, parts, trees, without)
    return Explanation(found, answer.exhausted, parts, trees, without, nearest)


def conditions(term: Term, in_tree: Place | None) -> list[Condition]:
    """Return what is asked of whoever serves a term in its own tree, one thing after another.

    `in_tree`: a place in the tree that the group demands, if it demands one that exists.
    """
    group, traits = term.group, term.group.traits
    found = [
        Condition(f"has room for {amount} {name}", _giving(name, amount), name, amount)
        for name, amount in term.resources.items()
    ]
    # What an unsuffixed group requires together is a condition on trees.
    for names in traits.required if term.is_suffixed else ():
        found.append(Condition(f"has {' or '.join(sorted(names))}", _having((names,), frozenset())))
    if traits.forbidden:
        words = f"has not {' nor '.join(sorted(traits.forbidden))}"
        found.append(Condition(words, _having((), traits.forbidden)))
    if group.in_tree is not None:
        found.append(
            Condition(
                f"is in the tree of {group.in_tree}",
                lambda block: tree_rows(block, in_tree) if in_tree else None,
            )
        )
    return found + _aggregate_conditions(term)


def _aggregate_conditions(term: Term) -> list[Condition]:
    aggregates = term.group.aggregates
    judge = in_aggregates if term.is_suffixed else in_aggregates_by_root
    found = []
    if aggregates.member_of:
        needed = AggregateFilter(aggregates.member_of)
        words = " and ".join(" or ".join(sorted(names)) for names in aggregates.member_of)
        found.append(Condition(f"is in aggregate {words}", lambda block: judge(block, needed)))
    if aggregates.forbidden:
        barred = AggregateFilter((), aggregates.forbidden)
        words = f"is not in aggregate {' nor '.join(sorted(aggregates.forbidden))}"
        found.append(Condition(words, lambda block: judge(block, barred)))
    return found


def _giving(name: str, amount: int) -> Callable[[Block], Mask | None]:
    return lambda block: with_resources(block, {name: amount})


def _having(
    required: tuple[frozenset[str], ...], forbidden: frozenset[str]
) -> Callable[[Block], Mask | None]:
    return lambda block: having(block, block.traits, required, forbidden)


def _part_explained(fleet: Fleet, term: Term) -> Steps[PartExplained]:
    tree = term.group.in_tree
    asked = conditions(term, None if tree is None else fleet.places.get(tree))
    resource_class = None if term.is_suffixed else next(iter(term.resources))
    shown = yield from _steps(fleet, asked)
    nearest = None if shown[-1].left else (yield from _lacking(fleet, asked))
    return PartExplained(term.suffix, resource_class, shown, nearest)


def _steps(fleet: Fleet, asked: list[Condition]) -> Steps[list[Step]]:
    """Apply the conditions one after another; those on a class in three steps."""
    finer = [Condition("exists", lambda block: block.here)]
    for condition in asked:
        if condition.name:
            finer += _class_conditions(condition.name, condition.amount)
        finer.append(condition)
    left = [0] * len(finer)
    for block in list(fleet.blocks):
        mask = block.here
        for number, condition in enumerate(finer):
            rows = condition.rows(block)
            if rows is None:
                break
            mask = mask & rows
            left[number] += int(np.count_nonzero(mask))
        yield
    return [Step(each.words, count) for each, count in zip(finer, left, strict=True)]


def _class_conditions(name: str, amount: int) -> list[Condition]:
    def offered(block: Block) -> Mask | None:
        column = block.columns.get(name)
        return None if column is None else column.offers()

    def admitted(block: Block) -> Mask | None:
        column = block.columns.get(name)
        return None if column is None else column.admits(amount)

    return [
        Condition(f"offers {name}", offered),
        Condition(f"admits {amount} {name} in one piece", admitted),
    ]


class _Near(NamedTuple):
    """The rows of one block that miss the fewest conditions, and which those are."""

    block: Block
    rows: NDArray[np.intp]
    missing: NDArray[np.bool_]
    """By condition and row."""


def _lacking(fleet: Fleet, asked: list[Condition]) -> Steps[str]:
    """Say what the providers that meet most of it are lacking."""
    near: list[_Near] = []
    fewest = len(asked) + 1
    for block in list(fleet.blocks):
        yield
        nobody = np.zeros(block.size, dtype=np.bool_)
        met = [nobody if (rows := each.rows(block)) is None else rows for each in asked]
        missing = ~np.array(met, dtype=np.bool_).reshape(len(asked), block.size)
        count = np.where(block.here, missing.sum(axis=0), len(asked) + 1)
        least = int(count.min())
        if least > len(asked) or least > fewest:
            continue
        if least < fewest:
            near, fewest = [], least
        near.append(_Near(block, np.flatnonzero(count == least), missing))
    if not near:
        return "there are no providers"
    missed = [
        sum(int(n.missing[number, n.rows].sum()) for n in near) for number in range(len(asked))
    ]
    # Where several things are missing, a condition that most of the nearest miss tells most.
    number = int(np.argmax(missed))
    told = _told(asked[number], number, near, missed[number])
    if fewest > 1:
        told += f"; they miss {fewest} conditions each, and nobody misses fewer"
    return told


def _told(condition: Condition, number: int, near: list[_Near], count: int) -> str:
    """Say how near the nearest providers come to one condition that they miss."""
    if not condition.name:
        return f"none of the {count} nearest providers {condition.words}"
    name, amount = condition.name, condition.amount
    offering = [(block, rows) for block, rows in _missing_with(name, number, near) if len(rows)]
    if not offering:
        return f"{name}: none of the {count} nearest providers offers it"
    admitting = [(b, rows[b.columns[name].admits(amount)[rows]]) for b, rows in offering]
    held = sum(len(rows) for _, rows in admitting)
    if not held:
        offer = sum(len(rows) for _, rows in offering)
        return f"{name}: the unit sizes of the {offer} nearest providers do not admit {amount}"
    free = max(int(b.columns[name].free()[rows].max()) for b, rows in admitting if len(rows))
    return f"{name}: the freest of {held} nearest providers has {max(free, 0)} of {amount}"


def _missing_with(
    name: str, number: int, near: list[_Near]
) -> Iterator[tuple[Block, NDArray[np.intp]]]:
    """Yield the rows that miss a condition on a class although they offer the class."""
    for block, rows, missing in near:
        if name in block.columns:
            yield block, rows[missing[number, rows] & block.columns[name].offers()[rows]]


def _tree_steps(fleet: Fleet, query: CandidateQuery) -> Steps[list[Step]]:
    """Return how many trees may serve all parts, then with the conditions on whole trees."""
    plain = replace(query, groups=tuple(map(_undemanding, query.groups)), root_traits=TraitFilter())
    asked = [("every part is served by someone", plain)]
    if plain.groups != query.groups:
        plain = replace(plain, groups=query.groups)
        asked.append(("has the traits that the unsuffixed group requires", plain))
    if query.root_traits != TraitFilter():
        asked.append(("the root has the traits it needs", query))
    found = []
    for words, each in asked:
        anchors = yield from _anchors(fleet, each)
        found.append(Step(words, sum(len(rows) for _, rows in anchors)))
    return found


def _undemanding(group: Group) -> Group:
    """Return the group; the unsuffixed one without the traits it requires together."""
    if group.suffix:
        return group
    return replace(group, traits=TraitFilter((), group.traits.forbidden))


def _anchors(fleet: Fleet, query: CandidateQuery) -> Steps[list[tuple[Block, NDArray[np.intp]]]]:
    search = Search(fleet, query)
    if not (yield from search.beginning()):
        return []
    applied, found = fleet.applied, []
    for block in list(fleet.blocks):
        if fleet.applied != applied:
            applied = fleet.applied
            search.again()
        found.append((block, search.served_rows(block)))
        yield
    return found


def _without(fleet: Fleet, query: CandidateQuery) -> Steps[list[str]]:
    """Return the conditions on the whole of which one less would be enough."""
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
        if (yield from preferring(fleet, each, Order("pack"), 1, CLAIM_STEPS_MAX)).candidates:
            enough.append(name)
        yield
    return enough


def _nearest(
    fleet: Fleet,
    query: CandidateQuery,
    parts: list[PartExplained],
    trees: list[Step],
    without: list[str],
) -> Steps[str]:
    lacking = [f"{_part_named(part)}{part.nearest}" for part in parts if part.nearest]
    if lacking:
        return ". ".join(lacking) + "."
    if without:
        return f"It would fit without {' or without '.join(without)}."
    if not trees[0].left:
        return (yield from _best_tree(fleet, query))
    for step, before in zip(trees[1:], trees, strict=False):
        if not step.left:
            return f"Of {before.left} trees that serve every part none meets: {step.condition}."
    return (
        f"{trees[-1].left} trees have room for every part by itself, none for all of them together."
    )


def _part_named(part: PartExplained) -> str:
    return f"Group {part.suffix}: " if part.suffix else ""


def _best_tree(fleet: Fleet, query: CandidateQuery) -> Steps[str]:
    """Say how many parts the best tree serves, and which it does not."""
    asked = terms(query.groups)
    served: dict[tuple[Block, int], set[int]] = {}
    for number, term in enumerate(asked):
        single = replace(
            query,
            groups=(replace(_undemanding(term.group), resources=term.resources),),
            root_traits=TraitFilter(),
        )
        for block, rows in (yield from _anchors(fleet, single)):
            yield
            for row in rows.tolist():
                served.setdefault((block, row), set()).add(number)
    if not served:
        return "Every part is served by someone, but in no tree that may be used."
    (block, row), most = max(served.items(), key=lambda item: len(item[1]))
    missing = [
        term.suffix or next(iter(term.resources))
        for number, term in enumerate(asked)
        if number not in most
    ]
    if not block.here[row]:  # it went meanwhile
        return "No single tree serves every part."
    return (
        f"No single tree serves every part; the best, {block.record(row).provider.uuid}, serves "
        f"{len(most)} of {len(asked)} and lacks {', '.join(missing)}."
    )
