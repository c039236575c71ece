"""Parsed parts of a request, for predicates and checks."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.compare.exchange import Exchange
from tests.compare.generate.requests import VERSION, Ask

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UUID_LIKE = re.compile(
    r"(?:urn:uuid:|\{)?[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}\}?"
)
PLAIN_VERSION = re.compile(r"placement (latest|-?[0-9]+\.-?[0-9]+)")


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, of in value.items():
            yield str(key)
            yield from texts(of)
    elif isinstance(value, list | tuple):
        for of in value:
            yield from texts(of)


def keys_below(value: Any, name: str) -> set[str]:
    """Return the keys of all objects that are values of a name, at any depth."""
    found: set[str] = set()
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, of in members:
            found |= keys_below(of, name)
            if key == name and isinstance(of, dict):
                found |= of.keys()
    return found


def words(exchange: Exchange) -> Iterator[str]:
    """Yield every text of a request: parts of the path, values of the query, texts of the body."""
    yield from exchange.ask.path.split("/")
    yield from (value for _, value in exchange.ask.pairs)
    yield from texts(exchange.body)


def odd_uuids(exchange: Exchange) -> list[str]:
    """Return the UUIDs of a request that are not in the normal format."""
    found = [one for text in words(exchange) for one in UUID_LIKE.findall(text)]
    return [one for one in found if not UUID.fullmatch(one)]


def odd_version(ask: Ask) -> bool:
    """Return whether the microversion has an unusual format."""
    said = dict(ask.headers).get(VERSION)
    return said is not None and not PLAIN_VERSION.fullmatch(said)


def parameter(ask: Ask, name: str) -> str:
    """Return the value of a parameter; empty if it is absent."""
    return dict(ask.pairs).get(name, "")


def suffix_of(name: str, stem: str) -> str | None:
    """Return the suffix of a parameter such as `resources_A`; None if it has another stem."""
    rest = name.removeprefix(stem)
    known = name.startswith(stem) and (rest == "" or rest.isdigit() or rest.startswith("_"))
    return rest if known else None


def groups(ask: Ask) -> set[str]:
    """Return the suffixes of all groups of a search for candidates."""
    stems = ("resources", "required", "member_of", "in_tree")
    found = {suffix_of(name, stem) for name, _ in ask.pairs for stem in stems}
    return {suffix for suffix in found if suffix is not None}


def groups_without_resources(ask: Ask) -> set[str]:
    """Return the suffixes of groups that exist only because of `same_subtree`."""
    named = {s for name, value in ask.pairs if name == "same_subtree" for s in value.split(",")}
    return named - {suffix_of(name, "resources") for name, _ in ask.pairs}


def resources_asked(ask: Ask) -> dict[str, dict[str, int]]:
    """Return the requested amounts by suffix; of a repeated parameter, the last one counts."""
    found: dict[str, dict[str, int]] = {}
    for name, value in dict(ask.pairs).items():
        suffix = suffix_of(name, "resources")
        if suffix is not None:
            terms = (term.partition(":") for term in value.split(","))
            found[suffix] = {resource_class: int(amount) for resource_class, _, amount in terms}
    return found


def amounts_asked(ask: Ask) -> Counter[str]:
    """Return how much of each class all groups of a search request together."""
    found: Counter[str] = Counter()
    for amounts in resources_asked(ask).values():
        found.update(amounts)
    return found


def classes_shared(ask: Ask) -> set[str]:
    """Return the classes that both the unsuffixed group and another group request."""
    groups = resources_asked(ask)
    first = groups.pop("", {})
    return {name for amounts in groups.values() for name in amounts if name in first}


def amounts_in(candidate: dict[str, Any]) -> Counter[str]:
    """Return how much of each class a candidate allocates."""
    allocations = candidate["allocations"]
    each = allocations.values() if isinstance(allocations, dict) else allocations
    found: Counter[str] = Counter()
    for one in each:
        found.update(one["resources"])
    return found
