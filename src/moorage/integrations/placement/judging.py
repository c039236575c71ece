"""Compares what the original and Moorage answer to the same request.

Lists are compared as sets. A difference that is decided has the heading of its paragraph in
docs/reference/placement.md or docs/howto/run-both.md; it is named, but does not count.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from moorage.integrations.placement.asking import Answer

ABSENT = "(absent)"
NOW_SECONDS = 5.0
"""Up to this age, Last-Modified is the time of the request: nothing has been modified."""

SPELLINGS = "UUID spellings"
OF_THE_LIBRARY = "Standard names of other releases"
AS_OLD_AS_THE_LEDGER = "Times of standard names"
LOST = "Lost candidates of sharing providers"
OVERSIZED = "Oversized candidates"
FAILING = "Internal server errors"
SERVER_ERROR = 500
NOT_OFFERED = "Capacity that is not offered"
ROUNDED = "Ratios in single precision"
ROUNDING = 1e-5
"""The largest part of a ratio that is lost."""

NAMED_AFTER = ("uuid", "name", "rel")
"""The members that tell the objects of a list apart."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_LIKE = re.compile(r"(urn:uuid:)?\{?[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}\}?")
_NAME = re.compile(r"[A-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class Question:
    """A GET for both. `amounts` by class are what a query for candidates asks for, in `groups`."""

    kind: str
    path: str
    amounts: tuple[tuple[str, int], ...] | None = None
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: what kind it is, where it is, and what each side says there.

    `known` is the heading under which it is described; empty: it is not decided.
    """

    kind: str
    path: str
    at: str
    original: Any
    moorage: Any
    known: str = ""


@dataclass(frozen=True)
class Circumstances:
    """What decides whether a difference is known."""

    prefixes: tuple[str, str]
    """The paths below which both sides are: of the original, and ours."""
    seconds: float
    """Up to which times may differ."""
    sharing: frozenset[str] = field(default_factory=frozenset)
    """Providers that share by aggregates."""
    closed: frozenset[str] = field(default_factory=frozenset)
    """Providers of which Moorage offers less than their inventories say."""
    rounded: frozenset[str] = field(default_factory=frozenset)
    """Providers with a ratio that MariaDB and MySQL round."""


def differences(
    question: Question, theirs: Answer, ours: Answer, around: Circumstances
) -> Iterator[Difference]:
    """Yield how the answers to one question differ."""
    kind, path = question.kind, question.path
    if theirs.status != ours.status:
        known = FAILING if fails(question, theirs) and ours.status == 200 else ""
        yield Difference(f"{kind}: status", path, "status", theirs.status, ours.status, known)
        return
    if theirs.status >= 300:
        return  # the text of an error is for people
    if question.amounts is None:
        yield from _of_values(question, theirs, ours, around)
        yield from _of_times(question, theirs, ours, around)
    else:
        yield from _of_candidates(question, theirs.value, ours.value, around)


def fails(question: Question, theirs: Answer) -> bool:
    """Return whether the original fails as on PostgreSQL: its SQL sums up by type, not by class."""
    return theirs.status == SERVER_ERROR and question.path.startswith("/usages?")


def _of_values(
    question: Question, theirs: Answer, ours: Answer, around: Circumstances
) -> Iterator[Difference]:
    respelled: list[str] = []
    one = _plain(theirs.value, around.prefixes[0], respelled)
    other = _plain(ours.value, around.prefixes[1], [])
    for text in respelled[:1]:
        kind = f"{question.kind}: spelling"
        yield Difference(kind, question.path, text, text, str(_uuid(text)), SPELLINGS)
    for at, left, right in walk(one, other):
        known = _known(question, left, right, at)
        kind = f"{question.kind}: /{'/'.join(map(collapsed, at))}"
        yield Difference(kind, question.path, f"/{'/'.join(at)}", left, right, known)


def _known(question: Question, theirs: Any, ours: Any, at: tuple[str, ...]) -> str:
    """Return why one value differs; empty: there is no reason."""
    if is_rounded(theirs, ours, at):
        return ROUNDED
    if question.kind in ("traits", "resource classes") and ABSENT in (theirs, ours):
        return "" if at[-1].startswith("CUSTOM_") else OF_THE_LIBRARY
    return ""


def is_rounded(theirs: Any, ours: Any, at: tuple[str, ...]) -> bool:
    """Return whether a ratio differs only because the original's database rounds it."""
    return at[-1:] == ("allocation_ratio",) and isinstance(ours, float) and single(ours) == theirs


def single(ratio: float) -> float:
    """Return a ratio as MariaDB and MySQL keep it, and show it: in single precision, six digits."""
    (kept,) = struct.unpack("f", struct.pack("f", ratio))
    return float(f"{kept:.6g}")


def _of_times(
    question: Question, theirs: Answer, ours: Answer, around: Circumstances
) -> Iterator[Difference]:
    one, other = theirs.modified, ours.modified
    if one is None or other is None or (_just_now(theirs) and _just_now(ours)):
        return
    if abs(one - other) > around.seconds:
        known = AS_OLD_AS_THE_LEDGER if "trait" in question.kind + question.path else ""
        if "class" in question.kind:
            known = AS_OLD_AS_THE_LEDGER
        kind = f"{question.kind}: last-modified"
        yield Difference(kind, question.path, "last-modified", one, other, known)


def _just_now(answer: Answer) -> bool:
    return (
        answer.modified is not None
        and answer.date is not None
        and abs(answer.date - answer.modified) <= NOW_SECONDS
    )


def _of_candidates(
    question: Question, theirs: Any, ours: Any, around: Circumstances
) -> Iterator[Difference]:
    one, other = (_candidates(value) for value in (theirs, ours))
    path = question.path
    for candidate in sorted(one - other, key=repr):
        known = _why_only_theirs(candidate, question, around)
        kind = "candidates: only of the original"
        yield Difference(kind, path, "allocation_requests", _shown(candidate), ABSENT, known)
    for candidate in sorted(other - one, key=repr):
        known = _why_only_ours(candidate, question, around)
        kind = "candidates: only of Moorage"
        yield Difference(kind, path, "allocation_requests", ABSENT, _shown(candidate), known)
    left, right = (_plain(value["provider_summaries"], "", []) for value in (theirs, ours))
    if one != other:
        # Which providers are summed up follows from the candidates.
        both = left.keys() & right.keys()
        left, right = ({key: of[key] for key in both} for of in (left, right))
    for at, before, after in walk(left, right):
        kind = f"candidates: provider_summaries/{'/'.join(map(collapsed, at))}"
        known = _why_capacity(at, before, after, around) if at[-1] == "capacity" else ""
        yield Difference(kind, path, f"/{'/'.join(at)}", before, after, known)


def _why_capacity(at: tuple[str, ...], theirs: Any, ours: Any, around: Circumstances) -> str:
    if at[0] in around.closed:
        return NOT_OFFERED
    near = abs(theirs - ours) <= 1 + ROUNDING * max(theirs, ours)
    return ROUNDED if at[0] in around.rounded and near else ""


Candidate = tuple[
    frozenset[tuple[str, frozenset[tuple[str, int]]]], frozenset[tuple[str, frozenset[str]]]
]
"""Amounts by provider and class, and the providers of each group."""


def _candidates(value: Any) -> set[Candidate]:
    return {
        (
            frozenset(
                (uuid, frozenset(of["resources"].items()))
                for uuid, of in one["allocations"].items()
            ),
            frozenset(
                (suffix, frozenset(uuids)) for suffix, uuids in one.get("mappings", {}).items()
            ),
        )
        for one in value["allocation_requests"]
    }


def _shown(candidate: Candidate) -> dict[str, Any]:
    return {
        "allocations": {uuid: dict(amounts) for uuid, amounts in sorted(candidate[0])},
        "mappings": {suffix: sorted(uuids) for suffix, uuids in sorted(candidate[1])},
    }


def _why_only_theirs(candidate: Candidate, question: Question, around: Circumstances) -> str:
    total: Counter[str] = Counter()
    for _, amounts in candidate[0]:
        total.update(dict(amounts))
    if question.groups > 1 and total != Counter(dict(question.amounts or ())):
        return OVERSIZED
    providers = {uuid for uuid, _ in candidate[0]}
    if providers & around.closed:
        return NOT_OFFERED
    return ROUNDED if providers & around.rounded else ""


def _why_only_ours(candidate: Candidate, question: Question, around: Circumstances) -> str:
    providers = {uuid for uuid, _ in candidate[0]}
    if question.groups > 1 and providers & around.sharing:
        return LOST
    return ROUNDED if providers & around.rounded else ""


def _plain(value: Any, prefix: str, respelled: list[str]) -> Any:
    """Return a value whose lists are objects by what tells their members apart."""
    if isinstance(value, dict):
        found = {}
        for key, of in value.items():
            if key == "href" and isinstance(of, str):
                found[key] = of.removeprefix(prefix)
            else:
                found[_key(key, respelled)] = _plain(of, prefix, respelled)
        return found
    if isinstance(value, list):
        return dict(_member(one, prefix, respelled) for one in value)
    return _key(value, respelled) if isinstance(value, str) else value


def _member(value: Any, prefix: str, respelled: list[str]) -> tuple[str, Any]:
    if isinstance(value, dict):
        name = next((value[name] for name in NAMED_AFTER if name in value), repr(value))
        return _key(str(name), respelled), _plain(value, prefix, respelled)
    return _key(str(value), respelled), True


def _key(text: str, respelled: list[str]) -> str:
    """Return a text; a UUID in the spelling that we use."""
    if _UUID.fullmatch(text) or not _UUID_LIKE.fullmatch(text):
        return text
    respelled.append(text)
    return str(_uuid(text))


def _uuid(text: str) -> UUID:
    return UUID(text.removeprefix("urn:uuid:"))


def walk(
    theirs: Any, ours: Any, at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield where two plain values differ, and the values there."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(theirs.keys() | ours.keys()):
            left, right = theirs.get(key, ABSENT), ours.get(key, ABSENT)
            if left is ABSENT or right is ABSENT:
                yield (*at, key), left, right
            else:
                yield from walk(left, right, (*at, key))
    elif theirs != ours:
        yield at, theirs, ours


def collapsed(key: str) -> str:
    """Return what a key stands for, so that differences of one kind have one name."""
    if _UUID.fullmatch(key):
        return "{uuid}"
    return "{name}" if _NAME.fullmatch(key) else key
