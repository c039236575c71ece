"""Pages that show what an action will do, do exactly that, and offer the way back."""

from tests.faces.dashboard.support.browserless import Page, confirming, signed_in
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native


def limit(native: Native, pool: str) -> int:
    """Return the limit of a pool."""
    found: int = native.ask("GET", f"/v1/pools/{pool}").body["limit"]
    return found


def audit_links(answer: Page) -> list[str]:
    """Return the links of a page to entries of the audit log."""
    return [link for link in answer.document.links if "#action-" in link]


def test_a_limit_is_changed_and_taken_back(native: Native) -> None:
    """From the page of the pool: the effect, the confirmation, the audit entry, the undo."""
    browser, pool = signed_in(native, "admin"), make_pool(native, pacing=None)
    for _ in range(4):
        ask(native, pool)
    page, target = f"/ui/pools/{pool}", f"/ui/pools/{pool}:tune"
    (form,) = [one for one in browser.get(page).document.forms if one.action == target]
    shown = browser.ask("POST", target, {**form.fields, "limit": "3"})
    assert "The limit changes from 1 to 3." in shown.document.text
    assert f"<title>Change limit and pacing of {pool} · Moorage</title>" in shown.body
    assert "2 tickets start." in shown.document.text
    assert (limit(native, pool), audit_links(shown)) == (1, [])
    done = browser.ask("POST", target, confirming(shown, target).fields)
    assert "Done." in done.document.text and limit(native, pool) == 3
    (link,) = audit_links(done)
    entry = browser.get(link.partition("#")[0])
    assert f'id="{link.partition("#")[2]}"' in entry.body
    (back,) = [one for one in done.document.forms if one.action == target]
    undo = browser.ask("POST", target, back.fields)
    assert "The limit changes from 3 to 1." in undo.document.text
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 5, "pacing": None})
    refused = browser.ask("POST", target, confirming(undo, target).fields)
    assert "Nothing was done." in refused.document.text and limit(native, pool) == 5


def test_what_has_changed_meanwhile_is_shown_instead(native: Native) -> None:
    """The new effect is on the page, with its own confirmation; a reload does nothing twice."""
    browser, pool = signed_in(native, "operator"), make_pool(native, pacing=None)
    for _ in range(2):
        ask(native, pool)
    target = f"/ui/pools/{pool}:tune"
    token = browser.get("/ui").document.forms[0].fields["form_token"]
    first = browser.ask("POST", target, {"form_token": token, "limit": "9", "interval": "0"})
    assert "1 ticket starts." in first.document.text
    ask(native, pool)
    second = browser.ask("POST", target, confirming(first, target).fields)
    assert "so it would do something else" in second.document.text
    assert "2 tickets start." in second.document.text
    assert limit(native, pool) == 1
    for said in ("Done.", "Nothing was done."):
        assert said in browser.ask("POST", target, confirming(second, target).fields).document.text
    assert limit(native, pool) == 9


def test_what_was_replayed_is_applied(native: Native) -> None:
    """The page of a rehearsal has the button, with what was replayed."""
    browser, pool = signed_in(native, "operator"), make_pool(native, pacing=None)
    target = f"/ui/pools/{pool}:tune"
    page = f"/ui/pools/{pool}:what-if?limit=7&interval=2.5&burst=3"
    shown = browser.submit(page, target)
    assert "Done." in shown.document.text
    found = native.ask("GET", f"/v1/pools/{pool}").body
    assert (found["limit"], found["pacing"]["interval"], found["pacing"]["burst"]) == (7, 2.5, 3)
    reader = signed_in(native, "reader").get(page)
    assert target not in [one.action for one in reader.document.forms]


def test_a_pause_takes_a_duration_or_a_time(native: Native) -> None:
    """Others are refused with an example; the page says when it ends."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    page, target = f"/ui/pools/{pool}", f"/ui/pools/{pool}:pause"
    for wrong in ("soon", "-1h", "0", "2020-01-01", "1 hour", "25:00", "9" * 20):
        (form,) = [one for one in browser.get(page).document.forms if one.action == target]
        answer = browser.ask("POST", target, {**form.fields, "until": wrong})
        assert answer.status == 400, (wrong, answer.status)
    assert "Done." in browser.submit(page, target, until="1h30m", reason="r").document.text
    assert "Granting resumes by itself in" in browser.get(page).document.text
    assert native.ask("GET", f"/v1/pools/{pool}").body["paused_until"] is not None
    native.ask("POST", f"/v1/pools/{pool}:resume", {})
    assert "Done." in browser.submit(page, target, until="4:30", reason="r").document.text
    assert "T04:30:00" in native.ask("GET", f"/v1/pools/{pool}").body["paused_until"]


def test_the_end_of_a_pause_is_changed(native: Native) -> None:
    """Without a resumption, which would grant; the reason stays."""
    browser, pool = signed_in(native, "operator"), make_pool(native)
    page, target = f"/ui/pools/{pool}", f"/ui/pools/{pool}:pause"
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "no addresses"})
    assert "Done." in browser.submit(page, target, until="4:30").document.text
    found = native.ask("GET", f"/v1/pools/{pool}").body
    assert (found["paused"], found["pause_reason"]) == (True, "no addresses")
    assert "T04:30:00" in found["paused_until"]


def test_a_pool_over_its_limit_shows_the_form_that_changes_it(native: Native) -> None:
    """It is open at once; that of another pool is folded."""
    browser, pool = signed_in(native, "operator"), make_pool(native, limit=2)
    page = f"/ui/pools/{pool}"
    ask(native, pool)
    ask(native, pool)
    folded = '<details class="actions" id="tune"><summary>'
    assert folded in browser.get(page).body
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 1})
    assert folded.replace("><summary", " open><summary") in browser.get(page).body
