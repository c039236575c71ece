"""Refusals: every code has an outcome, every body its shape."""

import json

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.placement.problems import (
    EXPLANATIONS,
    OUTCOMES,
    Outcome,
    ProblemError,
    body_html,
    body_json,
    body_text,
    problem_of,
)
from tests.faces.placement.client import Client


def test_every_code_has_one_outcome() -> None:
    """A refusal of the core can never surprise this face."""
    assert set(OUTCOMES) == set(Code)
    assert {outcome.status for outcome in OUTCOMES.values()} <= set(EXPLANATIONS)


@pytest.mark.parametrize("code", list(Code))
def test_every_refusal_can_be_worded(code: Code) -> None:
    """The core's message is shown; a full service says when to come back."""
    problem = problem_of(Error(code, "why"), {})
    assert (problem.status, problem.code) == OUTCOMES[code][:2]
    assert problem.detail == "why"
    assert (dict(problem.headers) == {b"retry-after": b"1"}) == (problem.status == 503)


def test_a_route_may_deviate() -> None:
    """Its own outcome counts, and its prefix names what the address names."""
    deviation = {Code.INVALID: Outcome(409, "x", "No {}: ")}
    problem = problem_of(Error(Code.INVALID, "why"), deviation, ("{odd}",))
    assert (problem.status, problem.code, problem.detail) == (409, "x", "No {odd}: why")


def test_the_code_is_shown_since_1_23() -> None:
    """Older clients get bodies without it, and so do those whose version was not understood."""
    problem = ProblemError(404, "text", "placement.some_code")
    for version, expected in ((23, "placement.some_code"), (22, None), (None, None)):
        shown = json.loads(body_json(problem, "req-1", version))["errors"][0]
        assert shown.get("code") == expected
        assert shown["request_id"] == "req-1"
        assert shown["title"] == "Not Found"
        assert shown["detail"] == "The resource could not be found.\n\n text  "


def test_pages_escape_what_they_quote() -> None:
    """A request's text never becomes markup."""
    problem = ProblemError(400, "<script>")
    assert b"<script>" not in body_html(problem)
    assert b"&lt;script&gt;" in body_html(problem)
    assert b"<script>" in body_text(problem)


def test_errors_follow_accept(api: Client) -> None:
    """A browser reads a page, a terminal text, everybody else JSON."""
    kinds = {
        "text/html": "text/html; charset=UTF-8",
        "text/plain": "text/plain; charset=UTF-8",
        "application/json": "application/json",
        "*/*": "application/json",
    }
    for accept, kind in kinds.items():
        reply = api.ask("GET", "/nowhere", accept=accept)
        assert (reply.status, reply.headers["content-type"]) == (404, kind)
        assert b"The resource could not be found." in reply.body


def test_a_missing_token_has_a_body_of_its_own(api: Client) -> None:
    """It is refused before the API proper: no version headers, but a request id."""
    reply = api.ask("GET", "/resource_providers", token=None)
    assert reply.status == 401
    assert set(reply.json) == {"message", "code", "title"}
    assert "openstack-api-version" not in reply.headers


def test_a_fault_is_told_to_the_log_only(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The answer carries the request id by which the log tells the rest."""
    del api.service.reads  # whatever asks for it now fails
    reply = api.ask("GET", "/allocations/4e6e6d4c-0000-4000-8000-000000000000")
    assert reply.status == 500
    assert reply.json["errors"][0]["request_id"] == reply.headers["x-openstack-request-id"]
    assert b"reads" not in reply.body
    assert reply.headers["x-openstack-request-id"] in caplog.text
    assert "AttributeError" in caplog.text
