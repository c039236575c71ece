"""Label and field selectors."""

import re
from collections.abc import Callable
from typing import Any

from tests.support.kubernetes_double.status import bad_request

Object = dict[str, Any]
Selects = Callable[[Object], bool]

SET = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<not>not)?in\s*\((?P<values>[^)]*)\)|(?P<rest>[^,]+)")
MEMBERS = re.compile(r"([\w.-]+)\s*(!=|==|=)\s*(.*)")


def selects(labels: str, fields: str) -> Selects:
    """Return whether an object fits both selectors. Raises Refused."""
    tests = [*_label_tests(labels), *_field_tests(fields)]
    return lambda found: all(test(found) for test in tests)


def fits(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Return whether labels fit a LabelSelector of an object; an empty one fits all."""
    selector = selector or {}
    for name, value in selector.get("matchLabels", {}).items():
        if labels.get(name) != value:
            return False
    for term in selector.get("matchExpressions", ()):
        held, values = labels.get(term["key"]), term.get("values", [])
        right = {
            "In": held in values,
            "NotIn": held not in values,
            "Exists": held is not None,
            "DoesNotExist": held is None,
        }
        if not right[term["operator"]]:
            return False
    return True


def _labels(found: Object) -> dict[str, str]:
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    return labels


def _label_tests(text: str) -> list[Selects]:
    return [_label_test(found) for found in SET.finditer(text) if found[0].strip()]


def _label_test(found: re.Match[str]) -> Selects:
    if key := found["key"]:
        values = {value.strip() for value in found["values"].split(",")}
        if found["not"]:
            return lambda one: _labels(one).get(key) not in values
        return lambda one: _labels(one).get(key) in values
    text = found["rest"].strip()
    for sign in ("!=", "==", "="):
        name, there, value = (part.strip() for part in text.partition(sign))
        if there and sign == "!=":
            return lambda one: _labels(one).get(name) != value
        if there:
            return lambda one: _labels(one).get(name) == value
    if text.startswith("!"):
        return lambda one: text[1:].strip() not in _labels(one)
    return lambda one: text in _labels(one)


def _field_tests(text: str) -> list[Selects]:
    return [_field_test(part.strip()) for part in text.split(",") if part.strip()]


def _field_test(text: str) -> Selects:
    found = MEMBERS.fullmatch(text)
    if found is None:
        raise bad_request(f"invalid field selector: {text}")
    name, sign, wanted = found.groups()
    allowed = (
        "metadata.",
        "involvedObject.",
        "regarding.",
        "type",
        "reason",
        "reportingController",
    )
    if not name.startswith(allowed):
        raise bad_request(f"field label not supported: {name}")
    return lambda one: (_field(one, name) == wanted) is (sign != "!=")


def _field(found: Any, name: str) -> str:
    for part in name.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)
