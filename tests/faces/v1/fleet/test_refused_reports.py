"""Reports that are refused: amounts, generations, consumers, failures."""

from collections.abc import Callable
from typing import Any

import pytest

from moorage.core.limits import (
    REPORTED_CONSUMERS_MAX,
)
from tests.faces.v1.fleet.machine import FAILURE, PAGES, Machine, check_refused

HUGE = 2**31


def reported(machine: Machine, amount: Any) -> dict[str, Any]:
    """Return the next report with this amount."""
    return machine.report_body(actual={machine.part: {PAGES: amount}})


def failed(machine: Machine, **members: Any) -> dict[str, Any]:
    """Return the next report with a failure that has these members."""
    return machine.report_body(failure={**FAILURE, **members})


Body = Callable[[Machine], Any]
LIMIT = ("from 0 to 2147483647",)

REPORTS: dict[str, tuple[Body, int, str, tuple[str, ...]]] = {
    "negative amount": (lambda one: reported(one, -1), 400, "invalid", LIMIT),
    "huge amount": (lambda one: reported(one, HUGE), 400, "invalid", LIMIT),
    "endless amount": (lambda one: reported(one, 10**30), 400, "invalid", LIMIT),
    "half an amount": (lambda one: reported(one, 0.5), 400, "refused", ("`int`, got `float`",)),
    "no amount": (lambda one: reported(one, None), 400, "refused", ("`int`, got `null`",)),
    "an amount as text": (lambda one: reported(one, "1"), 400, "refused", ("`int`, got `str`",)),
    "a huge generation": (
        lambda one: one.report_body(report_generation=2**53 + 1),
        400,
        "invalid",
        ("too far above", "continue with report 2"),
    ),
    "a negative generation": (
        lambda one: one.report_body(report_generation=-1),
        409,
        "stale_report",
        ("continue with report 2",),
    ),
    "negative desired generation": (
        lambda one: one.report_body(desired_generation_seen=-1),
        400,
        "invalid",
        ("desired_generation_seen must be from 0 to 9007199254740992",),
    ),
    "huge desired generation": (
        lambda one: one.report_body(desired_generation_seen=10**30),
        400,
        "invalid",
        ("desired_generation_seen must be from 0 to 9007199254740992",),
    ),
    "another phase": (
        lambda one: one.report_body(phase="ready"),
        400,
        "refused",
        ("Invalid enum value 'ready'",),
    ),
    "a provider that is none": (
        lambda one: one.report_body(actual={"x": {PAGES: 1}}),
        400,
        "invalid",
        ("actual must be a UUID",),
    ),
    "a consumer that is none": (
        lambda one: one.report_body(consumers=["x"]),
        400,
        "invalid",
        ("consumers must be a UUID",),
    ),
    "too many consumers": (
        lambda one: one.report_body(
            consumers=[f"{n:08x}-cccc-4ccc-8ccc-cccccccccccc" for n in range(10_001)]
        ),
        400,
        "invalid",
        (f"at most {REPORTED_CONSUMERS_MAX} consumers", "omit"),
    ),
    "a failure without code": (
        lambda one: failed(one, code=""),
        400,
        "invalid",
        ("code of a failure has 1 to 255 characters",),
    ),
    "a failure with a long message": (
        lambda one: failed(one, message="x" * 1_001),
        400,
        "invalid",
        ("at most 1000 characters",),
    ),
    "a failure for terminals": (
        lambda one: failed(one, message="\x07"),
        400,
        "invalid",
        ("must not contain U+0007",),
    ),
    "negative attempts": (
        lambda one: failed(one, attempts=-1),
        400,
        "invalid",
        ("attempts must be from 0",),
    ),
    "a retry in the past": (
        lambda one: failed(one, next_retry_in=-1),
        400,
        "invalid",
        ("next_retry_in must be from 0 to 31622400 s, not -1 s",),
    ),
    "a retry that never comes": (
        lambda one: failed(one, next_retry_in=1e308),
        400,
        "invalid",
        ("next_retry_in must be from 0 to 31622400 s",),
    ),
    "a failure after all times": (
        lambda one: failed(one, since="9999-12-31T23:59:59-12:00"),
        400,
        "invalid",
        ("since must be in the years 1 to 9999",),
    ),
    "a failure before all times": (
        lambda one: failed(one, since="0001-01-01T00:00:00+12:00"),
        400,
        "invalid",
        ("since must be in the years 1 to 9999",),
    ),
    "a failure at no time": (
        lambda one: failed(one, since="yesterday"),
        400,
        "refused",
        ("$.failure.since",),
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_reports(machine: Machine, name: str) -> None:
    """Each invalid report is refused whole, with a message that names the member."""
    body, status, code, words = REPORTS[name]
    before = machine.stored()
    answer = machine.send("PUT", "report", body(machine))
    check_refused(machine, answer, before, status, code, *words)
