"""What every page has for the hands: the search box, shortcuts, sorting, copying, themes, times."""

import re

import pytest

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger

ROWS = "main table tbody tr td:nth-child({})"


def test_slash_finds_from_any_page(open_page: Open, ledger: ExampleLedger) -> None:
    """The slash focuses the box, Enter searches, and a hit leads to its page."""
    watched = open_page(ledger.pages["audit"])
    page = watched.page
    page.keyboard.press("/")
    page.keyboard.type("rack01-node07")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/find?text=rack01-node07")
    page.click("main a:text-is('rack01-node07')")
    page.wait_for_url("**/ui/fleet/machines/*")
    assert page.locator("h1").inner_text().startswith("rack01-node07")
    assert watched.problems == []


def test_shortcuts_lead_to_sections(open_page: Open, ledger: ExampleLedger) -> None:
    """`g p` opens the pools; `?` lists all shortcuts; in a field they are letters."""
    watched = open_page("/ui/audit")
    page = watched.page
    page.locator("main input[name=target]").press_sequentially("gp/?")
    assert page.locator("main input[name=target]").input_value() == "gp/?"
    page.locator("h1").click()
    page.keyboard.press("?")
    assert page.locator("dialog#keys").is_visible()
    listed = page.locator("dialog#keys dd").all_inner_texts()
    assert {"Pools", "Fleet", "Audit"} <= {*listed}
    assert watched.violations() == []
    page.keyboard.press("Escape")
    assert not page.locator("dialog#keys").is_visible()
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url(f"{ledger.url}/ui/pools")
    assert watched.problems == []


def test_rows_stay_sorted_while_the_page_changes(open_page: Open, ledger: ExampleLedger) -> None:
    """By numbers as numbers, up and down, and after the server has sent the page again."""
    watched = open_page("/ui/leases?state=granted")
    page = watched.page
    watched.live()
    title = page.locator("main th button.sort", has_text="Units")
    title.click()
    units = page.locator(ROWS.format(3)).all_inner_texts()
    assert len(units) > 3
    assert units == sorted(units, key=_number)
    assert page.locator("main th[aria-sort=ascending]").inner_text().strip().startswith("Units")
    title.click()
    assert page.locator(ROWS.format(3)).all_inner_texts() == sorted(
        units, key=_number, reverse=True
    )
    before = page.locator("[data-revision]").inner_text()
    ledger.native.ask("PUT", "/v1/pools/sorted-anew", {"limit": 1})
    page.wait_for_function(
        "(before) => document.querySelector('[data-revision]').textContent !== before", arg=before
    )
    after = page.locator(ROWS.format(3)).all_inner_texts()
    assert after == sorted(after, key=_number, reverse=True)
    assert page.locator("main th[aria-sort=descending]").count() == 1
    assert watched.problems == []


def _number(text: str) -> tuple[int, str]:
    found = re.match(r"\d+", text)
    return (int(found[0]) if found else 0, text)


@pytest.mark.parametrize("allowed", [True, False])
def test_an_id_can_be_copied(open_page: Open, ledger: ExampleLedger, allowed: bool) -> None:
    """With the clipboard of HTTPS, and without it."""
    watched = open_page(f"/ui/leases/{ledger.ticket}")
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if not allowed:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.click("button[data-copy]")
    page.wait_for_function("document.querySelector('button[data-copy]').textContent === 'Copied'")
    other = page.context.new_page()
    other.goto(f"{ledger.url}/ui")
    assert other.evaluate("navigator.clipboard.readText()") == ledger.ticket
    assert watched.problems == []


def test_a_theme_lasts_and_beats_the_system(open_page: Open, ledger: ExampleLedger) -> None:
    """It is there before anything is painted on the next page; a third click follows the system."""
    watched = open_page("/ui", theme="light")
    page = watched.page
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    dark = page.evaluate(ground)
    assert dark != light
    watched.go("/ui/fleet")
    assert page.evaluate(ground) == dark
    assert page.locator("#theme").inner_text() == "Theme: dark"
    assert watched.violations() == []
    page.click("#theme")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == light
    page.click("#theme")
    assert page.evaluate(ground) == dark
    assert watched.problems == []


def test_a_plot_says_what_was(open_page: Open, ledger: ExampleLedger) -> None:
    """Below the pointer, and with arrow keys."""
    watched = open_page(f"/ui/pools/{POOL}")
    page = watched.page
    watched.live()
    page.locator("svg.plot").hover(position={"x": 300, "y": 60})
    said = page.locator("figure output").inner_text()
    assert re.search(r"\d+ in use, \d+ waiting", said)
    page.focus("svg.plot")
    page.keyboard.press("End")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    assert page.locator("figure output").inner_text() != said
    assert watched.problems == []


def test_ages_can_be_shown_as_times(open_page: Open, ledger: ExampleLedger) -> None:
    """On the next page, too."""
    watched = open_page("/ui/leases")
    page = watched.page
    age = page.locator("main time.age").first
    assert re.fullmatch(r"(\d+[dhms])+", age.inner_text())
    page.click("#times")
    assert re.search(r"\d{4}.*\d:\d\d", age.inner_text())
    watched.go("/ui/audit")
    assert re.search(r"\d{4}.*\d:\d\d", page.locator("main time.age").first.inner_text())
    assert watched.violations() == []
    assert watched.problems == []
