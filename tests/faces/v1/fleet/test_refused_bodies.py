"""Bodies and queries that no agent and no operator may send; nothing is stored."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from moorage.core.limits import (
    BODY_BYTES_MAX,
)
from tests.faces.v1.fleet.machine import FAILURE, PAGES, Machine, check_refused
from tests.faces.v1.native import Response

HUGE = 2**31


LIMIT = ("from 0 to 2147483647",)


SENDS: dict[str, Callable[[Machine], tuple[str, str, Any]]] = {
    "register": lambda one: ("POST", "register", one.register_body()),
    "report": lambda one: (
        "PUT",
        "report",
        one.report_body(failure=FAILURE, consumers=[str(uuid4())]),
    ),
    "alive": lambda one: ("POST", "alive", one.alive_body()),
    "enroll": lambda one: ("POST", "enroll", {"group": "default", "labels": {}}),
    "put": lambda one: ("PUT", "", {"group": "default", "labels": {"a": "b"}}),
    "desired": lambda one: ("POST", "desired", {"resource_class": PAGES, "amount": 7}),
    "drain": lambda one: ("POST", "drain", {"reason": "fans"}),
}
"""A valid request to each route; sent unchanged, it would be accepted or conflict."""


def objects(value: Any) -> list[dict[str, Any]]:
    """Return an object and all inside it that have fixed members."""
    found = [value]
    for name in ("facts", "failure"):
        if name in value:
            found.append(value[name])
    for one in value.get("parts", ()):
        found += [one, *one["classes"].values()]
    return found


@pytest.mark.parametrize("name", SENDS)
def test_unknown_members(machine: Machine, name: str) -> None:
    """A member that nobody reads is refused, at any depth: it would be silently ignored."""
    before = machine.stored()
    method, word, body = SENDS[name](machine)
    for n in range(len(objects(body))):
        copy = json.loads(json.dumps(body))
        objects(copy)[n]["step"] = 1
        answer = machine.send(method, word, copy, machine.native.secret)
        check_refused(machine, answer, before, 400, "refused", "unknown field `step`")


@pytest.mark.parametrize("name", SENDS)
@pytest.mark.parametrize("raw", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"[", b'"\xff"'])
def test_what_is_no_json(machine: Machine, name: str, raw: bytes) -> None:
    """Numbers that JSON does not have, broken texts and broken bodies are refused anywhere."""
    before = machine.stored()
    method, word, body = SENDS[name](machine)
    text = json.dumps({**body, "there": None}).encode().replace(b"null", raw, 1)
    answer = machine.send(method, word, text, machine.native.secret)
    assert answer.body["detail"].startswith(("Malformed JSON: ", "The body is invalid: "))
    check_refused(machine, answer, before, 400, "refused")


@pytest.mark.parametrize("name", SENDS)
def test_bodies_that_are_too_large(machine: Machine, name: str) -> None:
    """A body above the limit is refused before it is read; the message names the setting."""
    before = machine.stored()
    method, word, body = SENDS[name](machine)
    text = json.dumps(body).encode() + b" " * BODY_BYTES_MAX
    answer = machine.send(method, word, text, machine.native.secret)
    check_refused(machine, answer, before, 413, "refused", "body_bytes_max")


@pytest.mark.parametrize("body", [None, b"", [], "x", 7, None, {}])
@pytest.mark.parametrize("word", ["register", "report", "alive"])
def test_bodies_of_another_kind(machine: Machine, word: str, body: Any) -> None:
    """An agent sends an object with all required members."""
    before = machine.stored()
    answer = machine.send("PUT" if word == "report" else "POST", word, body)
    assert answer.status in (400, 415), answer
    check_refused(machine, answer, before, answer.status, "refused")


OPERATORS: dict[str, tuple[Callable[[Machine], Response], tuple[str, ...]]] = {
    "a policy that is none": (lambda one: one.put(policy="gone"), ("Invalid enum value 'gone'",)),
    "a group in upper case": (lambda one: one.put(group="Rack"), ("A group's name", "a-z")),
    "a group above all": (lambda one: one.put(group="../x"), ("A group's name",)),
    "a label with a long value": (
        lambda one: one.put(labels={"a": "x" * 256}),
        ("Label 'a'", "at most 255"),
    ),
    "both amounts": (
        lambda one: one.operate("desired", resource_class=PAGES, amount=1, percent=1.0),
        ("either an amount or a percentage",),
    ),
    "a negative amount": (
        lambda one: one.operate("desired", resource_class=PAGES, amount=-1),
        ("from 0 to 2147483647",),
    ),
    "more than is eligible": (
        lambda one: one.operate("desired", resource_class=PAGES, amount=1_001),
        ("at most 1000", "lower amount"),
    ),
    "0 percent": (
        lambda one: one.operate("desired", resource_class=PAGES, percent=0),
        ("above 0 and at most 100",),
    ),
    "more than 100 percent": (
        lambda one: one.operate("desired", resource_class=PAGES, percent=100.1),
        ("above 0 and at most 100",),
    ),
    "a class that is not there": (
        lambda one: one.operate("desired", resource_class="CUSTOM_X", amount=1),
        ("'CUSTOM_X'", "name a class that it lists"),
    ),
    "a provider of another machine": (
        lambda one: one.operate("desired", resource_class=PAGES, amount=1, provider=str(uuid4())),
        ("Provider", "name a class that it lists"),
    ),
    "a long reason": (
        lambda one: one.operate("drain", reason="x" * 1_001),
        ("reason must have at most 1000",),
    ),
    "two ends": (
        lambda one: one.operate("drain", until="2030-01-01T00:00:00Z", lasts=1),
        ("`until` or `lasts`", "not both"),
    ),
    "a resume that ends": (lambda one: one.operate("resume", lasts=1), ("omit until and lasts",)),
    "a drain by force": (lambda one: one.operate("drain", force=True), ("omit force of drain",)),
    "a negative time": (lambda one: one.operate("drain", lasts=-1), ("lasts must be from 0",)),
    "an end after all times": (
        lambda one: one.operate("drain", until="9999-12-31T23:59:59-12:00"),
        ("until must be in the years 1 to 9999",),
    ),
    "an end in the past": (
        lambda one: one.operate("drain", until="2001-01-01T00:00:00Z"),
        ("until",),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_operators_may_not_say(machine: Machine, name: str) -> None:
    """Refused, with a message that names the member; there is no row in the audit log."""
    send, words = OPERATORS[name]
    before = machine.stored()
    answer = send(machine)
    code = "refused" if "enum" in answer.body["detail"] else "invalid"
    check_refused(machine, answer, before, 400, code, *words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"desired": {PAGES: {}}}, ("either an amount or a percentage",)),
        ({"desired": {PAGES: {"amount": HUGE}}}, LIMIT),
        ({"desired": {PAGES: {"percent": 101}}}, ("at most 100",)),
        ({"desired": {"x": {"amount": 1}}}, ("A-Z",)),
        ({"desired": {f"CUSTOM_{n}": {"amount": 1} for n in range(65)}}, ("at most 64 classes",)),
    ],
)
def test_defaults_of_groups(machine: Machine, body: Any, words: tuple[str, ...]) -> None:
    """A group is neither created nor changed by an invalid default."""
    before = machine.stored()
    for name in ("default", "new/group"):
        answer = machine.native.ask("PUT", f"/v1/groups/{name}", body)
        check_refused(machine, answer, before, 400, "invalid", *words)
    assert machine.native.ask("GET", "/v1/groups/new/group").status == 404


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("policy=gone", "refused", ("policy: expected one of in_service, ", "got 'gone'")),
        ("state=x", "refused", ("state: expected one of ",)),
        ("readiness=x", "refused", ("readiness: expected one of ",)),
        ("liveness=x", "refused", ("liveness: expected one of ",)),
        ("offered=maybe", "refused", ("offered: expected true or false, got 'maybe'",)),
        ("limit=1.5", "refused", ("limit: expected a whole number, got '1.5'",)),
        ("label==x", "invalid", ("KEY or KEY=VALUE",)),
        ("limit=0", "invalid", ("limit",)),
        ("limit=1001", "invalid", ("limit",)),
        ("group=a&group=b", "refused", ("more than once",)),
        ("pool=a", "refused", ("pool: unknown; the parameters are ", "readiness")),
    ],
)
def test_queries(machine: Machine, query: str, code: str, words: tuple[str, ...]) -> None:
    """A filter that is not understood is refused: ignored, it would match all agents."""
    before = machine.stored()
    answer = machine.native.ask("GET", f"/v1/agents?{query}")
    check_refused(machine, answer, before, 400, code, *words)


@pytest.mark.parametrize("uuid", ["x", "0" * 32, "{00000000-0000-0000-0000-000000000001}"])
def test_an_id_that_is_no_uuid(machine: Machine, uuid: str) -> None:
    """The id of an agent has its dashes; capital letters are accepted."""
    before = machine.stored()
    for method, word, body in (
        ("GET", "", None),
        ("PUT", "", {}),
        ("POST", "/enroll", {"group": "a"}),
    ):
        answer = machine.native.ask(method, f"/v1/agents/{uuid}{word}", body)
        check_refused(machine, answer, before, 400, "invalid", "must be a UUID with dashes")
    assert machine.native.ask("GET", f"/v1/agents/{machine.uuid.upper()}").status == 200
