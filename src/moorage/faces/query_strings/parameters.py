"""The query parameters of each route, their microversions and formats.

Source: Placement API reference, request parameters in query.
"""

import re
from functools import cache
from typing import Any, NamedTuple

from moorage.core.ledger.requests import SUFFIX_PATTERN
from moorage.core.limits import IDENTIFIER_LENGTH_MAX
from moorage.core.texts import NAME_PATTERN
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.query_strings.schema_errors import Schema, query_explanation
from moorage.faces.query_strings.uuids import is_dashed

Pairs = list[tuple[str, str]]

GROUPS_SINCE = 25
"""First microversion whose candidate requests may have suffixed groups."""

VERBOSE_SUFFIX_SINCE = 33
"""First microversion whose suffixes may contain letters."""

_STRING: Schema = {"type": "string"}
_UUID: Schema = {"type": "string", "format": "uuid"}
_TEXT: Schema = {"type": ["string"]}
"""Equivalent to `_STRING`; error messages quote it in this spelling."""
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": IDENTIFIER_LENGTH_MAX}
_LIMIT: Schema = {
    "type": ["integer", "string"],
    "pattern": "^[1-9][0-9]*$",
    "minimum": 1,
    "minLength": 1,
}
_CONSUMER_TYPE: Schema = {
    "type": "string",
    "pattern": f"{NAME_PATTERN}|^all$|^unknown$",
    "minLength": 1,
    "maxLength": IDENTIFIER_LENGTH_MAX,
}


class Parameter(NamedTuple):
    """One parameter: its name, the versions that know it, and a JSON schema for its value."""

    name: str
    since: int
    schema: Schema = _STRING
    until: int = 1_000
    required: bool = False
    suffixed: bool = False
    """Any group's suffix may follow the name."""


KNOWN: dict[str, tuple[Parameter, ...]] = {
    "providers": (
        Parameter("name", 0),
        Parameter("uuid", 0, _UUID),
        Parameter("member_of", 3),
        Parameter("resources", 4),
        Parameter("in_tree", 14, _UUID),
        Parameter("required", 18),
    ),
    "traits": (Parameter("name", 6), Parameter("associated", 6)),
    "usages": (
        Parameter("project_id", 9, _NAME, required=True),
        Parameter("user_id", 9, _NAME),
        Parameter("consumer_type", 38, _CONSUMER_TYPE),
    ),
    "candidates": (
        Parameter("resources", 10, until=GROUPS_SINCE - 1, required=True),
        Parameter("limit", 16, _LIMIT),
        Parameter("required", 17, _TEXT, until=GROUPS_SINCE - 1),
        Parameter("member_of", 21, _TEXT, until=GROUPS_SINCE - 1),
        Parameter("resources", GROUPS_SINCE, suffixed=True),
        Parameter("required", GROUPS_SINCE, suffixed=True),
        Parameter("member_of", GROUPS_SINCE, suffixed=True),
        Parameter("in_tree", 31, suffixed=True),
        Parameter("group_policy", GROUPS_SINCE, {"type": "string", "enum": ["none", "isolate"]}),
        Parameter("root_required", 35, _TEXT),
        Parameter("same_subtree", 36, _TEXT),
    ),
}
"""The parameters of each route that reads its query string, by the listed resource."""


def suffix_pattern(version: int) -> str:
    """Return the pattern of a group's suffix."""
    return SUFFIX_PATTERN if version >= VERBOSE_SUFFIX_SINCE else "[1-9][0-9]*"


def check(pairs: Pairs, route: str, version: int) -> None:
    """Raise ProblemError 400 unless all parameters are known to the route and well-formed."""
    schema = _schema(route, version)
    values = dict(pairs)
    if all(name in values for name in schema.get("required", ())) and all(
        _fits(name, value, schema) for name, value in pairs
    ):
        return
    fault = next((pair for pair in pairs if not _fits(*pair, schema)), None)
    if fault is not None:
        values[fault[0]] = fault[1]
    reason = query_explanation(values, schema) or f"{fault} is not understood"
    raise ProblemError(400, f"Invalid query string parameters: {reason}")


@cache
def _schema(route: str, version: int) -> Schema:
    now = [parameter for parameter in KNOWN[route] if parameter.since <= version <= parameter.until]
    suffix = suffix_pattern(version)
    schema: Schema = {
        "type": "object",
        "properties": {each.name: each.schema for each in now if not each.suffixed},
    }
    # Error messages quote the schema, so empty members or another order would change them.
    if required := [each.name for each in now if each.required]:
        schema["required"] = required
    schema["additionalProperties"] = False
    suffixed = {f"^{each.name}({suffix})?$": each.schema for each in now if each.suffixed}
    if suffixed:
        schema["patternProperties"] = suffixed
    return schema


def _fits(name: str, value: str, schema: Schema) -> bool:
    rule = schema["properties"].get(name)
    if rule is None:
        if name.endswith("\n"):  # "$" would let it pass
            return False
        rule = next(
            (
                rule
                for key, rule in schema.get("patternProperties", {}).items()
                if re.search(key, name)
            ),
            None,
        )
    return rule is not None and _value_fits(value, rule)


def _value_fits(value: str, rule: dict[str, Any]) -> bool:
    if not rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value)):
        return False
    if "format" in rule and not is_dashed(value):
        return False
    if "pattern" in rule and (value.endswith("\n") or not re.search(rule["pattern"], value)):
        return False
    return "enum" not in rule or value in rule["enum"]
