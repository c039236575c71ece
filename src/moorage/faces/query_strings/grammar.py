"""The grammars within query parameters: resources, traits, aggregates, trees.

Source: Placement API reference; clients compare the texts of the refusals.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.requests import AggregateFilter, TraitFilter
from moorage.core.limits import MAX_INT, QUERY_TERMS_MAX
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.uuids import uuid_normal

FORBIDDEN_TRAITS_SINCE = 22
REPEATED_MEMBER_OF_SINCE = 24
FORBIDDEN_AGGREGATES_SINCE = 32
ANY_TRAITS_SINCE = 39

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


def resources_parse(text: str) -> dict[str, int]:
    """Parse `VCPU:2,MEMORY_MB:1024`."""
    if not text.strip():
        raise _bad_resources("empty string.")
    found = {}
    for term in _terms(text):
        parts = term.split(":")
        if len(parts) != 2:
            raise _bad_resources(f"{term}.")
        name, amount = parts
        found[name] = _amount(name, amount.strip())
    return found


def _bad_resources(got: str) -> ProblemError:
    return ProblemError(
        400,
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        f"?resources=VCPU:2,MEMORY_MB:1024. Got: {got}",
    )


def _amount(name: str, text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ProblemError(
            400, f"Requested resource {name} expected positive integer amount. Got: {text}."
        )
    amount = int(text)
    if amount < 1:
        raise ProblemError(400, f"Requested resource {name} requires amount >= 1. Got: {amount}.")
    return min(amount, MAX_INT + 1)  # beyond any inventory; keeps columns of integers small


class Traits(NamedTuple):
    """The parsed value of one or several `required` parameters."""

    required: tuple[frozenset[str], ...]
    forbidden: frozenset[str]

    def filter(self) -> TraitFilter:
        """Return it as the ledger's type."""
        return TraitFilter(self.required, self.forbidden)


def traits_parse(values: list[str], version: int) -> Traits:
    """Parse all `required` parameters of a group; before 1.39 only the last one counts."""
    required: list[frozenset[str]] = []
    forbidden: set[str] = set()
    for value in values if version >= ANY_TRAITS_SINCE else values[-1:]:
        one = trait_terms_parse(
            value, version >= FORBIDDEN_TRAITS_SINCE, version >= ANY_TRAITS_SINCE
        )
        required.extend(one.required)
        forbidden.update(one.forbidden)
    return Traits(tuple(required), frozenset(forbidden))


def trait_terms_parse(value: str, forbidden_known: bool, any_known: bool) -> Traits:
    """Parse `A,!B` or `in:A,B`; forms that the microversion does not know are refused."""
    if value.startswith("in:"):
        return _any_traits(value, any_known)
    form = "HW_CPU_X86_VMX,!CUSTOM_MAGIC" if forbidden_known else "HW_CPU_X86_VMX,CUSTOM_MAGIC"
    expected = f"Expected 'required' parameter value of the form: {form}. Got"
    terms = [term.strip() for term in _terms(value)]
    forbidden = frozenset(term.lstrip("!") for term in terms if term.startswith("!"))
    if not all(terms) or not all(forbidden):
        raise _bad_query(f"{expected} an empty trait in: {value}")
    if forbidden and not forbidden_known:
        raise _bad_query(f"{expected}: {value}")
    required = tuple(frozenset((term,)) for term in terms if not term.startswith("!"))
    return Traits(required, forbidden)


def _any_traits(value: str, known: bool) -> Traits:
    form = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'"
    if not known:
        raise _bad_query(f"{form} only supported since microversion 1.39. Got: {value}")
    terms = frozenset(term.strip() for term in _terms(value[len("in:") :]))
    if not all(terms):
        raise _bad_query(
            "Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC. "
            f"Got an empty trait in: {value}"
        )
    if any(term.startswith("!") for term in terms):
        raise _bad_query(f"{form} does not support forbidden traits. Got: {value}")
    return Traits((terms,), frozenset())


def aggregates_parse(values: list[str], version: int, suffix: str = "") -> AggregateFilter:
    """Parse all `member_of` parameters of a group."""
    if len(values) > 1 and version < REPEATED_MEMBER_OF_SINCE:
        raise ProblemError(400, f"Multiple member_of{suffix} parameters are not supported")
    required: list[frozenset[AggregateId]] = []
    forbidden: set[AggregateId] = set()
    for value in values:
        if "," in value and not value.startswith(("in:", "!in:")):
            raise ProblemError(
                400,
                "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' "
                f"keyword using the valid microversion. Got: {value}",
            )
        named = _aggregates(value.removeprefix("!"))
        if not value.startswith("!"):
            required.append(named)
        elif version < FORBIDDEN_AGGREGATES_SINCE:
            raise ProblemError(
                400,
                f"Forbidden member_of{suffix} parameters are not supported in the specified "
                "microversion",
            )
        else:
            forbidden.update(named)
    return AggregateFilter(tuple(required), frozenset(forbidden))


def _aggregates(text: str) -> frozenset[AggregateId]:
    found = set()
    for term in _terms(text[len("in:") :]) if text.startswith("in:") else [text]:
        normal = uuid_normal(term)
        if normal is None:
            raise _bad_query(
                f"Expected 'member_of' parameter to contain valid UUID(s). Got: {term}"
            )
        found.add(AggregateId(normal))
    return frozenset(found)


def in_tree_parse(text: str) -> ProviderId:
    """Parse the UUID of a provider in the requested tree."""
    normal = uuid_normal(text.strip())
    if normal is None:
        raise _bad_query(f"Expected 'in_tree' parameter to be a format of uuid. Got: {text}")
    return ProviderId(normal)


def conflicts(required: Iterable[frozenset[str]], forbidden: frozenset[str]) -> list[str]:
    """Return, as text, each set of required traits whose traits are all forbidden."""
    return [", ".join(sorted(wanted)) for wanted in required if wanted <= forbidden]


def _terms(text: str) -> list[str]:
    terms = text.split(",")
    if len(terms) > QUERY_TERMS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"A query parameter lists {len(terms)} terms; at most {QUERY_TERMS_MAX} are allowed.",
        )
    return terms


def _bad_query(reason: str) -> ProblemError:
    return ProblemError(400, f"Invalid query string parameters: {reason}")
