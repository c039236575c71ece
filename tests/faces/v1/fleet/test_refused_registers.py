"""Registers that are refused: texts, parts, classes, amounts; each message names the member."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from moorage.core.limits import (
    AGENT_PARTS_MAX,
    PART_CLASSES_MAX,
)
from tests.faces.v1.fleet.machine import PAGES, Machine, check_refused

HUGE = 2**31


def parts(machine: Machine, **members: Any) -> dict[str, Any]:
    """Return a register whose class has these members."""
    one = {"provider": machine.part, "name": "numa0"}
    return machine.register_body(parts=[{**one, "classes": {PAGES: {"eligible": 1, **members}}}])


def many(machine: Machine, count: int) -> dict[str, Any]:
    """Return a register with this many parts."""
    names = [f"part{n}" for n in range(count)]
    listed = [{"provider": machine.part_id(name), "name": name, "classes": {}} for name in names]
    return machine.register_body(parts=listed)


def wide(machine: Machine, count: int) -> dict[str, Any]:
    """Return a register of one part with this many classes."""
    one = {"provider": machine.part_id("wide"), "name": "wide"}
    classes = {f"CUSTOM_{n}": {"eligible": 1} for n in range(count)}
    return machine.register_body(parts=[{**one, "classes": classes}])


def part(machine: Machine, **members: Any) -> dict[str, Any]:
    """Return a register of one part with these members."""
    one = {"provider": machine.part, "name": "numa0", "classes": {}}
    return machine.register_body(parts=[{**one, **members}])


def below_itself(machine: Machine) -> dict[str, Any]:
    """Return a register of two new parts, each below the other."""
    one, other = (machine.part_id(name) for name in ("x", "y"))
    return machine.register_body(
        parts=[
            {"provider": one, "name": "x", "parent": other, "classes": {}},
            {"provider": other, "name": "y", "parent": one, "classes": {}},
        ]
    )


Body = Callable[[Machine], Any]
LIMIT = ("from 0 to 2147483647",)

REGISTERS: dict[str, tuple[Body, int, str, tuple[str, ...]]] = {
    "no boot id": (
        lambda one: one.register_body(boot_id=""),
        400,
        "invalid",
        ("boot_id must have 1 to 64 characters",),
    ),
    "a long boot id": (
        lambda one: one.register_body(boot_id="x" * 65),
        400,
        "invalid",
        ("boot_id must have 1 to 64 characters",),
    ),
    "a boot id for terminals": (
        lambda one: one.register_body(boot_id="a\x1b[31m"),
        400,
        "invalid",
        ("boot_id must not contain U+001B",),
    ),
    "a boot id that is a number": (
        lambda one: one.register_body(boot_id=7),
        400,
        "refused",
        ("Expected `str`, got `int`", "$.boot_id"),
    ),
    "no host name": (
        lambda one: one.register_body(facts={"hostname": ""}),
        400,
        "invalid",
        ("hostname must have 1 to 200 characters",),
    ),
    "a long host name": (
        lambda one: one.register_body(facts={"hostname": "x" * 201}, parts=[]),
        400,
        "invalid",
        ("hostname must have 1 to 200 characters",),
    ),
    "a host name that leaves no room for a part's": (
        lambda one: one.register_body(facts={"hostname": "x" * 200}),
        400,
        "invalid",
        ("more than 200 characters", "shorten the name"),
    ),
    "a long kernel": (
        lambda one: one.register_body(facts={"hostname": "h", "kernel": "x" * 256}),
        400,
        "invalid",
        ("kernel must have 0 to 255 characters",),
    ),
    "no facts": (
        lambda one: {k: v for k, v in one.register_body().items() if k != "facts"},
        400,
        "refused",
        ("missing required field `facts`",),
    ),
    "a root that is none": (
        lambda one: one.register_body(root="x"),
        400,
        "invalid",
        ("root must be a UUID",),
    ),
    "a part without UUID": (
        lambda one: part(one, provider="x"),
        400,
        "invalid",
        ("parts.provider must be a UUID",),
    ),
    "a part with another UUID": (
        lambda one: part(one, provider=str(uuid4())),
        400,
        "invalid",
        ("must be", "version 5"),
    ),
    "a part without name": (
        lambda one: part(one, name=""),
        400,
        "invalid",
        ("1 to 63 characters",),
    ),
    "a part with a long name": (
        lambda one: part(one, name="x" * 64),
        400,
        "invalid",
        ("1 to 63 characters",),
    ),
    "a part listed twice": (
        lambda one: one.register_body(parts=part(one)["parts"] * 2),
        400,
        "invalid",
        ("listed twice", "omit one"),
    ),
    "a parent that is not listed": (
        lambda one: part(one, parent=str(uuid4())),
        422,
        "parent_unknown",
        ("neither the root nor a part", "list it"),
    ),
    "a part below itself": (below_itself, 400, "tree_loop", ("below itself", "correct")),
    "too many parts": (
        lambda one: many(one, AGENT_PARTS_MAX + 1),
        400,
        "limit_exceeded",
        ("at most 64 parts", "former"),
    ),
    "too many parts with those of before": (
        lambda one: many(one, AGENT_PARTS_MAX),
        400,
        "limit_exceeded",
        ("at most 64 parts, former ones included, not 65",),
    ),
    "too many classes": (
        lambda one: wide(one, PART_CLASSES_MAX + 1),
        400,
        "limit_exceeded",
        ("has 9 classes", "several parts"),
    ),
    "a class in lower case": (
        lambda one: part(one, classes={"custom_a": {"eligible": 1}}),
        400,
        "invalid",
        ("'custom_a'", "A-Z"),
    ),
    "a class with a long name": (
        lambda one: part(one, classes={"CUSTOM_" + "A" * 249: {"eligible": 1}}),
        400,
        "invalid",
        ("1 to 255 characters",),
    ),
    "negative eligible": (lambda one: parts(one, eligible=-1), 400, "invalid", LIMIT),
    "huge eligible": (lambda one: parts(one, eligible=HUGE), 400, "invalid", LIMIT),
    "endless eligible": (lambda one: parts(one, eligible=10**30), 400, "invalid", LIMIT),
    "eligible half": (
        lambda one: parts(one, eligible=1.5),
        400,
        "refused",
        ("Expected `int`, got `float`", "eligible"),
    ),
    "eligible true": (
        lambda one: parts(one, eligible=True),
        400,
        "refused",
        ("Expected `int`, got `bool`",),
    ),
    "no step": (
        lambda one: parts(one, step_size=0),
        400,
        "invalid",
        ("step_size", "from 1 to 2147483647"),
    ),
    "no unit": (
        lambda one: parts(one, max_unit=0),
        400,
        "invalid",
        ("max_unit", "from 1 to 2147483647"),
    ),
    "too many labels": (
        lambda one: one.register_body(labels={f"l{n}": "" for n in range(33)}),
        400,
        "invalid",
        ("at most 32 labels",),
    ),
    "a label without name": (
        lambda one: one.register_body(labels={"": "x"}),
        400,
        "invalid",
        ("1 to 63 characters",),
    ),
    "a label that is a number": (
        lambda one: one.register_body(labels={"a": 1}),
        400,
        "refused",
        ("$.labels",),
    ),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_registers(machine: Machine, name: str) -> None:
    """Each invalid register is refused whole, with a message that names the member."""
    body, status, code, words = REGISTERS[name]
    before = machine.stored()
    answer = machine.send("POST", "register", body(machine))
    check_refused(machine, answer, before, status, code, *words)
