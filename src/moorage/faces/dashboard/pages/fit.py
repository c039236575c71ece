"""Where something would fit: a question built by hand or pasted, and what hinders it.

The address is the question: the parameters of Placement's `GET /allocation_candidates`, all of
them, as a scheduler sends them. The form writes the same parameters, but its fields are lenient:
they take spaces and line breaks between names, and `VCPU=4`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from moorage.core.ledger.requests import SUFFIX_PATTERN
from moorage.faces.dashboard.pages.one_revision import of_one_revision
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest, address_of
from moorage.faces.native_api import RefusedError
from moorage.faces.query_strings.pasted import query_string_in
from moorage.wire.ledger import Explained
from moorage.wire.operations import ledger

FIT = f"{ROOT}/fit"

SUFFIXES = ("", "1", "2")
"""The groups that the form always has; it also shows those of the question."""

PASTED = "query"
"""The parameter of a pasted question."""

OWN = frozenset({"notice", PASTED})
"""Parameters of the page itself."""

Pairs = list[tuple[str, str]]

_PASTED_INTO_FIELD = re.compile(r"allocation_candidates\?|(?:^|[?&])resources[^=&]*=")
"""A query as a log has it, pasted into the field for amounts."""

_AMOUNTS = re.compile(r"[A-Z0-9_]+[:=][0-9]+(?:[\s,;]+[A-Z0-9_]+[:=][0-9]+)*")
"""Amounts alone, pasted where a whole query is expected."""

_GROUP = re.compile(f"(resources|required|member_of|in_tree)({SUFFIX_PATTERN})?")
_SEPARATORS = re.compile(r"[\s,;]+")
_PREFIX = re.compile(r"!?in:|!")


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the question of the address, and its explanation."""
    asked = asked_of(request.pairs, request.query)
    variables: dict[str, Any] = {
        "asked": _Values(asked.pairs),
        "suffixes": _suffixes(asked.pairs),
        "explained": None,
        "refused": asked.refused,
        "as_of": "",
        "claims": None,
    }
    if asked.refused or not asked.text:
        return variables
    try:
        explained, as_of = await of_one_revision(
            request.service,
            lambda: request.get(ledger.EXPLAIN_BY_QUERY, candidates=asked.text),
        )
    except RefusedError as error:
        return {**variables, "refused": error.message}
    parts = [
        {"title": part.resource_class or f"Group {part.suffix}", "steps": part.steps}
        for part in explained.parts
    ]
    if explained.trees:
        parts.append({"title": "All parts in one tree", "steps": explained.trees})
    return {
        **variables,
        "explained": explained,
        "parts": parts,
        "as_of": as_of,
        "claims": _claims(asked, explained) if request.permits(ledger.DRAIN_PROVIDER) else None,
    }


class Asked(NamedTuple):
    """The question of an address: its parameters, and itself as a query string.

    `text` empty: nothing is asked. `refused`: why the parameters are no question; empty: they are.
    """

    pairs: Pairs
    text: str
    refused: str = ""


def asked_of(pairs: Iterable[tuple[str, str]], query: Mapping[str, str]) -> Asked:
    """Return the question of an address, pasted or from the fields of the form."""
    given = [(name, value.strip()) for name, value in pairs if value.strip()]
    asked = [pair for pair in given if pair[0] not in OWN]
    fields = [pair for pair in asked if pair[0] != "group_policy"]
    pasted = query.get(PASTED, "").strip()
    if pasted and fields:
        refused = "The address has a pasted query and other parameters: leave one of them out."
        return Asked(asked, "", refused)
    if not pasted and len(fields) == 1 and _PASTED_INTO_FIELD.search(fields[0][1]):
        pasted = fields[0][1]
    if _AMOUNTS.fullmatch(pasted):
        asked, pasted = [("resources", pasted)], ""
    if pasted:
        return Asked(parse_qsl(query_string_in(pasted), keep_blank_values=True), pasted)
    if not any(name != "group_policy" for name, _ in asked):
        return Asked(asked, "")
    return Asked(asked, urlencode([pair for each in asked for pair in _written(*each)]))


def _claims(asked: Asked, explained: Explained) -> Mapping[str, str]:
    """Return the address of a claim at each place, by the UUID of its root."""
    path = f"{FIT}/claim"
    return {
        one.root: address_of(path, {PASTED: query_string_in(asked.text), "place": one.root})
        for one in explained.places
    }


class _Values:
    """The values of the question's parameters, for the fields of the form."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs

    def of(self, name: str, more: bool = False) -> list[str]:
        """Return the values of a parameter, one at least; `more`: with an empty one at the end."""
        found = [value for each, value in self._pairs if each == name]
        return [*found, ""] if more or not found else found

    def has(self, name: str) -> bool:
        """Return whether the question has this parameter."""
        return any(each == name for each, _ in self._pairs)


def _suffixes(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the suffixes of the form's groups: its own, and those of the question."""
    found = (_GROUP.fullmatch(name) for name, _ in pairs)
    named = dict.fromkeys(match[2] or "" for match in found if match)
    return [*dict.fromkeys((*SUFFIXES, *named))]


def _written(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a parameter as Placement wants it, given as people type it."""
    group = _GROUP.fullmatch(name)
    kind = group[1] if group else name
    prefix = _PREFIX.match(value)
    words = [word for word in _SEPARATORS.split(value) if word]
    if kind == "resources":
        yield name, ",".join(word.replace("=", ":") for word in words)
    elif kind in ("required", "root_required", "same_subtree"):
        yield name, ",".join(words)
    elif kind == "member_of" and not prefix:
        # Of several aggregates in one field, each is required.
        for word in words:
            yield name, word
    else:
        yield name, value


ENTRIES = (
    Page(
        path=FIT,
        title="Where does it fit?",
        template="fit.html",
        show=show,
        needs=ledger.EXPLAIN_BY_QUERY,
    ),
)
