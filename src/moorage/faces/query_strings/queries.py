"""Parses query strings into the ledger's queries.

Parsing is pure and depends only on the text, the microversion and the limits, so that the queries
that schedulers repeat are parsed only once.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.requests import CandidateQuery, Group, ProviderQuery, TraitFilter
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.validation import check_related
from moorage.core.limits import GROUPS_MAX
from moorage.faces.query_strings import parameters
from moorage.faces.query_strings.grammar import (
    FORBIDDEN_TRAITS_SINCE,
    aggregates_parse,
    conflicts,
    in_tree_parse,
    resources_parse,
    trait_terms_parse,
    traits_parse,
)
from moorage.faces.query_strings.parameters import Pairs
from moorage.faces.query_strings.refusals import (
    QUERY_BAD_VALUE,
    QUERY_DUPLICATE_KEY,
    QUERY_MISSING_VALUE,
    ProblemError,
)
from moorage.faces.web import Limits, query_parse

NESTED_SINCE = 29
RESOURCELESS_SINCE = 36
CACHED_BYTES_MAX = 4_096
"""Longer query strings are not cached."""
LIMIT_DIGITS_MAX = 9
"""Digits of a limit that are read: a longer limit is never reached."""


class Word(NamedTuple):
    """A resource class or a trait that a query names."""

    is_trait: bool
    name: str


class Vocabulary(NamedTuple):
    """The classes and traits of a query, all of which must exist, in the order of checking."""

    words: tuple[Word, ...]

    def check(self, catalog: Catalog, traits_prefix: str = "") -> None:
        """Raise ProblemError 400 for the first class or trait that does not exist."""
        for is_trait, name in self.words:
            if is_trait and not catalog.has_trait(name):
                raise ProblemError(400, f"{traits_prefix}No such trait(s): {name}.")
            if not is_trait and not catalog.has_class(name):
                raise ProblemError(
                    400,
                    "Invalid resource class in resources parameter: "
                    f"No such resource class {name}.",
                )


class ProviderQuestion(NamedTuple):
    """A query for providers, and the classes and traits it names."""

    query: ProviderQuery
    vocabulary: Vocabulary


class CandidateQuestion(NamedTuple):
    """A query for candidates, and the classes and traits it names."""

    query: CandidateQuery
    vocabulary: Vocabulary


def provider_query(query_string: bytes, version: int, limits: Limits) -> ProviderQuestion:
    """Parse the query of GET /resource_providers. Raises ProblemError, RefusalError."""
    pairs = query_parse(query_string, limits)
    parameters.check(pairs, "providers", version)
    last = dict(pairs)
    aggregates = aggregates_parse(_all(pairs, "member_of"), version)
    traits = traits_parse(_all(pairs, "required"), version).filter()
    query = ProviderQuery(
        name=last.get("name") or None,
        uuid=ProviderId(last["uuid"].lower()) if "uuid" in last else None,
        in_tree=ProviderId(last["in_tree"].lower()) if "in_tree" in last else None,
        resources=resources_parse(last["resources"]) if "resources" in last else {},
        traits=traits,
        aggregates=aggregates,
    )
    return ProviderQuestion(query, _vocabulary(traits, query.resources))


class TraitQuery(NamedTuple):
    """The filter of GET /traits; None means no condition."""

    names: frozenset[str] | None = None
    prefix: str = ""
    associated: bool | None = None


def trait_query(query_string: bytes, version: int, limits: Limits) -> TraitQuery:
    """Parse the query of GET /traits. Raises ProblemError, RefusalError."""
    pairs = query_parse(query_string, limits)
    parameters.check(pairs, "traits", version)
    last = dict(pairs)
    query = TraitQuery()
    if "name" in last:
        operator, colon, operand = last["name"].partition(":")
        if not colon:
            raise ProblemError(
                400,
                "Badly formatted name parameter. Expected name query string parameter in form: "
                f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{last["name"]}"',
            )
        if operator == "in":
            query = query._replace(names=frozenset(operand.split(",")))
        elif operator == "startswith":
            query = query._replace(prefix=operand)
    if "associated" in last:
        wanted = last["associated"].lower()
        if wanted not in ("true", "false"):
            raise ProblemError(
                400, 'The query parameter "associated" only accepts "true" or "false"'
            )
        query = query._replace(associated=wanted == "true")
    return query


def candidate_query(query_string: bytes, version: int, limits: Limits) -> CandidateQuestion:
    """Parse the query of GET /allocation_candidates. Raises ProblemError, RefusalError, Error."""
    if len(query_string) > CACHED_BYTES_MAX:
        return _candidate_query(query_string, version, limits)
    return _candidate_query_cached(query_string, version, limits)


class UsageQuery(NamedTuple):
    """The parameters of GET /usages; `consumer_type` as spelled in the request."""

    project_id: str
    user_id: str | None
    consumer_type: str | None


def usage_query(query_string: bytes, version: int, limits: Limits) -> UsageQuery:
    """Parse the query of GET /usages. Raises ProblemError, RefusalError."""
    pairs = query_parse(query_string, limits)
    parameters.check(pairs, "usages", version)
    last = dict(pairs)
    return UsageQuery(last["project_id"], last.get("user_id"), last.get("consumer_type"))


def _candidate_query(query_string: bytes, version: int, limits: Limits) -> CandidateQuestion:
    pairs = query_parse(query_string, limits)
    parameters.check(pairs, "candidates", version)
    first = dict(reversed(pairs))
    root_traits = _root_traits(_all(pairs, "root_required"))
    same_subtree = tuple(_subtree(value) for value in _all(pairs, "same_subtree"))
    check_related(same_subtree)
    groups = _groups(pairs, version)
    _check_groups(groups, same_subtree, version)
    policy = first.get("group_policy")
    if policy is None and sum(bool(group.suffix) for group in groups) > 1:
        raise ProblemError(
            400,
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.',
        )
    limit = first.get("limit", "")[:LIMIT_DIGITS_MAX]
    query = CandidateQuery(
        groups=groups,
        group_policy=policy or "none",
        same_subtree=same_subtree,
        root_traits=root_traits,
        limit=int(limit) if limit else None,
        nested=version >= NESTED_SINCE,
    )
    named = [part for group in groups for part in (group.resources, group.traits)]
    return CandidateQuestion(query, _vocabulary(root_traits, *named))


_candidate_query_cached = lru_cache(maxsize=1_024)(_candidate_query)


def _root_traits(values: list[str]) -> TraitFilter:
    if not values:
        return TraitFilter()
    if len(values) > 1:
        raise ProblemError(
            400,
            "Query parameter 'root_required' may be specified only once.",
            QUERY_DUPLICATE_KEY,
        )
    traits = trait_terms_parse(values[0], forbidden_known=True, any_known=False)
    if clashing := conflicts(traits.required, traits.forbidden):
        raise ProblemError(
            400,
            "Conflicting required and forbidden traits found in root_required: "
            + ", ".join(clashing),
            QUERY_BAD_VALUE,
        )
    return traits.filter()


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(part.strip() for part in value.split(","))
    if "" in suffixes:
        raise ProblemError(
            400,
            "Empty string (unsuffixed group) can not be specified in `same_subtree` ",
            QUERY_BAD_VALUE,
        )
    return suffixes


def _groups(pairs: Pairs, version: int) -> tuple[Group, ...]:
    """Parse the parameters of groups in the order of the query: the first error is reported."""
    pattern = _group_key(version)
    by_suffix: dict[str, dict[str, Any]] = {
        found[2] or "": {} for key, _ in pairs if (found := pattern.fullmatch(key))
    }
    if len(by_suffix) > GROUPS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"The query has {len(by_suffix)} request groups; at most {GROUPS_MAX} are allowed.",
        )
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    for key, value in pairs:
        if found := pattern.fullmatch(key):
            name, suffix = found[1], found[2] or ""
            group = by_suffix[suffix]
            if name == "resources":
                group["resources"] = resources_parse(value)
            elif name == "in_tree":
                group["in_tree"] = in_tree_parse(value)
            elif name == "required" and "traits" not in group:  # all of its values at once
                group["traits"] = traits_parse(values[key], version).filter()
            elif name == "member_of" and "aggregates" not in group:
                group["aggregates"] = aggregates_parse(values[key], version, suffix)
    return tuple(
        Group(suffix=suffix, **{"resources": {}, **group}) for suffix, group in by_suffix.items()
    )


@lru_cache(maxsize=64)
def _group_key(version: int) -> re.Pattern[str]:
    suffix = parameters.suffix_pattern(version)
    return re.compile(f"(resources|required|member_of|in_tree)({suffix})?")


def _check_groups(
    groups: tuple[Group, ...], same_subtree: tuple[frozenset[str], ...], version: int
) -> None:
    if version >= RESOURCELESS_SINCE:
        _check_subtrees(groups, same_subtree)
    else:
        _check_orphans(groups)
    if version >= FORBIDDEN_TRAITS_SINCE:
        clashing = [
            f"required{group.suffix}: ({names})"
            for group in groups
            for names in conflicts(group.traits.required, group.traits.forbidden)
        ]
        if clashing:
            raise ProblemError(
                400,
                "Conflicting required and forbidden traits found in the following traits keys: "
                + ", ".join(sorted(clashing)),
            )


def _check_subtrees(groups: tuple[Group, ...], same_subtree: tuple[frozenset[str], ...]) -> None:
    suffixes = [group.suffix for group in groups]
    resourceless = [group.suffix for group in groups if not group.resources]
    related = frozenset[str]().union(*same_subtree)
    if len(resourceless) == len(groups):
        raise ProblemError(
            400,
            "There must be at least one resources or resources[$S] parameter.",
            QUERY_MISSING_VALUE,
        )
    if lonely := sorted(suffix for suffix in resourceless if suffix not in related):
        raise ProblemError(
            400,
            "Resourceless suffixed group request should be specified in `same_subtree` query "
            f"param: bad group(s) - {lonely}.",
            QUERY_BAD_VALUE,
        )
    if unknown := sorted(related.difference(suffixes)):
        raise ProblemError(
            400,
            f"Real suffixes should be specified in `same_subtree`: {unknown} not found in "
            f"{suffixes}.",
            QUERY_BAD_VALUE,
        )


def _check_orphans(groups: tuple[Group, ...]) -> None:
    bare = [group for group in groups if not group.resources]
    if orphans := [f"required{group.suffix}" for group in bare if group.traits.required]:
        raise ProblemError(
            400,
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(orphans)}",
        )
    if orphans := [
        f"member_of{group.suffix}"
        for group in bare
        if group.aggregates.member_of or group.aggregates.forbidden
    ]:
        raise ProblemError(
            400,
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(orphans)}",
        )
    if bare:
        raise ProblemError(400, "All request groups must specify resources.")
    if not groups:
        raise ProblemError(
            400, "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _vocabulary(*parts: dict[str, int] | TraitFilter) -> Vocabulary:
    """Return the names of resource classes and traits."""
    words: dict[Word, None] = {}
    for part in parts:
        if isinstance(part, TraitFilter):
            for names in (*part.required, part.forbidden):
                words |= dict.fromkeys(Word(True, name) for name in sorted(names))
        else:
            words |= dict.fromkeys(Word(False, name) for name in part)
    return Vocabulary(tuple(words))


def _all(pairs: Pairs, name: str) -> list[str]:
    return [value for key, value in pairs if key == name]
