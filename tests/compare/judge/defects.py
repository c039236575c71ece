"""The original's defects, which Moorage does not copy, each with a predicate and a heading."""

import re
from typing import Any
from urllib.parse import unquote

from tests.compare.exchange import Exchange
from tests.compare.generate.candidates import REQUESTS, SUMMARIES, TREES_SINCE, providers_of
from tests.compare.judge.differences import Difference
from tests.compare.judge.reading import (
    amounts_asked,
    amounts_in,
    classes_shared,
    groups,
    groups_without_resources,
    parameter,
    suffix_of,
    texts,
)
from tests.compare.judge.reasons import DETAIL, Deliberate

LEFT_BEHIND = "Leaked consumers"
"""The player removes these from the original after each request, and counts how often."""

SHARES = "MISC_SHARES_VIA_AGGREGATE"


CLASS_NAME = re.compile(r"[A-Z0-9_]+")


def _server_error(exchange: Exchange, difference: Difference) -> bool:
    return exchange.theirs.status == 500 and exchange.ours.status < 500


def _sql(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect == DETAIL
        and exchange.ask.what == "POST /resource_providers/{provider}/inventories"
        and "IntegrityError" in exchange.their_detail
        and exchange.our_detail.startswith("Update conflict: ")
    )


def _newline(exchange: Exchange, difference: Difference) -> bool:
    parameters = (name for name, _ in exchange.ask.pairs)
    names = [*texts(exchange.body), unquote(exchange.ask.path), *parameters]
    return (
        difference.aspect in ("status", DETAIL)
        and exchange.ours.status == 400
        and any(name.endswith("\n") for name in names)
    )


def _like_all(exchange: Exchange, difference: Difference) -> bool:
    if exchange.ask.what != "GET /usages":
        return False
    if difference.aspect == DETAIL:
        return bool(exchange.their_detail.replace("|^all|", "|^all$|") == exchange.our_detail)
    kind = parameter(exchange.ask, "consumer_type")
    return difference == Difference("status", 200, 400) and kind.startswith("all") and kind != "all"


def _like(exchange: Exchange, difference: Difference) -> bool:
    operator, _, prefix = parameter(exchange.ask, "name").partition(":")
    if exchange.ask.what != "GET /traits" or operator != "startswith":
        return False
    if difference.aspect == "header last-modified":
        return bool(exchange.theirs.json() != exchange.ours.json())
    surplus = set(exchange.theirs.json()["traits"]) - set(exchange.ours.json()["traits"])
    return (
        difference.aspect == "body /traits[]"
        and bool(surplus)
        and not any(name.startswith(prefix) for name in surplus)
    )


def _underscores(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect == "status"
        and exchange.ours.status == 400
        and any(
            "_" in term.rpartition(":")[2]
            for name, value in exchange.ask.pairs
            if suffix_of(name, "resources") is not None
            for term in value.split(",")
        )
        and "expected positive integer amount" in exchange.our_detail
    )


def _all_theirs(exchange: Exchange) -> list[Any]:
    """Return all candidates of the original, including those beyond the limit."""
    found: list[Any] = (exchange.unlimited or exchange.theirs).json()[REQUESTS]
    return found


def _too_much(exchange: Exchange, difference: Difference) -> bool:
    asked = amounts_asked(exchange.ask)
    return (
        difference.aspect in ("candidates", "limit")
        and exchange.matches_model
        and (
            difference.aspect == "limit"
            or all(amounts_in(one) != asked for one in difference.theirs)
        )
        and bool(classes_shared(exchange.ask))
    )


def _sharing_lost(exchange: Exchange, difference: Difference) -> bool:
    if difference.aspect != "candidates" or difference.theirs or len(groups(exchange.ask)) < 2:
        return False
    summaries = exchange.ours.json()[SUMMARIES]
    sharing = {uuid for uuid, of in summaries.items() if SHARES in of.get("traits", ())}
    return exchange.matches_model and all(
        sharing & set(providers_of(one)) for one in difference.ours
    )


def _only_forbidden(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect == "candidates"
        and exchange.matches_model
        and _all_theirs(exchange) == []
        and any(
            _forbids_only(exchange, suffix) for suffix in groups_without_resources(exchange.ask)
        )
    )


def _tree_ignored(exchange: Exchange, difference: Difference) -> bool:
    names = {name for name, _ in exchange.ask.pairs}
    return (
        difference.aspect in ("candidates", "limit")
        and exchange.matches_model
        and any("in_tree" + suffix in names for suffix in groups_without_resources(exchange.ask))
    )


def _forbids_only(exchange: Exchange, suffix: str) -> bool:
    stems = ("required", "member_of")
    said = [value for name, value in exchange.ask.pairs if name in {s + suffix for s in stems}]
    terms = [term for value in said for term in _terms(value)]
    return bool(terms) and all(term.startswith("!") for term in terms)


def _terms(value: str) -> list[str]:
    """Return the terms of a parameter; `!in:` forbids the whole list."""
    return [value] if value.startswith(("in:", "!in:")) else value.split(",")


def _surplus_summaries(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect == "summaries of no candidate" and (exchange.ask.minor or 0) < TREES_SINCE
    )


DEFECTS = [
    Deliberate("Internal server errors", _server_error, forks=True),
    Deliberate("SQL in error messages", _sql),
    Deliberate("Trailing newlines", _newline, forks=True),
    Deliberate("Consumer types starting with `all`", _like_all),
    Deliberate("Trait prefixes as patterns", _like),
    Deliberate("Underscores in amounts", _underscores),
    Deliberate("Oversized candidates", _too_much),
    Deliberate("Groups that only exclude", _only_forbidden),
    Deliberate("Trees of groups without resources", _tree_ignored),
    Deliberate("Lost candidates of sharing providers", _sharing_lost),
    Deliberate("Surplus provider summaries", _surplus_summaries),
]
