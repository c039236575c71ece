"""Every task can be done with the keyboard, and at each stop the reader sees where the focus is."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger

STOPS_MAX = 150

STOP = """(wanted) => {
    const one = document.activeElement, style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    const inside = box.bottom > 0 && box.top < innerHeight
        && box.right > 0 && box.left < innerWidth;
    const ringed = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    return {
        there: one.matches(wanted),
        seen: inside && ringed && box.width > 0,
        text: one.outerHTML.slice(0, 120),
    };
}"""
"""Tells of the element with the focus whether it is the wanted one, and whether one sees it."""


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until an element has the focus; at each stop it is to be seen."""
    for _ in range(STOPS_MAX):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP, wanted)
        assert stop["seen"], f"nothing shows that the focus is at {stop['text']}"
        if stop["there"]:
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def follow(page: Page, wanted: str, address: str) -> None:
    """Go to a link or button with Tab, and press Enter; wait for the next page."""
    tab_to(page, wanted)
    page.keyboard.press("Enter")
    page.wait_for_url(address)


def test_the_first_stop_skips_to_the_content(open_page: Open, ledger: ExampleLedger) -> None:
    """From there a form can be filled in and sent."""
    watched = open_page(f"/ui/leases/{ledger.ticket}", "operator")
    page = watched.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to(page, "input[name=priority]")
    page.keyboard.press("Control+A")
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    page.wait_for_url("**/priority")
    tab_to(page, "main form.card button")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .notice")
    assert "Done." in page.locator("main .notice").inner_text()
    assert watched.problems == []


def test_signing_out_and_in(
    open_page: Open, ledger: ExampleLedger, secrets: dict[str, str]
) -> None:
    """The field for the token has the focus at once."""
    watched = open_page("/ui/sign-in", role=None)
    watched.sign_in(secrets["reader"])
    page = watched.page
    follow(page, ".reader button", "**/ui/sign-in")
    assert page.evaluate("document.activeElement.id") == "token"
    page.keyboard.type(secrets["reader"])
    follow(page, "button", f"{ledger.url}/ui")
    assert page.locator("h1").inner_text() == "Overview"
    assert watched.problems == []


def test_asking_what_another_limit_would_do(open_page: Open) -> None:
    """From the overview to the form; arrows move its slider, and nothing is sent before Enter."""
    watched = open_page("/ui")
    page = watched.page
    follow(page, "header a[href='/ui/pools']", "**/ui/pools")
    follow(page, f"main a[href='/ui/pools/{POOL}']", f"**/ui/pools/{POOL}")
    follow(page, "a[href$=':what-if']", "**:what-if")
    tab_to(page, "input[name=limit]")
    limit = int(page.get_by_role("slider", name="Limit").input_value())
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("output").first.inner_text() == str(limit + 3)
    assert page.evaluate("document.activeElement.name") == "limit"
    follow(page, "form.filter button", f"**:what-if?limit={limit + 3}&interval=0&burst=1")
    assert page.locator("output").first.inner_text() == str(limit + 3)
    assert watched.problems == []


def test_the_next_page_of_a_long_table(open_page: Open) -> None:
    """Its link is behind the rows; the one back is there as well."""
    watched = open_page("/ui/fleet/machines")
    page, names = watched.page, "tbody th a"
    first = page.locator(names).all_inner_texts()
    follow(page, "a[rel=next]", "**?after=*")
    assert not {*first} & {*page.locator(names).all_inner_texts()}
    follow(page, ".pager a", "**/ui/fleet/machines")
    assert page.locator(names).all_inner_texts() == first
    assert watched.problems == []


def test_filtering_lists(open_page: Open) -> None:
    """Leaving a field or choosing an entry does not load the page; Enter or the button does."""
    watched = open_page("/ui/changes")
    page = watched.page
    tab_to(page, "select[name=kind]")
    page.keyboard.type("pool")
    assert page.locator("select").input_value() == "pool"
    follow(page, "form.filter button", "**/ui/changes?kind=pool*")
    assert {*page.locator("tbody tr td:nth-child(2)").all_inner_texts()} == {"pool"}
    watched.go("/ui/leases")
    tab_to(page, "input[name=pool]")
    page.keyboard.type("gpu")
    tab_to(page, "input[name=owner]")
    assert page.url.endswith("/ui/leases")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/leases?pool=gpu*")
    assert {*page.locator("tbody td:nth-child(3) a").all_inner_texts()} == {"gpu"}
    assert watched.problems == []


def test_with_the_pointer_a_filter_is_sent_at_once(open_page: Open) -> None:
    """As soon as the reader leaves the field."""
    watched = open_page("/ui/leases")
    page = watched.page
    page.locator("input[name=pool]").click()
    page.keyboard.type("gpu")
    page.locator("h1").click()
    page.wait_for_url("**/ui/leases?pool=gpu*")
    assert watched.problems == []


def test_a_hidden_focus_is_found(open_page: Open) -> None:
    """The control: without its outline the walk ends at the first stop."""
    page = open_page("/ui").page
    page.evaluate(
        "document.styleSheets[0].insertRule('* { outline: none !important; }',"
        " document.styleSheets[0].cssRules.length)"
    )
    with pytest.raises(AssertionError, match="nothing shows"):
        tab_to(page, "header a[href='/ui/pools']")
