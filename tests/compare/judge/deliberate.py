"""The deliberate differences, each with its heading in docs/reference/placement.md.

A predicate examines the request and both answers, and is as narrow as possible: a difference that
it does not describe exactly stays a finding. This file has Moorage's different decisions; the
original's errors are in `defects`.
"""

import re
from urllib.parse import unquote

from moorage.faces.placement.input.bodies import EXPLAINED_BYTES_MAX
from tests.compare.exchange import Exchange
from tests.compare.generate.requests import NOTHING
from tests.compare.judge.defects import DEFECTS
from tests.compare.judge.differences import ABSENT, Difference
from tests.compare.judge.reading import groups, odd_uuids, odd_version, texts, words
from tests.compare.judge.reasons import DETAIL, REFUSED, Deliberate

TYPES_SINCE = 38
"""The first microversion at which usages are grouped by consumer type."""

MISSING = re.compile(
    r"Unable to allocate inventory: Inventory for '(?P<classes>[^']*)' on resource provider "
    r"'(?P<providers>[^']*)' invalid\."
)
ONE_FAULT = re.compile(
    r"Unable to allocate inventory: (Inventory|Unable to create allocation) for '(?P<name>[^']*)' "
    r"on resource provider '(?P<provider>[^']*)'.*"
)
IN_USE = re.compile(
    r"(update conflict: )?Inventory for '(?P<classes>[^']*)' on resource provider "
    r"'(?P<provider>[^']*)' in use\."
)
LISTS_OF_SETS = {
    "GET /traits": r"order /traits\[\]",
    "GET /resource_providers/{provider}/traits": r"order /traits\[\]",
    "GET /resource_providers/{provider}/aggregates": r"order /aggregates\[\]",
    "PUT /resource_providers/{provider}/aggregates": r"order /aggregates\[\]",
    "GET /allocation_candidates": r"order /provider_summaries/[^/]+/traits\[\]"
    r"|order /allocation_requests/0/mappings/[^/]*\[\]",
}
"""Where the original's order is that of a set, which differs between processes."""


def _other_spelling(exchange: Exchange, difference: Difference) -> bool:
    return bool(odd_uuids(exchange)) and not difference.aspect.startswith("header")


def _unknown_names(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference == Difference("status", 200, 400)
        and exchange.ask.what in ("GET /allocation_candidates", "GET /resource_providers")
        and "No such " in exchange.our_detail
        and not any(exchange.theirs.json().values())
    )


def _browser(exchange: Exchange, difference: Difference) -> bool:
    accept = dict(exchange.ask.headers).get("Accept", "")
    return (
        exchange.ask.path == "/"
        and exchange.ours.status == 303
        and accept.lower().startswith("text/html")
        and "*/*" in accept
    )


def _empty_name(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference == Difference("status", 200, 400)
        and exchange.ask.what == "PUT /resource_providers/{provider}"
        and isinstance(exchange.body, dict)
        and exchange.body.get("name") == ""
    )


def _twice(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.ours.status == 400
        and difference.aspect in REFUSED
        and "is given more than once" in exchange.our_text
        and exchange.ask.body is not NOTHING
    )


def _nul(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.ours.status == 400
        and difference.aspect in REFUSED
        and any("\0" in unquote(word) for word in words(exchange))
        and bool(re.search(r"contains( the character)? NUL", exchange.our_text))
    )


def _media_type(exchange: Exchange, difference: Difference) -> bool:
    said = dict(exchange.ask.headers).get("Content-Type", "")
    kind = said.partition(";")[0]
    return (
        difference.aspect == "status"
        and difference.theirs == 415
        and kind != "application/json"
        and kind.strip().lower() == "application/json"
    )


def _versions(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect in ("status", DETAIL)
        and exchange.ours.status == 400
        and odd_version(exchange.ask)
        and (exchange.ask.method == "HEAD" or "invalid version string" in exchange.our_text)
    )


def _semicolons(exchange: Exchange, difference: Difference) -> bool:
    separates = any(";" in piece for piece in exchange.ask.query)
    return separates and not difference.aspect.startswith("header")


