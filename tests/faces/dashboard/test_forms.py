"""Forms: only from the dashboard's own pages, of the same session, by readers who may do it."""

import pytest

from tests.faces.dashboard.support.browserless import Browser, confirming, signed_in
from tests.faces.v1.leasing import make_pool, waiting_ticket
from tests.faces.v1.native import Native

OPERATORS = ("operator", "admin")


def paused(native: Native, pool: str) -> bool:
    """Return whether a pool is paused."""
    return bool(native.ask("GET", f"/v1/pools/{pool}").body["paused"])


def test_an_operator_pauses_and_resumes(native: Native) -> None:
    """The page says what was done, and the audit log who did it."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    page = f"/ui/pools/{pool}"
    answer = browser.submit(page, f"{page}:pause", reason="<b>broken</b>")
    assert "Done." in answer.document.text
    assert paused(native, pool)
    shown = browser.get(page)
    assert "Paused" in shown.document.text
    assert "<b>broken" not in shown.body
    assert "<b>broken</b>" in shown.document.text
    assert "Done." in browser.submit(page, f"{page}:resume").document.text
    assert not paused(native, pool)


@pytest.mark.parametrize("word", [":pause", "/revoke", "/force", "/gone"])
def test_what_is_not_easily_undone_asks_first(native: Native, word: str) -> None:
    """Without a script, on a page of its own, which has what was filled in; no is a link back."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    page = f"/ui/pools/{pool}" if word == ":pause" else f"/ui/leases/{ticket}"
    token = browser.get(page).document.forms[0].fields["form_token"]
    sent = {"form_token": token, "reason": "<b>r</b>"}
    asked = browser.ask("POST", f"{page}{word}", sent)
    assert asked.status == 200
    form = confirming(asked, f"{page}{word}")
    assert {**form.fields, **sent} == form.fields
    assert page in asked.document.links
    assert "<b>r</b>" in asked.document.text
    assert not paused(native, pool)
    assert native.ask("GET", f"/v1/leases/{ticket}").body["state"] == "waiting"
    assert browser.ask("POST", form.action, {**form.fields, "form_token": "x"}).status == 403
    done = browser.ask("POST", form.action, form.fields)
    assert done.status == 303 or "Done." in done.document.text


def test_an_operator_moves_grants_and_revokes(native: Native) -> None:
    """All buttons of a ticket's page work."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    page = f"/ui/leases/{ticket}"
    for word, fields in (("priority", {"priority": "7"}), ("priority", {"priority": "0"})):
        assert "Done." in browser.submit(page, f"{page}/{word}", **fields).document.text
    assert "Done." in browser.submit(page, f"{page}/force").document.text
    assert native.ask("GET", f"/v1/leases/{ticket}").body["state"] == "granted"
    assert "Done." in browser.submit(page, f"{page}/revoke", reason="test").document.text
    assert "Ended: revoked" in browser.get(page).document.text
    # Only administrators may read the audit log, so only they see who it was.
    shown = signed_in(native, "admin").get(page).document.text
    assert "lease.force by operator" in shown


@pytest.mark.parametrize("role", ["reader", "user"])
def test_readers_have_no_buttons(native: Native, role: str) -> None:
    """Their pages have no form but those to filter and to sign out; the actions refuse them."""
    browser, pool = signed_in(native, role, "p1" if role == "user" else None), make_pool(native)
    ticket = waiting_ticket(native, pool).body["id"]
    for page, action in (
        (f"/ui/pools/{pool}", f"/ui/pools/{pool}:pause"),
        (f"/ui/leases/{ticket}", f"/ui/leases/{ticket}/revoke"),
        (f"/ui/leases/{ticket}", f"/ui/leases/{ticket}/force"),
    ):
        forms = browser.get(page).document.forms
        assert [one.action for one in forms if one.method == "post"] == ["/ui/sign-out"]
        token = forms[0].fields["form_token"]
        sent = {"form_token": token, "sure": "yes"}
        assert browser.ask("POST", action, sent).status == 403
    assert not paused(native, pool)
    assert native.ask("GET", f"/v1/leases/{ticket}").body["state"] == "waiting"


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "", "http://127.0.0.1:1", "http://localhost"]
)
def test_forms_of_other_origins_are_refused(native: Native, origin: str) -> None:
    """Also the sign-in form: nobody is signed in as somebody else without noticing."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    token = browser.get("/ui").document.forms[0].fields["form_token"]
    action = f"/ui/pools/{pool}:pause"
    answer = browser.ask("POST", action, {"form_token": token}, Origin=origin)
    assert answer.status == 403
    assert not paused(native, pool)
    assert browser.sign_in(native.token("reader"), Origin=origin).status == 403


def test_the_form_token_of_another_session_is_refused(native: Native) -> None:
    """Also of the same token; the control, with the own one, succeeds."""
    mine, other, pool = signed_in(native, "operator"), Browser(native.url), make_pool(native)
    other.sign_in(native.token("operator"))
    action = f"/ui/pools/{pool}:pause"
    foreign = other.get("/ui").document.forms[0].fields["form_token"]
    for token in (foreign, "", foreign[:-1]):
        assert mine.ask("POST", action, {"form_token": token}).status == 403
    assert mine.ask("POST", action).status == 403, "without an Origin"
    assert not paused(native, pool)
    own = mine.get("/ui").document.forms[0].fields["form_token"]
    assert "What it will do" in mine.ask("POST", action, {"form_token": own}).document.text


def test_other_bodies_are_refused(native: Native) -> None:
    """Neither JSON nor malformed fields are taken for a form."""
    browser = signed_in(native, "operator")
    for kind, status in (("application/json", 415), ("text/plain", 415)):
        answer = browser.ask("POST", "/ui/sign-out", {"a": "b"}, Content_Type=kind)
        assert answer.status == status
    answer = browser.ask("POST", "/ui/sign-out", {str(number): "" for number in range(200)})
    assert answer.status == 400
