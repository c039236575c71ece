"""The differences between two answers with candidates.

The original does not order candidates, and with a `limit` it chooses others than Moorage. Therefore
they are compared as sets, and a limited answer of Moorage with the original's unlimited one.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.compare.generate.requests import Ask
from tests.compare.judge.differences import Difference, canonical, walk

TREES_SINCE = 29
"""From this microversion on, summaries show whole trees."""

REQUESTS, SUMMARIES = "allocation_requests", "provider_summaries"


def limit_of(ask: Ask) -> int | None:
    """Return the limit of a request; None if there is none, or an invalid one."""
    values = [value for name, value in ask.pairs if name == "limit"]
    return int(values[0]) if values and values[0].isdigit() else None


def without_limit(ask: Ask) -> Ask:
    """Return the same request without a limit."""
    query = tuple(piece for piece in ask.query if not piece.startswith("limit="))
    return Ask(ask.method, ask.template, ask.path, query, ask.headers)


def candidate_differences(
    theirs: dict[str, Any], ours: dict[str, Any], limit: int | None, minor: int
) -> Iterator[Difference]:
    """Yield the differences; with a limit, `theirs` is the original's answer without it."""
    if list(theirs) != list(ours):
        yield Difference("order {}", list(theirs), list(ours))
    found = list(_requests(theirs[REQUESTS], ours[REQUESTS], limit))
    yield from found
    if any(not one.aspect.startswith("order") for one in found):
        return  # the summaries depend on the candidates
    if limit is None:
        yield from walk(theirs[SUMMARIES], ours[SUMMARIES], f"/{SUMMARIES}")
    else:
        yield from _cut_summaries(theirs, ours, minor)


def _requests(theirs: list[Any], ours: list[Any], limit: int | None) -> Iterator[Difference]:
    one, other = Counter(map(canonical, theirs)), Counter(map(canonical, ours))
    missing, surplus = (one - other).elements(), (other - one).elements()
    if limit is None:
        if one != other:
            yield Difference("candidates", [*map(json.loads, missing)], [*map(json.loads, surplus)])
    elif other - one:
        yield Difference("candidates", [], [*map(json.loads, surplus)])
    elif len(ours) != min(limit, len(theirs)):
        yield Difference("limit", min(limit, len(theirs)), len(ours))
    spelled = {canonical(each): each for each in theirs}
    for each in ours:
        if (same := spelled.get(canonical(each))) is not None:
            yield from walk(same, each, f"/{REQUESTS}/0")


def _cut_summaries(
    theirs: dict[str, Any], ours: dict[str, Any], minor: int
) -> Iterator[Difference]:
    whole = theirs[SUMMARIES]
    shown = _of_interest(whole, ours[REQUESTS], minor)
    expected = {uuid: of for uuid, of in whole.items() if uuid in shown}
    yield from walk(expected, ours[SUMMARIES], f"/{SUMMARIES}")


def _of_interest(summaries: dict[str, Any], candidates: list[Any], minor: int) -> set[str]:
    """Return the providers whose summaries belong to candidates."""
    used = {uuid for each in candidates for uuid in providers_of(each)}
    if minor >= TREES_SINCE:
        roots = {summaries[uuid]["root_provider_uuid"] for uuid in used if uuid in summaries}
        used |= {uuid for uuid, of in summaries.items() if of["root_provider_uuid"] in roots}
    return used


def surplus_summaries(theirs: dict[str, Any], minor: int) -> Iterator[Difference]:
    """Yield a difference if an answer of the original has summaries of no candidate."""
    shown = theirs[SUMMARIES]
    surplus = sorted(set(shown) - _of_interest(shown, theirs[REQUESTS], minor))
    if surplus:
        yield Difference("summaries of no candidate", surplus, [])


def providers_of(candidate: dict[str, Any]) -> list[str]:
    """Return the providers of a candidate's allocations."""
    allocations = candidate["allocations"]
    if isinstance(allocations, dict):
        return list(allocations)
    return [each["resource_provider"]["uuid"] for each in allocations]