def _not_ascii(exchange: Exchange, difference: Difference) -> bool:
    return (
        difference.aspect in (DETAIL, "text")
        and exchange.theirs.status == exchange.ours.status
        and bool(re.search(r"%[89a-fA-F][0-9a-fA-F]", exchange.ask.target))
    )


def _only_commas(exchange: Exchange, difference: Difference) -> bool:
    said = dict(exchange.ask.headers).get("Accept", "")
    return (
        said != ""
        and said.strip(", ") == ""
        and difference.aspect in ("status", "text", "header content-type")
    )


def _beyond_json(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.theirs.status == exchange.ours.status == 400
        and difference.aspect == DETAIL
        and exchange.their_detail.startswith("JSON does not validate: ")
        and exchange.our_detail.startswith("Malformed JSON: ")
    )


def _vary(exchange: Exchange, difference: Difference) -> bool:
    return difference == Difference(
        "header vary", ABSENT, "openstack-api-version"
    ) and exchange.theirs.status in (400, 403, 404)


def _head(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.ask.method == "HEAD"
        and exchange.theirs.status == exchange.ours.status >= 400
        and difference.aspect == "header content-type"
        and difference.theirs == "text/html; charset=UTF-8"
        and difference.ours in ("application/json", "text/plain; charset=UTF-8")
    )


def _order_of_sets(exchange: Exchange, difference: Difference) -> bool:
    pattern = LISTS_OF_SETS.get(exchange.ask.what)
    if pattern is None or not re.fullmatch(pattern, difference.aspect):
        return any(
            applies(exchange, difference)
            for applies in (_one_of_several_uuids, _one_of_several_suffixes, _one_of_several_traits)
        )
    standard = [name for name in difference.ours if not name.startswith("CUSTOM_")]
    return "mappings" in difference.aspect or standard == sorted(standard)


def _order_of_summaries(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.ask.what == "GET /allocation_candidates"
        and difference.aspect == "order /provider_summaries{}"
        and len(groups(exchange.ask)) > 1
    )


def _order_of_types(exchange: Exchange, difference: Difference) -> bool:
    return (
        exchange.ask.what == "GET /usages"
        and difference.aspect == "order /usages{}"
        and (exchange.ask.minor or 0) >= TYPES_SINCE
    )


def _order_of_classes(exchange: Exchange, difference: Difference) -> bool:
    theirs, ours = IN_USE.fullmatch(exchange.their_detail), IN_USE.fullmatch(exchange.our_detail)
    return (
        difference.aspect == DETAIL
        and theirs is not None
        and ours is not None
        and theirs["provider"] == ours["provider"]
        and sorted(theirs["classes"].split(", ")) == sorted(ours["classes"].split(", "))
    )


def _which_inventory(exchange: Exchange, difference: Difference) -> bool:
    theirs = MISSING.fullmatch(exchange.their_detail)
    ours = ONE_FAULT.fullmatch(exchange.our_detail)
    if difference.aspect != DETAIL or theirs is None or ours is None:
        return False
    said = set(texts(exchange.body))
    several = "," in theirs["classes"] + theirs["providers"]
    return several and {ours["name"], ours["provider"]} <= said


def _one_of_several_uuids(exchange: Exchange, difference: Difference) -> bool:
    """The original names any wrong UUID of a list, Moorage the first."""
    stem = (
        "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s)"
    )
    theirs, ours = exchange.their_detail, exchange.our_detail
    return (
        difference.aspect == DETAIL
        and theirs.startswith(stem)
        and ours.startswith(stem)
        and any(
            {theirs.partition(" Got: ")[2], ours.partition(" Got: ")[2]} <= set(value.split(","))
            for value in (value.lstrip("!").removeprefix("in:") for _, value in exchange.ask.pairs)
        )
    )


