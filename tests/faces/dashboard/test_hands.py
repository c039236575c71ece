"""What the owner of a lease does on its page: extends it, keeps it, and hands it over."""

from tests.faces.dashboard.support.browserless import Browser, Page, confirming, signed_in
from tests.faces.v1.leasing import ask, lease_action, make_pool
from tests.faces.v1.native import Native


def actions(page: Page) -> set[str]:
    """Return the last words of the targets of the forms of a page."""
    return {form.action.rpartition("/")[2] for form in page.document.forms}


def reader(native: Native, token: str) -> Browser:
    """Return a reader with a token."""
    browser = Browser(native.url)
    assert browser.sign_in(token).status == 303
    return browser


def submitted(browser: Browser, page: Page, word: str, **fields: str) -> Page:
    """Fill in the form of a page whose target ends with a word."""
    (form,) = [one for one in page.document.forms if one.action.endswith(f"/{word}")]
    return browser.ask("POST", form.action, {**form.fields, **fields})


def test_an_owner_extends_and_keeps_its_lease(native: Native) -> None:
    """After a preview, as an operator; the page of another owner has no such forms."""
    ann = native.token("user", "shop", "ann")
    pool = make_pool(native, hold=60.0, hold_max=7200.0, pacing=None)
    lease = ask(native, pool, token=ann).body["id"]
    path = f"/ui/leases/{lease}"
    browser = reader(native, ann)
    page = browser.get(path)
    assert {"hold", "keep", "offer"} <= actions(page)
    assert not {"revoke", "hold", "keep"} & actions(signed_in(native, "reader").get(path))
    shown = submitted(browser, page, "hold", hold="1h")
    assert "It may last 1h from now on." in shown.document.text
    done = browser.ask("POST", f"{path}/hold", confirming(shown, f"{path}/hold").fields)
    assert "Done." in done.document.text
    assert "hold must be at most" in submitted(browser, page, "hold", hold="3h").document.text
    ask(native, pool)
    shown = submitted(browser, page, "keep", until="30m", reason="the disk")
    assert "It is kept for inspection for 30m" in shown.document.text
    browser.ask("POST", f"{path}/keep", confirming(shown, f"{path}/keep").fields)
    kept = browser.get(path).document.text
    assert "Kept for inspection: the disk" in kept.replace("\n", " ")
    assert "1 waits in line for its units" in kept
    assert "kept for inspection: the disk" in browser.get(f"/ui/leases?pool={pool}").document.text


def test_a_lease_is_handed_over_on_the_page(native: Native) -> None:
    """The giver offers and withdraws; only the receiver sees the buttons to accept and decline."""
    tokens = {name: native.token("user", "shop", name) for name in ("ann", "bob", "eve")}
    browsers = {name: reader(native, one) for name, one in tokens.items()}
    lease = ask(native, make_pool(native), token=tokens["ann"]).body["id"]
    path = f"/ui/leases/{lease}"
    submitted(browsers["ann"], browsers["ann"].get(path), "offer", to="shop/bob", lasts="10m")
    offered = browsers["ann"].get(path)
    assert "Offered to shop/bob" in offered.document.text
    submitted(browsers["ann"], offered, "withdraw")
    assert "Offered to" not in browsers["ann"].get(path).document.text
    submitted(browsers["ann"], browsers["ann"].get(path), "offer", to="shop/bob")
    assert {"accept", "decline"} <= actions(browsers["bob"].get(path))
    assert not {"accept", "decline"} & actions(browsers["eve"].get(path))
    submitted(browsers["bob"], browsers["bob"].get(path), "decline")
    submitted(browsers["ann"], browsers["ann"].get(path), "offer", to="shop/bob")
    submitted(browsers["bob"], browsers["bob"].get(path), "accept")
    ended = browsers["ann"].get(path).document.text
    assert "handed over" in ended and "to shop/bob" in ended
    (taken,) = native.ask("GET", "/v1/leases?owner=shop/bob&state=granted").body["leases"]
    new = browsers["bob"].get(f"/ui/leases/{taken['id']}").document
    assert path in new.links and "Taken over from another owner" in new.text
    assert lease_action(native, taken["id"], "renew", token=tokens["bob"]).status == 200
