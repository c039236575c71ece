"""The messages of the agent are those of `wire/fleet.py`."""

from dataclasses import fields
from typing import Any, get_args

import msgspec
import pytest

from moorage.client.agent import api_types
from moorage.client.agent.api_types import (
    AliveAnswer,
    Failure,
    Observation,
    Orders,
    Part,
    SettledPlan,
    StartAnswer,
    alive_of,
    orders_of,
    start_of,
)
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.hugepages import part_name
from moorage.client.agent.protocol import PLAN, Machine, Protocol
from moorage.client.run.api_types import StrangeAnswerError
from moorage.wire import changes, enums
from moorage.wire import fleet as wire

PROVIDER = "8d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
ORDERS = wire.AgentOrders(
    report_generation=3,
    desired_generation=4,
    desired={PROVIDER: {"CUSTOM_A": 5}},
    ttl=10.0,
    next_in=5.5,
    directive="none",
)


def names(kind: Any) -> set[str]:
    """Return the names of the fields of a type of `wire`."""
    return {field.name for field in fields(kind)}


def test_fields_are_those_of_the_native_api() -> None:
    """Every field that is read or sent exists, and no field of an answer is ignored by mistake."""
    assert set(Orders._fields) == names(wire.AgentOrders)
    assert set(AliveAnswer._fields) == names(wire.AliveAnswer)
    assert set(StartAnswer._fields) <= names(wire.StartAnswer)
    assert set(Failure._fields) == names(wire.AgentFailure)
    assert set(SettledPlan._fields) <= names(changes.AgentPlan)
    assert get_args(enums.Directive) == api_types.DIRECTIVES
    assert get_args(enums.PlanOutcome) == api_types.OUTCOMES


def test_requests_are_those_of_the_native_api() -> None:
    """The server's strict decoder reads a register with every field."""
    machine = Machine("b", "host", "6.1", "1.0", PROVIDER, (("rack", "7"),))
    part = Part(PROVIDER, part_name(0), (("CUSTOM_A", 5),))
    asked = msgspec.convert(machine.body((part,)), wire.RegisterRequest, strict=True)
    assert asked == wire.RegisterRequest(
        boot_id="b",
        facts=wire.MachineFacts(hostname="host", kernel="6.1", version="1.0"),
        root=PROVIDER,
        labels={"rack": "7"},
        parts=[
            wire.AgentPart(
                provider=PROVIDER,
                name="numa0",
                classes={"CUSTOM_A": wire.EligibleClass(eligible=5, volatile=True)},
            )
        ],
    )


def test_reports_are_those_of_the_native_api() -> None:
    """A report and a sign of life have all fields, and no others."""
    protocol = Protocol(Machine("b", "host", "6.1", "1.0"), Backoff(1.0, 60.0))
    failure = Failure("c", "m", 1, 2.0, "2026-01-01T00:00:00+00:00")
    part = Part(PROVIDER, "numa0", (("CUSTOM_A", 5),))
    seen = Observation((part,), {PROVIDER: {"CUSTOM_A": 5}}, 4, True, failure, (PROVIDER,))
    protocol.observe(seen)
    kinds = {}
    for _ in range(3):
        now = 0.0 if not kinds else protocol.due_in(0.0)
        request = protocol.next_request(now or 0.0)
        assert request is not None
        kinds[request.kind] = request.body
        generation = request.body.get("report_generation", 3)
        answer = {**msgspec.to_builtins(ORDERS), "report_generation": generation}
        protocol.answered(answer, 0.0)
    assert set(kinds["register"]) == names(wire.RegisterRequest)
    assert {*kinds["report"], PLAN} == names(wire.ReportRequest)
    assert set(kinds["alive"]) == names(wire.AliveRequest)
    report = msgspec.convert(kinds["report"], wire.ReportRequest, strict=True)
    assert report.failure is not None
    assert report.failure.since.year == 2026


def test_answers_are_read() -> None:
    """Every field is converted."""
    orders = orders_of(msgspec.to_builtins(ORDERS))
    assert orders == Orders(3, 4, {PROVIDER: {"CUSTOM_A": 5}}, 10.0, 5.5, "none")
    beat = wire.AliveAnswer(desired_generation=4, ttl=10.0, next_in=5.5, directive="inert")
    assert alive_of(msgspec.to_builtins(beat)) == AliveAnswer(4, 10.0, 5.5, "inert")
    start = wire.StartAnswer(may_start=True, reason="r", needed={}, ahead={}, actual={})
    assert start_of(msgspec.to_builtins(start)) == StartAnswer(True, "r")


def test_what_is_missing_is_named() -> None:
    """The answer for a guest that must not start says how much is missing, and of what."""
    start = wire.StartAnswer(
        may_start=False,
        reason="not_there",
        needed={PROVIDER: {"CUSTOM_A": 5, "CUSTOM_B": 1}},
        ahead={PROVIDER: {"CUSTOM_A": 2, "CUSTOM_B": 0}},
        actual={PROVIDER: {"CUSTOM_A": 6, "CUSTOM_B": 1}},
    )
    text = "not_there: 6 CUSTOM_A are there; the consumer needs 5, consumers before it 2"
    assert start_of(msgspec.to_builtins(start)) == StartAnswer(False, text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("report_generation", None),
        ("report_generation", "3"),
        ("report_generation", True),
        ("desired_generation", -1),
        ("desired", []),
        ("desired", {PROVIDER: 5}),
        ("desired", {PROVIDER: {"CUSTOM_A": -5}}),
        ("desired", {PROVIDER: {"CUSTOM_A": 1.5}}),
        ("ttl", None),
        ("next_in", 0),
        ("next_in", -1.0),
        ("next_in", float("nan")),
        ("next_in", float("inf")),
        ("directive", "explode"),
    ],
)
def test_strange_orders_are_refused(name: str, value: object) -> None:
    """What does not conform is never worked towards."""
    with pytest.raises(StrangeAnswerError):
        orders_of({**msgspec.to_builtins(ORDERS), name: value})


def test_answers_of_newer_servers_are_read() -> None:
    """Unknown members are ignored."""
    orders = msgspec.to_builtins(ORDERS)
    assert orders_of({**orders, "weather": "fine"}) == orders_of(orders)
    beat = {name: orders[name] for name in AliveAnswer._fields}
    assert alive_of({**beat, "weather": "fine"}) == alive_of(beat)
    assert start_of({"may_start": True, "reason": "r", "weather": "fine"}) == StartAnswer(True, "r")


@pytest.mark.parametrize("value", [None, 1, "true", "", 0, [True]])
def test_only_true_may_start(value: object) -> None:
    """Everything else is no answer."""
    with pytest.raises(StrangeAnswerError):
        start_of({"may_start": value, "reason": ""})
    with pytest.raises(StrangeAnswerError):
        start_of(None)
