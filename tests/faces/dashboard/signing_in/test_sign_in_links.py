"""A one-time link signs a browser in, after a question that names whom."""

import pytest

from moorage.service.access.sessions import OPENED_MAX
from tests.faces.dashboard.support.browserless import Browser, Page, signed_in
from tests.faces.v1.native import Native

SIGN_IN = "/ui/sign-in"
LINKS = "/v1/sign-in-links"


def code_of(native: Native, token: str) -> str:
    """Make a link; return its code."""
    made = native.ask("POST", LINKS, token=token)
    assert made.status == 201, made
    code: str = made.body["code"]
    return code


def follow(browser: Browser, code: str, **more: str) -> Page:
    """Post a code, as the script of the page does, or with `sure` as its reader does."""
    return browser.ask("POST", SIGN_IN, {"link": code, **more})


def test_a_link_signs_in_once_on_any_process(peers: list[Native]) -> None:
    """The question uses nothing: programs that look at links before people do spend none."""
    here, there = peers[0], peers[-1]
    code = code_of(here, here.token("operator", name="alice"))
    browser = Browser(there.url)
    for _ in range(2):
        asked = follow(browser, code)
        assert (asked.status, "set-cookie" in asked.headers) == (200, False)
        assert "signs you in as alice (operator)" in asked.document.text
        assert asked.document.inline == []
        assert asked.headers["cache-control"] == "no-store"
    (form,) = asked.document.forms
    done = browser.ask("POST", form.action, form.fields)
    assert (done.status, done.headers["location"]) == (303, "/ui")
    assert "alice" in browser.get("/ui").body
    for again in (Browser(here.url), Browser(there.url)):
        for more in ({}, {"sure": "yes"}):
            page = follow(again, code, **more)
            assert (page.status, "set-cookie" in page.headers) == (401, False)
            assert "has been used" in page.document.text


def test_whose_link_it_is_can_be_seen_before_it_is_used(native: Native) -> None:
    """Somebody who is signed in learns that this would be another name, and stays signed in."""
    code = code_of(native, native.token("user", "evil", name="mallory"))
    victim = signed_in(native, "operator")
    asked = follow(victim, code).document.text
    assert "signs you in as mallory" in asked
    assert "You are signed in as operator; that session ends." in asked
    assert "operator" in victim.get("/ui").body
    mine = code_of(native, native.token("operator", name="operator"))
    assert "that session ends" not in follow(victim, mine).document.text


@pytest.mark.parametrize("more", [{}, {"sure": "yes"}])
def test_no_other_site_can_post_a_link(native: Native, more: dict[str, str]) -> None:
    """Nor can one without an origin: nobody is signed in as somebody else from elsewhere."""
    code = code_of(native, native.token("reader"))
    for origin in ("http://evil.example", "null", ""):
        form = {"link": code, **more}
        answer = Browser(native.url).ask("POST", SIGN_IN, form, Origin=origin)
        assert (answer.status, "set-cookie" in answer.headers) == (403, False)
    assert follow(Browser(native.url), code, sure="yes").status == 303, "the control"


@pytest.mark.parametrize("code", ["", "x", "a b", "é", "x" * 43, "x" * 5_000, "' OR 1=1 --"])
def test_what_is_no_code(native: Native, code: str) -> None:
    """It is refused as a used one is."""
    for more in ({}, {"sure": "yes"}):
        assert follow(Browser(native.url), code, **more).status == 401


def test_a_link_is_never_followed_by_get(native: Native) -> None:
    """What opens addresses on its own uses none, and the code in an address means nothing."""
    code = code_of(native, native.token("reader"))
    browser = Browser(native.url)
    for method in ("GET", "HEAD"):
        answer = browser.ask(method, f"{SIGN_IN}?link={code}&sure=yes")
        assert (answer.status, "set-cookie" in answer.headers) == (200, False)
    assert follow(browser, code).status == 200


def test_links_are_limited_and_audited(native: Native) -> None:
    """As sign-ins are: each leaves an audit row, without the code."""
    token = native.token("reader", name="often")
    code = code_of(native, token)
    assert follow(Browser(native.url), code, sure="yes").status == 303
    found = [native.ask("POST", LINKS, token=token).status for _ in range(OPENED_MAX)]
    assert found == [201] * (OPENED_MAX - 1) + [429]
    entries = native.ask("GET", "/v1/audit?limit=1000").body["entries"]
    ours = [one for one in entries if one["who"] == "often"]
    assert {one["action"] for one in ours} == {"session.link", "session.open"}
    (opened,) = [one for one in ours if one["action"] == "session.open"]
    assert opened["after"]["link"] == ours[-1]["target"]
    assert code not in str(entries)


@pytest.mark.parametrize("role", ["agent", "janitor"])
def test_tokens_of_machines_make_none(native: Native, role: str) -> None:
    """Nor could they sign in with the token itself."""
    scope = {"agent": ["one"]} if role == "agent" else {"pool": ["one"]}
    made = native.ask("POST", "/v1/tokens", {"name": role, "role": role, "scope": scope})
    assert native.ask("POST", LINKS, token=made.body["token"]).status == 403
    assert native.ask("POST", LINKS, token="wrong").status == 401
