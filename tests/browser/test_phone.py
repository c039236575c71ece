"""Narrow screens: a short header, and nothing that is only seen by scrolling sideways."""

import pytest

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger
from tests.browser.phone import HEADER, HEADER_MAX, PHONE, SIDEWAYS, fits_on_a_phone

ASKED = {"needs": [{"pool": "shared", "units": 2}], "ttl": 3600, "patience": 3600}


def test_a_pool_with_shares_fits_on_a_phone(open_page: Open, ledger: ExampleLedger) -> None:
    """Its table has five columns, and what each sharer is ahead by is the last one."""
    native, pool = ledger.native, "shared"
    share = {"by": "label:team", "half_life": 3600, "weights": {"infrastructure": 3}}
    wanted = {"limit": 4, "pacing": None, "hold": 3600, "fair_share": share}
    assert native.ask("PUT", f"/v1/pools/{pool}", wanted).status < 300
    leases = [
        native.ask(
            "POST", "/v1/leases", {**ASKED, "key": f"share-{team}", "labels": {"team": team}}
        )
        for team in ("infrastructure", "machine-learning", "web")
    ]
    try:
        watched = open_page(f"/ui/pools/{pool}", width=PHONE)
        watched.picture("pool-shared-phone")
        assert "machine-learning" in watched.page.locator("main").inner_text()
        fits_on_a_phone(watched)
    finally:
        for lease in leases:
            native.ask("DELETE", f"/v1/leases/{lease.body['id']}")
        native.ask("DELETE", f"/v1/pools/{pool}")


@pytest.mark.parametrize("width", [560, 680, 844, 1024, 1100, 1280])
def test_the_header_is_short_at_any_width(open_page: Open, width: int) -> None:
    """On a phone that lies on its side, on tablets and small windows.

    Sums of the fleet, which have the widest table, are seen as a whole, except on some tablets.
    """
    watched = open_page("/ui/fleet?by=trait", width=width)
    assert watched.page.evaluate(HEADER)["height"] <= HEADER_MAX
    assert watched.overflow() == []
    assert 832 <= width <= 1024 or watched.page.evaluate(SIDEWAYS) == []
    watched.go("/ui/fleet")
    assert 832 <= width <= 1024 or watched.page.evaluate(SIDEWAYS) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_trial_fits_on_a_phone(open_page: Open, theme: str) -> None:
    """What an action will do, and its button; its tab says what it is about."""
    watched = open_page(f"/ui/pools/{POOL}", theme=theme, width=PHONE)
    page = watched.page
    page.click("summary:has-text('Change limit and pacing')")
    page.fill("input[name=limit]", "7")
    page.click("text=Show what it will do")
    page.wait_for_selector("button.danger")
    watched.picture(f"trial-phone-{theme}")
    assert page.title() == f"Change limit and pacing of {POOL} · Moorage"
    fits_on_a_phone(watched)
    assert watched.violations() == []
    assert watched.problems == []


def test_a_missing_page_keeps_the_navigation(open_page: Open, ledger: ExampleLedger) -> None:
    """Its sections, its search box and its shortcuts work."""
    watched = open_page("/ui", width=PHONE)
    page = watched.page
    for path in ("/ui/nothing", "/ui/leases/nothing", "/ui/leases?older=soon"):
        page.goto(ledger.url + path)
        assert page.locator("main [role=alert]").is_visible()
        fits_on_a_phone(watched)
        assert watched.violations() == []
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url(f"{ledger.url}/ui/pools")
    assert all("status of 40" in problem for problem in watched.problems)


def test_the_verdict_is_seen_at_once(open_page: Open, ledger: ExampleLedger) -> None:
    """Whether it fits is said above the form, which is longer than a screen."""
    for name in ("fit", "fit-found"):
        watched = open_page(ledger.pages[name], width=PHONE)
        alarm = watched.page.locator("main .alarm").first
        alarm.wait_for()
        box = alarm.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 500


def test_the_checks_find_faults(open_page: Open, ledger: ExampleLedger) -> None:
    """The control: a wide table, a high header, and a section out of sight are found."""
    watched = open_page(ledger.pages["api"], width=PHONE)
    watched.page.evaluate(
        """() => {
            const wide = document.createElement("p");
            wide.textContent = "wide";
            wide.style.width = "500px";
            const table = document.createElement("div");
            table.className = "table";
            table.append(wide);
            document.querySelector("main").append(table);
            const last = document.querySelector("header nav").lastElementChild;
            last.setAttribute("aria-current", "page");
            document.querySelector("header").style.height = "180px";
        }"""
    )
    header = watched.page.evaluate(HEADER)
    assert header["height"] > HEADER_MAX
    assert header["current"] == [False]
    assert len(watched.page.evaluate(SIDEWAYS)) == 1
