"""Checks of a query before the search: known names, and groups that make sense.

For faces whose dialect does not prescribe error messages for this.
"""

import re
from collections.abc import Collection

from moorage.core.errors import Code, Error
from moorage.core.ledger.requests import SUFFIX_PATTERN, CandidateQuery, Group, TraitFilter
from moorage.core.ledger.search.catalog.catalog import Catalog
from moorage.core.limits import GROUPS_MAX, MAX_INT, QUERY_TERMS_MAX, SUFFIX_LENGTH_MAX

_SUFFIX = re.compile(SUFFIX_PATTERN)


def check_sense(query: CandidateQuery) -> None:
    """Raise INVALID or LIMIT_EXCEEDED for a query that could never have an answer.

    Source: Placement API reference, "Allocation candidates".
    """
    _check_size(query)
    _check_suffixes(query)
    for group in query.groups:
        for name, amount in group.resources.items():
            if not 1 <= amount <= MAX_INT:
                raise _invalid(f"the amount of {name} must be between 1 and {MAX_INT}")
        if frozenset() in group.aggregates.member_of:
            raise _invalid("a list of aggregates is empty, so none of them can be met")
        _check_traits(group.traits, f"group '{group.suffix}'")
    _check_traits(query.root_traits, "root")


def check_known(catalog: Catalog, query: CandidateQuery) -> None:
    """Raise CLASS_UNKNOWN or TRAIT_UNKNOWN for a name that does not exist."""
    for group in query.groups:
        for name in group.resources:
            if not catalog.has_class(name):
                raise Error(Code.CLASS_UNKNOWN, f"No such resource class {name}.")
    for traits in (query.root_traits, *(group.traits for group in query.groups)):
        for name in sorted(traits.forbidden.union(*traits.required)):
            if not catalog.has_trait(name):
                raise Error(Code.TRAIT_UNKNOWN, f"No such trait {name}.")


def _check_size(query: CandidateQuery) -> None:
    if len(query.groups) > GROUPS_MAX:
        raise Error(Code.LIMIT_EXCEEDED, f"at most {GROUPS_MAX} groups can be asked for at once.")
    words = sum(_words_in(group) for group in query.groups)
    words += len(query.root_traits.required) + len(query.root_traits.forbidden)
    if words > QUERY_TERMS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"the groups name {words} classes, traits and aggregates; "
            f"at most {QUERY_TERMS_MAX} are allowed.",
        )
    check_related(query.same_subtree)


def check_related(same_subtree: Collection[Collection[str]]) -> None:
    """Raise LIMIT_EXCEEDED if same_subtree names too many groups."""
    related = sum(map(len, same_subtree))
    if related > QUERY_TERMS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"same_subtree names {related} groups; at most {QUERY_TERMS_MAX} are allowed.",
        )


def _words_in(group: Group) -> int:
    sets = (*group.traits.required, *group.aggregates.member_of)
    barred = len(group.traits.forbidden) + len(group.aggregates.forbidden)
    return len(group.resources) + barred + sum(map(len, sets))


def _check_suffixes(query: CandidateQuery) -> None:
    suffixes = [group.suffix for group in query.groups]
    related = frozenset[str]().union(*query.same_subtree)
    if len(set(suffixes)) != len(suffixes):
        raise _invalid("two groups have the same suffix")
    if not any(group.resources for group in query.groups):
        raise _invalid("no group asks for any resources")
    for group in query.groups:
        if group.suffix and not _SUFFIX.fullmatch(group.suffix):
            raise _invalid(
                f"a suffix has up to {SUFFIX_LENGTH_MAX} letters, digits, dashes and underscores"
            )
        if not group.resources and (not group.suffix or group.suffix not in related):
            raise _invalid(
                f"group '{group.suffix}' asks for no resources; only a suffixed group that is "
                "named in same_subtree may"
            )
    if wrong := sorted(related - set(suffixes) | related & {""}):
        raise _invalid(f"same_subtree names {wrong}, which are not suffixes of groups")


def _check_traits(traits: TraitFilter, where: str) -> None:
    for names in traits.required:
        if not names:
            raise _invalid(f"{where}: a list of traits is empty, so none of them can be there")
        if names <= traits.forbidden:
            raise _invalid(f"{where}: {', '.join(sorted(names))} is both required and forbidden")


def _invalid(reason: str) -> Error:
    return Error(Code.INVALID, f"The request contradicts itself: {reason}.")
