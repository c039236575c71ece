"""Queries for candidates as people have them: out of a log, a command line, or an address bar."""

import re
from collections import Counter
from http import HTTPStatus

from moorage.core.ledger.requests import CandidateQuery
from moorage.faces.query_strings.parameters import KNOWN, suffix_pattern
from moorage.faces.query_strings.queries import candidate_query
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.web import Limits, RefusalError, query_parse

LATEST = 39
"""The minor microversion by which pasted queries are read: it knows every parameter."""

REPEATABLE = re.compile("required|member_of|same_subtree|required[^=]+|member_of[^=]+")
"""Parameters of which every value counts."""

_QUERY = r"(?P<query>[^\s\"'`<>#]+)"
_ADDRESS = re.compile(rf"allocation_candidates\?{_QUERY}")
_ANY_ADDRESS = re.compile(rf"(?:^|\s)[\"'`<]?(?:https?://|/)?[^\s\"'?=]*\?{_QUERY}")

_PUNCTUATION = ",.;:)]}\\"
"""Characters after an address in a sentence. No value of a parameter ends with them."""

_ESCAPED = (("&amp;", "&"), ("\\u0026", "&"), ("\\&", "&"), ("\\!", "!"))
"""How pages, JSON and shells write what has a meaning there."""

_PARAMETERS = [each for each in KNOWN["candidates"] if each.since <= LATEST <= each.until]
_KNOWN = re.compile(
    "|".join(
        f"{each.name}({suffix_pattern(LATEST)})?" if each.suffixed else each.name
        for each in _PARAMETERS
    )
)
_NAMES = ", ".join(
    f"{each.name} (also with a suffix)" if each.suffixed else each.name for each in _PARAMETERS
)

EXPECTED = "Expected a query string such as resources=VCPU:4,MEMORY_MB:8192&required=CUSTOM_RACK_7"


def query_string_in(text: str) -> str:
    """Return the query string in a pasted text.

    The text is a query string, with or without a question mark; an address; or a line with an
    address, as logs and `openstack --debug` have it.
    """
    found = _ADDRESS.search(text) or _ANY_ADDRESS.search(text)
    plain = found["query"] if found else text.strip().strip("\"'`").lstrip("?")
    if found:
        plain = plain.rstrip(_PUNCTUATION)
    for written, meant in _ESCAPED:
        plain = plain.replace(written, meant)
    return plain


def pasted_query(text: str, limits: Limits) -> CandidateQuery:
    """Parse a pasted query; every parameter counts, or is refused by name.

    Without `group_policy` it is `none`.

    Raises RefusalError 400 and 414, Error.
    """
    if len({*_ADDRESS.findall(text)}) > 1:
        raise _refused("The text has several queries: pass one of them.")
    raw = query_string_in(text).encode()
    names = Counter(name for name, _ in query_parse(raw, limits))
    repeated = sorted(
        name for name, count in names.items() if count > 1 and not REPEATABLE.fullmatch(name)
    )
    if not names:
        raise _refused(f"The query is empty. {EXPECTED}.")
    if unknown := sorted(name for name in names if not _KNOWN.fullmatch(name)):
        raise _refused(f"{', '.join(unknown)}: unknown. The parameters are {_NAMES}.")
    if repeated:
        raise _refused(
            f"{', '.join(repeated)}: given more than once, but only one value would count."
        )
    if "group_policy" not in names:
        raw += b"&group_policy=none"
    try:
        return candidate_query(raw, LATEST, limits).query
    except ProblemError as problem:
        # The rest of the text is the schema that the value violates.
        raise _refused(problem.detail.partition("\n\n")[0]) from None


def _refused(reason: str) -> RefusalError:
    return RefusalError(HTTPStatus.BAD_REQUEST, reason)
