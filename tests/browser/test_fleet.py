"""The map of the fleet: by keyboard, by search, live, and in the colours of its figures."""

from uuid import uuid4

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Open
from tests.browser.example_ledger import ExampleLedger
from tests.browser.watched_page import WatchedPage

RACKS, EACH = 20, 20
FULL, EMPTY = "CUSTOM_MAPPED_FULL", "CUSTOM_MAPPED_EMPTY"

COUNT = """() => {
    const map = document.getElementById("map"), canvas = document.getElementById("canvas");
    const text = getComputedStyle(map).getPropertyValue("--map-full");
    const full = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let i = 0; i < data.length; i += 4) count += full.every((one, j) => data[i + j] === one);
    return count;
}"""
"""Returns how many pixels have the colour of a full machine."""


@pytest.fixture(scope="module")
def racks(ledger: ExampleLedger) -> str:
    """Create machines in racks, one of which is full of its only class; return its name."""
    prefix = f"mapped{uuid4().hex[:8]}"
    providers = [
        {
            "uuid": str(uuid4()),
            "name": f"{prefix}r{rack:02}-n{number:02}",
            "inventories": {EMPTY: {"total": 4}},
        }
        for rack in range(RACKS)
        for number in range(EACH)
    ]
    providers[-1]["inventories"] = {FULL: {"total": 4}}
    wanted = {"create_vocabulary": True, "providers": providers}
    assert ledger.native.ask("POST", "/v1/providers:bulk", wanted).status == 200
    claim = {"project_id": "p", "user_id": "u", "groups": [{"resources": {FULL: 4}}]}
    assert ledger.native.ask("POST", "/v1/claims", claim).status == 201
    return str(providers[-1]["name"])


def ready(watched: WatchedPage) -> Page:
    """Wait until the map is drawn as of the revision of the page."""
    watched.page.wait_for_function(
        "() => document.getElementById('map-revision').textContent"
        " === document.querySelector('[data-revision]').textContent"
    )
    # The next frame draws what the text tells already.
    watched.page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    return watched.page


def test_a_machine_is_found_and_opened_by_keyboard(open_page: Open, racks: str) -> None:
    """The search shows how many match, the address keeps it, Enter opens the machine."""
    watched = open_page("/ui/fleet?group=name")
    page = ready(watched)
    page.locator("[name=find]").focus()
    page.keyboard.type(racks.rpartition("-")[0])
    page.wait_for_function(
        "(text) => document.getElementById('machine').textContent.startsWith(text)",
        arg=f"{EACH} of ",
    )
    page.keyboard.press("Enter")
    assert racks.rpartition("-")[0] in page.url
    page.locator("#canvas").focus()
    seen = [page.locator("#machine").inner_text().partition(" ")[0]]
    for key in ["ArrowRight"] * (EACH - 1):
        page.keyboard.press(key)
        seen.append(page.locator("#machine").inner_text().partition(" ")[0])
    assert seen == sorted(set(seen)) and len(seen) == EACH
    assert seen[-1] == racks
    assert "100 % used" in page.locator("#machine").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/fleet/machines/*")
    assert page.locator("h1").inner_text() == racks
    assert watched.problems == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_those_of_the_figures(open_page: Open, racks: str, theme: str) -> None:
    """A full machine has the colour of full ones; where none is full, no pixel has it."""
    assert racks
    full = open_page(f"/ui/fleet?group=name&colour=used&class={FULL}", theme=theme)
    ready(full).wait_for_function(f"() => ({COUNT})() > 0")
    empty = open_page(f"/ui/fleet?group=name&colour=used&class={EMPTY}", theme=theme)
    assert ready(empty).evaluate(COUNT) == 0
    assert full.problems + empty.problems == []


def test_the_map_follows_changes(open_page: Open, ledger: ExampleLedger, racks: str) -> None:
    """It is read again after a change; the chosen machine, zoom and focus stay."""
    watched = open_page("/ui/fleet?group=name")
    watched.live()
    page = ready(watched)
    before = page.locator("#map-revision").inner_text()
    page.locator("[name=find]").fill(racks)
    page.keyboard.press("Enter")
    page.locator("#canvas").focus()
    page.keyboard.press("+")
    assert page.locator("#canvas").get_attribute("data-zoomed") is not None
    chosen = page.locator("#machine").inner_text()
    claim = {"project_id": "p", "user_id": "u", "groups": [{"resources": {EMPTY: 1}}]}
    assert ledger.native.ask("POST", "/v1/claims", claim).status == 201
    page.wait_for_function(
        "(text) => document.querySelector('[data-revision]').textContent !== text", arg=before
    )
    ready(watched)
    assert page.locator("#machine").inner_text() == chosen
    assert page.locator("#canvas").get_attribute("data-zoomed") is not None
    assert page.evaluate("document.activeElement.id") == "canvas"
    page.keyboard.press("0")
    assert page.locator("#canvas").get_attribute("data-zoomed") is None
    assert watched.problems == []
