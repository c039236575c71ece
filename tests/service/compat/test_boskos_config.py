"""Boskos' configuration file: what it may contain, and how errors are reported."""

import pytest

from moorage.core.admission.model import Growth
from moorage.core.admission.slot_config import ResourceType
from moorage.service.compat.boskos_config import ConfigFileError, slot_config_parse

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def problem(text: str) -> str:
    """Return the error of a configuration."""
    with pytest.raises(ConfigFileError) as found:
        slot_config_parse(text)
    return str(found.value)


def entries(*lines: str) -> str:
    """A configuration with these entries, each in one line."""
    return "resources:\n" + "".join(f"- {line}\n" for line in lines)


def test_a_complete_configuration() -> None:
    """Static and dynamic types, with anchors, comments, unknown keys and keys in other cases."""
    text = """
defaults: &free free
Resources:
- type: static   # with names
  state: *free
  names: [a-1, "2.b"]
  unknown: {whatever: [it, is]}
- TYPE: bare
  names:
  - "007"
- type: dynamic
  state: dirty
  min-count: 1
  Max-Count: 3
  lifespan: 1h30m
  config: {type: x, content: y}
  needs: {static: 0, bare: 0}
- type: counted
  max-count: 1
  lifespan: 1500000000
"""
    assert slot_config_parse(text).entries == (
        ResourceType("static", "free", ("a-1", "2.b")),
        ResourceType("bare", "free", ("007",)),
        ResourceType("dynamic", "dirty", (), Growth(1, 3, "dirty", 5_400_000_000)),
        ResourceType("counted", "free", (), Growth(0, 1, "free", 1_500_000)),
    )


@pytest.mark.parametrize("text", ["", "resources: []", "resources:", "other: 1", "[]", "just text"])
def test_empty(text: str) -> None:
    """A configuration without resources is refused."""
    assert problem(text) == "empty config"


CASES = {
    "upper-case names": (
        ["{type: t, names: [Name, ok_1]}"],
        f"[.0.names.0(Name) is invalid: [{SUBDOMAIN}], .0.names.1(ok_1) is invalid: [{SUBDOMAIN}]]",
    ),
    "a long name": (
        ["{type: t, names: [" + "a" * 254 + "]}"],
        f".0.names.0({'a' * 254}) is invalid: [must be no more than 253 characters]",
    ),
    "a name twice": (["{type: t, names: [a, a]}"], ".0.names.1(a) is a duplicate"),
    "a name in two types": (
        ["{type: t, names: [a]}", "{type: u, names: [b, a]}"],
        ".1.names.1(a) is a duplicate",
    ),
    "no type": (["{names: [a]}"], ".0.type: must be set"),
    "a type twice": (
        ["{type: t, names: [a]}", "{type: t, names: [b]}"],
        ".1.type.t already exists",
    ),
    "no maximum": (["{type: t}"], ".0.max-count: must be >0"),
    "a minimum above the maximum": (
        ["{type: t, min-count: 3, max-count: 2}"],
        ".0.min-count: must be <= .0.max-count",
    ),
    "static and dynamic at once": (
        ["{type: t, names: [a], min-count: 1, max-count: 2}"],
        "[.0.min-count must be unset when the names property is set, "
        ".0.max-count must be unset when the names property is set]",
    ),
    "needs of nothing": (
        ["{type: t, max-count: 2, needs: {u: 1}}"],
        "[need for resource u that does not exist, not enough resource of type u for provisioning]",
    ),
    "needs of too much": (
        ["{type: t, max-count: 2, needs: {u: 2}}", "{type: u, names: [a, b, c]}"],
        "not enough resource of type u for provisioning",
    ),
    "no duration": (
        ["{type: t, max-count: 2, lifespan: soon}"],
        '.0.lifespan: time: invalid duration "soon"',
    ),
    "no number": (["{type: t, max-count: many}"], ".0.max-count: must be a whole number"),
    "no list": (["{type: t, names: a}"], ".0.names: must be a list"),
}


@pytest.mark.parametrize("name", CASES)
def test_faults(name: str) -> None:
    """Every error is reported with its place; several errors are in brackets."""
    lines, expected = CASES[name]
    assert problem(entries(*lines)) == expected


def test_needs_that_are_met() -> None:
    """Dynamic types count with their maximum."""
    text = entries("{type: t, max-count: 2, needs: {u: 2}}", "{type: u, max-count: 4}")
    assert [entry.pool for entry in slot_config_parse(text).entries] == ["t", "u"]


@pytest.mark.parametrize("text", ["a: [", "\tb: 1", "- !!python/object:os.system x\n- {", "\x00"])
def test_no_yaml(text: str) -> None:
    """Text that is not YAML is refused with a message of one line."""
    said = problem(text)
    assert said.startswith("it is not YAML: ") and "\n" not in said


def test_tags_create_no_objects() -> None:
    """A tag that names a Python object is ignored."""
    text = "resources:\n- type: !!python/object/apply:os.getcwd []\n  names: [a]\n"
    assert problem(text) == ".0.type: must be set"
