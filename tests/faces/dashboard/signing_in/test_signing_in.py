"""Signing in: a token becomes a session, which ends with it."""

import re

import pytest

from moorage.service.access.sessions import OPENED_MAX
from tests.faces.dashboard.support.browserless import Browser, signed_in
from tests.faces.v1.native import Native

OVERVIEW = "/ui"
SIGN_IN = "/ui/sign-in"


def test_a_token_opens_a_session(native: Native) -> None:
    """The cookie has the attributes that keep it away from scripts and other sites."""
    browser, token = Browser(native.url), native.token("reader")
    assert browser.get(OVERVIEW).headers["location"] == SIGN_IN
    answer = browser.sign_in(token)
    assert (answer.status, answer.headers["location"]) == (303, OVERVIEW)
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(r"moorage-\d+=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict", cookie)
    page = browser.get(OVERVIEW)
    assert page.status == 200
    assert token not in cookie + page.body
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("token", ["", "wrong", "moorage_" + "x" * 43, "tökèn"])
def test_a_wrong_token_is_refused(native: Native, token: str) -> None:
    """The page says so; there is no cookie."""
    browser = Browser(native.url)
    answer = browser.sign_in(token)
    assert answer.status in {401, 429}
    assert "set-cookie" not in answer.headers
    assert browser.get(OVERVIEW).status == 303


def test_failures_lock_nobody_out(peers: list[Native]) -> None:
    """After five failures wrong tokens get 429, which says for how long; the right one works."""
    browser, token = Browser(peers[0].url), peers[0].token("reader")
    assert browser.sign_in(token).status == 303, "a success does not count"
    assert [browser.sign_in("wrong").status for _ in range(5)] == [401] * 5
    for _ in range(2):
        answer = browser.sign_in("wrong")
        assert answer.status == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert Browser(peers[0].url).sign_in(token).status == 303


@pytest.mark.parametrize("role", ["agent", "reporter", "governor", "janitor", "enroller"])
def test_tokens_of_machines_are_refused(native: Native, role: str) -> None:
    """Only readers and higher roles see pages; a governor may read pools, but sees nothing else."""
    fields = {"agent": "agent", "reporter": "group", "enroller": "group"}
    scope = {fields.get(role, "pool"): ["one"]}
    made = native.ask("POST", "/v1/tokens", {"name": role, "role": role, "scope": scope})
    assert made.status == 201, made
    answer = Browser(native.url).sign_in(made.body["token"])
    assert "may not" in answer.body


def test_a_revoked_token_ends_its_sessions_everywhere(peers: list[Native]) -> None:
    """Also on another process of the same database, at once."""
    here, there = peers[0], peers[-1]
    token = here.token("reader", name="revoked")
    browser = Browser(here.url)
    assert browser.sign_in(token).status == 303
    other = Browser(there.url)
    here_port, there_port = here.url.rpartition(":")[2], there.url.rpartition(":")[2]
    other.cookies = {f"moorage-{there_port}": browser.cookies[f"moorage-{here_port}"]}
    assert other.get(OVERVIEW).status == browser.get(OVERVIEW).status == 200
    tokens = here.ask("GET", "/v1/tokens").body["tokens"]
    (token_id,) = [one["id"] for one in tokens if one["name"] == "revoked"]
    assert here.ask("DELETE", f"/v1/tokens/{token_id}").status == 204
    assert other.get(OVERVIEW).status == browser.get(OVERVIEW).status == 303


def test_signing_out_ends_the_session(native: Native) -> None:
    """A copy of the cookie is worthless afterwards."""
    browser = signed_in(native, "reader")
    stolen = Browser(native.url)
    stolen.cookies = dict(browser.cookies)
    assert stolen.get(OVERVIEW).status == 200
    answer = browser.submit(OVERVIEW, "/ui/sign-out")
    assert (answer.status, answer.headers["location"]) == (303, SIGN_IN)
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert stolen.get(OVERVIEW).status == 303


