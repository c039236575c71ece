"""Errors: every code of the core has an outcome, every error a body."""

import json
import time

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.placement.negotiation import RANGES_MAX, error_type
from moorage.faces.placement.problems import (
    DETAIL_LENGTH_MAX,
    EXPLANATIONS,
    OUTCOMES,
    WireProblem,
    body_html,
    body_json,
    body_text,
    problem_of,
)
from moorage.faces.query_strings.refusals import ProblemError
from tests.faces.placement.support.client import Client


def test_every_code_has_one_outcome() -> None:
    """The face can translate every error of the core."""
    assert set(OUTCOMES) == set(Code)
    assert {outcome.status for outcome in OUTCOMES.values()} <= set(EXPLANATIONS)


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_a_detail(code: Code) -> None:
    """The core's message is shown, perhaps with a prefix; a 503 has Retry-After."""
    problem = problem_of(Error(code, "why"), {})
    assert (problem.status, problem.code) == OUTCOMES[code][:2]
    assert problem.detail == OUTCOMES[code].prefix + "why"
    assert (dict(problem.headers) == {b"retry-after": b"1"}) == (problem.status == 503)


def test_a_route_may_deviate() -> None:
    """A route may have its own outcome, whose prefix can quote variables of the path."""
    deviation = {Code.INVALID: WireProblem(409, "x", "No {}: ")}
    problem = problem_of(Error(Code.INVALID, "{why}"), deviation, ("{odd}",))
    assert (problem.status, problem.code, problem.detail) == (409, "x", "No {odd}: {why}")
    deviation = {Code.INVALID: WireProblem(409, "x", "No {0}: ", "{1} is not")}
    problem = problem_of(Error(Code.INVALID, "why"), deviation, ("A", "B"))
    assert problem.detail == "No A: B is not"


def test_the_code_is_shown_since_1_23() -> None:
    """Responses to older or unknown versions do not have it."""
    problem = ProblemError(404, "text", "placement.some_code")
    for version, expected in ((23, "placement.some_code"), (22, None), (None, None)):
        shown = json.loads(body_json(problem, "req-1", version))["errors"][0]
        assert shown.get("code") == expected
        assert shown["request_id"] == "req-1"
        assert shown["title"] == "Not Found"
        assert shown["detail"] == "The resource could not be found.\n\n text  "


def test_pages_escape_quoted_text() -> None:
    """Text of a request never becomes markup."""
    problem = ProblemError(400, "<script>")
    assert b"<script>" not in body_html(problem)
    assert b"&lt;script&gt;" in body_html(problem)
    assert b"script" not in body_text(problem)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/html", "text/html; charset=UTF-8"),
        ("text/html,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=UTF-8"),
        ("application/json, text/html", "text/html; charset=UTF-8"),
        ("*/*;q=0.5", "text/html; charset=UTF-8"),
        ("text/html;q=0.3, application/json", "application/json"),
        ("application/*", "application/json"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
        ("text/plain", "text/plain; charset=UTF-8"),
        ("text/html;q=0", "text/plain; charset=UTF-8"),
    ],
)
def test_errors_follow_accept(api: Client, accept: str, kind: str) -> None:
    """A browser gets a page, a terminal text; the default and other clients get JSON."""
    reply = api.ask("GET", "/nowhere", accept=accept)
    assert (reply.status, reply.headers["content-type"]) == (404, kind)
    assert b"The resource could not be found." in reply.body


def test_the_layout_of_an_error_page(api: Client) -> None:
    """Pages and plain text have the same words as JSON."""
    reply = api.ask("GET", "/traits/A&B", accept="text/html")
    assert reply.body == (
        b"<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n"
        b"  <h1>404 Not Found</h1>\n  The resource could not be found.<br /><br />\n"
        b"No such trait(s): A&amp;B.\n\n\n </body>\n</html>"
    )
    reply = api.ask("GET", "/traits/A&B", accept="text/plain")
    assert reply.body == (
        b"404 Not Found\n\nThe resource could not be found.\n\n No such trait(s): A&B.  "
    )


