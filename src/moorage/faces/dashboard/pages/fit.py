"""Where something would fit: a question built by hand, the funnel of conditions, the nearest fix.

The address is the question, in the words of Placement's allocation candidates: `resources`,
`required`, `member_of`, `in_tree`, with a suffix for further groups.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.faces.dashboard.pages.one_revision import of_one_revision
from moorage.faces.dashboard.routing import ROOT, Page, PageRequest
from moorage.faces.native_api import RefusedError

SUFFIXES = ("", "1", "2")
"""The groups of the form."""

SEPARATORS = re.compile(r"[\s,;]+")
DIGITS_MAX = 10


async def show(request: PageRequest) -> Mapping[str, Any]:
    """Return the question of the address, and its explanation."""
    variables = {"suffixes": SUFFIXES, "explained": None, "refused": "", "as_of": ""}
    try:
        question = _question(request.query)
    except ValueError as error:
        return {**variables, "refused": str(error)}
    if not question["groups"]:
        return variables
    try:
        explained, as_of = await of_one_revision(
            request.service, lambda: request.ask("POST", "/v1/explain", body=question)
        )
    except RefusedError as refused:
        return {**variables, "refused": refused.message}
    parts = [
        {"title": part.resource_class or f"Group {part.suffix}", "steps": part.steps}
        for part in explained.parts
    ]
    if explained.trees:
        parts.append({"title": "All parts in one tree", "steps": explained.trees})
    return {**variables, "explained": explained, "parts": parts, "as_of": as_of}


def _question(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the question of an address. Raises ValueError: it cannot be read."""
    groups = [group for suffix in SUFFIXES if (group := _group(query, suffix))]
    isolate = query.get("group_policy") == "isolate"
    return {"groups": groups, "group_policy": "isolate" if isolate else "none"}


def _group(query: Mapping[str, str], suffix: str) -> dict[str, Any] | None:
    """Return a group of the question; None: the form's fields for it are empty."""
    traits = [*_words(query.get(f"required{suffix}", ""))]
    group = {
        "suffix": suffix,
        "resources": dict(map(_amount, _words(query.get(f"resources{suffix}", "")))),
        "required": [trait for trait in traits if not trait.startswith("!")],
        "forbidden": [trait[1:] for trait in traits if trait.startswith("!")],
        "member_of": [*_words(query.get(f"member_of{suffix}", ""))],
        "in_tree": query.get(f"in_tree{suffix}", "").strip() or None,
    }
    return group if any(group[name] for name in group if name != "suffix") else None


def _words(text: str) -> Iterator[str]:
    return (word for word in SEPARATORS.split(text) if word)


def _amount(text: str) -> tuple[str, int]:
    name, _, amount = text.replace("=", ":").partition(":")
    if not (name and amount.isascii() and amount.isdigit() and len(amount) <= DIGITS_MAX):
        raise ValueError(f"{text!r} is not CLASS:AMOUNT, for example VCPU:4.")
    return name, int(amount)


ENTRIES = (
    Page(
        path=f"{ROOT}/fit",
        title="Where does it fit?",
        template="fit.html",
        show=show,
        needs="/v1/explain",
    ),
)