def test_signing_in_again_ends_the_session_before(native: Native) -> None:
    """The browser forgets its cookie, so nobody could end it."""
    browser, token = signed_in(native, "reader"), native.token("reader")
    stolen = Browser(native.url)
    stolen.cookies = dict(browser.cookies)
    assert stolen.get(OVERVIEW).status == 200
    assert browser.sign_in(token).status == 303
    assert [stolen.get(OVERVIEW).status, browser.get(OVERVIEW).status] == [303, 200]


def test_a_token_opens_a_limited_number_of_sessions_a_minute(native: Native) -> None:
    """Each leaves an audit row; those of other tokens are not limited by it."""
    token, other = native.token("reader"), native.token("reader")
    found = [Browser(native.url).sign_in(token) for _ in range(OPENED_MAX + 1)]
    assert [one.status for one in found] == [303] * OPENED_MAX + [429]
    assert 1 <= int(found[-1].headers["retry-after"]) <= 60
    assert Browser(native.url).sign_in(other).status == 303


def test_no_api_accepts_the_cookie(native: Native) -> None:
    """A page of another site cannot use it against the API."""
    browser = signed_in(native, "admin")
    for path in ("/v1/pools", "/v1/tokens", "/resource_providers", "/v1/watch"):
        assert browser.get(path).status == 401, path


@pytest.mark.parametrize(
    ("following", "target"),
    [
        ("/ui/pools?cursor=a", "/ui/pools?cursor=a"),
        ("//evil.example/ui/", "/ui"),
        ("https://evil.example/ui/", "/ui"),
        ("/\\evil.example", "/ui"),
        ("/ui/\\evil", "/ui"),
        ("/ui/a\r\nset-cookie: x=y", "/ui"),
        ("/v1/pools", "/ui"),
        ("/uix", "/ui"),
    ],
)
def test_only_pages_of_the_dashboard_follow(native: Native, following: str, target: str) -> None:
    """The address to return to cannot lead elsewhere."""
    answer = Browser(native.url).sign_in(native.token("reader"), following)
    assert answer.headers["location"] == target


def test_a_reader_returns_to_the_page_asked_for(native: Native) -> None:
    """The sign-in page keeps the whole address, also with odd names."""
    browser = Browser(native.url)
    sign_in = browser.get(browser.get("/ui/pools/ä b?x=1%26y").headers["location"])
    (form,) = sign_in.document.forms
    answer = browser.sign_in(native.token("reader"), form.fields["next"])
    assert answer.headers["location"] == "/ui/pools/%C3%A4%20b?x=1%26y"


@pytest.mark.parametrize(
    ("headers", "elsewhere"),
    [
        ({}, False),
        ({"Sec_Fetch_Site": "same-origin"}, False),
        ({"Sec_Fetch_Site": "none", "Referer": "http://ci.example/"}, False),
        ({"Sec_Fetch_Site": "cross-site"}, True),
        ({"Referer": "http://ci.example/job/7"}, True),
        ({"Referer": "HOST/ui/pools"}, False),
        ({"Referer": "about:blank"}, False),
    ],
)
def test_a_link_of_another_site_is_followed_again(
    native: Native, headers: dict[str, str], elsewhere: bool
) -> None:
    """Browsers send no cookie with it; the second request, from a page of ours, has it."""
    sent = {name: value.replace("HOST", native.url) for name, value in headers.items()}
    browser = Browser(native.url)
    answer = browser.get("/ui/pools?cursor=%22%3Cb%3E", **sent)
    assert answer.status == (200 if elsewhere else 303)
    if elsewhere:
        assert answer.headers["refresh"] == "0; url=/ui/pools?cursor=%22%3Cb%3E"
        assert answer.document.links == ["/ui/pools?cursor=%22%3Cb%3E"]
        assert "set-cookie" not in answer.headers
    assert browser.ask("POST", "/ui/pools/a:pause", {}, **sent).status == 401


def test_sign_ins_are_audited_without_secrets(native: Native) -> None:
    """The audit log has the address, and nothing from which a session can be made."""
    browser = signed_in(native, "operator")
    entries = native.ask("GET", "/v1/audit").body["entries"]
    (opened, *_) = [one for one in entries if one["action"] == "session.open"]
    assert opened["who"] == "operator"
    assert opened["after"] == {"source": "127.0.0.1"}
    assert not any(value in str(entries) for value in browser.cookies.values())
