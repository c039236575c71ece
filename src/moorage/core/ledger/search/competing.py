"""Which parts of a query exclude each other, if each fits somewhere alone but not all together.

Parts are left out one after another, and stay out as long as the rest does not fit either. What
remains fits nowhere, and each of its parts is needed for that.
"""

from msgspec.structs import replace

from moorage.core.ledger.requests import CandidateOrder, CandidateQuery, TraitFilter
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.ledger.search.claim_choice import preferring
from moorage.core.ledger.search.groups import GroupPart, terms
from moorage.core.ledger.search.steps import Steps
from moorage.core.limits import CANDIDATE_STEPS_MAX

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