def _one_of_several_suffixes(exchange: Exchange, difference: Difference) -> bool:
    """The original lists suffixes, known and unknown, in any order."""
    theirs, ours = exchange.their_detail, exchange.our_detail
    return (
        difference.aspect == DETAIL
        and theirs.startswith("Real suffixes should be specified in `same_subtree`: ")
        and _listed(theirs) == _listed(ours)
    )


UNKNOWN_TRAIT = re.compile(r"(.*\bNo such trait\(s\): )(.+)\.\s*", re.DOTALL)


def _one_of_several_traits(exchange: Exchange, difference: Difference) -> bool:
    """The original names any unknown trait of `in:A,B`, Moorage the first by name."""
    theirs = UNKNOWN_TRAIT.fullmatch(exchange.their_detail)
    ours = UNKNOWN_TRAIT.fullmatch(exchange.our_detail)
    if difference.aspect != DETAIL or theirs is None or ours is None or theirs[1] != ours[1]:
        return False
    lists = (value.removeprefix("in:").split(",") for _, value in exchange.ask.pairs)
    return any({theirs[2], ours[2]} <= set(names) for names in lists)


def _listed(text: str) -> tuple[str, list[list[str]]]:
    """Return a text without its lists, and the sorted lists."""
    lists = [sorted(each.split(", ")) for each in re.findall(r"\[(.*?)\]", text)]
    return re.sub(r"\[.*?\]", "[]", text), lists


def _whole_floats(exchange: Exchange, difference: Difference) -> bool:
    """4.0 is an integer in JSON Schema, and the original repeats it as it was sent."""
    theirs, ours = exchange.their_detail, exchange.our_detail
    return (
        difference.aspect == DETAIL
        and theirs.startswith("consumer generation conflict - ")
        and _but_got(theirs) == _but_got(ours)
    )


def _but_got(text: str) -> str:
    """Return a text with the sent number in a uniform format."""
    return re.sub(r"(?<=but got )[-+.e0-9]+", lambda sent: repr(float(sent[0])), text)


def _long_bodies(exchange: Exchange, difference: Difference) -> bool:
    sent = exchange.ask.bytes(exchange.known).partition(b"\r\n\r\n")[2]
    return (
        difference.aspect == DETAIL
        and len(sent) > EXPLAINED_BYTES_MAX
        and any(
            exchange.their_detail.startswith(begin) and exchange.our_detail.startswith(begin)
            for begin in ("JSON does not validate: ", "Malformed JSON: ")
        )
    )


CHOICES = [
    Deliberate("UUID spellings", _other_spelling, forks=True),
    Deliberate("Unknown names in queries", _unknown_names),
    Deliberate("Browsers at the root", _browser),
    Deliberate("Empty provider names", _empty_name, forks=True),
    Deliberate("Duplicate keys", _twice, forks=True),
    Deliberate("NUL characters", _nul, forks=True),
    Deliberate("Media type spellings", _media_type, forks=True),
    Deliberate("Microversion spellings", _versions, forks=True),
    Deliberate("Semicolons in queries", _semicolons),
    Deliberate("Non-ASCII addresses", _not_ascii),
    Deliberate("Empty Accept lists", _only_commas, forks=True),
    Deliberate("Values beyond JSON", _beyond_json),
    Deliberate("Vary on every response", _vary),
    Deliberate("HEAD requests", _head),
    Deliberate("Order of sets", _order_of_sets),
    Deliberate("Order of provider summaries", _order_of_summaries),
    Deliberate("Order of consumer types", _order_of_types),
    Deliberate("Order of classes in use", _order_of_classes),
    Deliberate("Missing inventories", _which_inventory),
    Deliberate("Errors in long bodies", _long_bodies),
    Deliberate("Whole numbers written as fractions", _whole_floats),
]

DELIBERATE = [*CHOICES, *DEFECTS]


def deliberate_of(exchange: Exchange, difference: Difference) -> Deliberate | None:
    """Return the reason for a difference; None if there is none or Moorage has a server error."""
    if exchange.ours.status >= 500:
        return None
    return next((one for one in DELIBERATE if one.applies(exchange, difference)), None)