def test_a_detail_is_one_line_without_markup() -> None:
    """Clients print the last line of a detail, so that line must have all of it."""
    problem = ProblemError(400, "one\ntwo\r\n<b>three</b> <!-- four --> <br>five")
    shown = json.loads(body_json(problem, "req-1", None))["errors"][0]["detail"]
    sentence = EXPLANATIONS[400]
    assert shown == f"{sentence}\n\n one two three  four  \nfive  "


@pytest.mark.parametrize("opening", ["<", "<br", "<br ", "<!--"])
def test_unclosed_tags_are_processed_quickly(opening: str) -> None:
    """Long texts of unclosed tags must be processed at once; they once took half a minute."""
    detail = opening * (60_000 // len(opening))
    began = time.thread_time()
    shown = json.loads(body_json(ProblemError(400, detail), "req-1", None))["errors"][0]["detail"]
    assert time.thread_time() - began < 1.0
    assert shown.endswith(detail.replace("<!--", "") + "  ")


def test_a_quoted_text_in_a_detail_is_cut() -> None:
    """A quoted text is cut before it is processed, even if the refused body has 32 MB."""
    problem = ProblemError(400, "x" * (DETAIL_LENGTH_MAX + 1))
    for body in (body_json(problem, "req-1", None), body_html(problem), body_text(problem)):
        assert body.count(b"x" * DETAIL_LENGTH_MAX) == 1
        assert len(body) < DETAIL_LENGTH_MAX + 1_000


def test_further_ranges_of_an_accept_header_are_ignored() -> None:
    """Further ranges are ignored, because reading thousands blocked the event loop for 0.1 s."""
    rest = "a/b," * (RANGES_MAX - 1)
    assert error_type(rest + "text/html") == "text/html"
    assert error_type(rest + "a/b,text/html") == "text/plain"


def test_errors_quote_parts_of_the_request(api: Client) -> None:
    """The sentences of 405, 406 and 415 quote the method, Accept and the content type."""
    reply = api.ask("PATCH", "/resource_providers")
    assert reply.detail == (
        "The method PATCH is not allowed for this resource. \n\n "
        "The method specified is not allowed for this resource."
    )
    reply = api.ask("GET", "/resource_providers", accept="text/plain")
    assert reply.body == (
        b"406 Not Acceptable\n\n"
        b"The resource could not be generated that was acceptable to your browser "
        b"(content of type text/plain. \n\n Only application/json is provided"
    )
    reply = api.ask("POST", "/resource_providers", b"{}", content_type="text/plain; charset=utf-8")
    assert reply.detail == (
        "The request media type text/plain; charset=utf-8 is not supported by this server. \n\n"
        " The media type text/plain is not supported, use application/json"
    )


def test_the_body_of_an_unauthenticated_request(api: Client) -> None:
    """It is refused before the API itself: without version headers, but with a request id."""
    reply = api.ask("GET", "/resource_providers", token=None)
    assert reply.status == 401
    assert reply.json == {
        "message": f"{EXPLANATIONS[401]}<br /><br />\n\n\n",
        "code": "401 Unauthorized",
        "title": "Unauthorized",
    }
    assert "openstack-api-version" not in reply.headers


def test_an_exception_is_only_logged(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The response has only the request id, with which the log has the details."""
    del api.service.reads  # now every request that reads fails
    reply = api.ask("GET", "/allocations/4e6e6d4c-0000-4000-8000-000000000000")
    assert reply.status == 500
    assert reply.json["errors"][0]["request_id"] == reply.headers["x-openstack-request-id"]
    assert b"reads" not in reply.body
    assert reply.headers["x-openstack-request-id"] in caplog.text
    assert "AttributeError" in caplog.text
