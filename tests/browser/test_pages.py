"""Every page, in both themes, at four widths, with and without JavaScript."""

import pytest

from tests.browser.conftest import Open
from tests.browser.example_ledger import ExampleLedger
from tests.browser.phone import PHONE, fits_on_a_phone

PAGES = (
    "overview",
    "pools",
    "pool",
    "what-if",
    "leases",
    "ticket",
    "ticket-any-of",
    "lease",
    "bookings",
    "booking",
    "booking-new",
    "booking-change",
    "booking-cancel",
    "fleet",
    "machines",
    "machine",
    "agent",
    "fit",
    "fit-found",
    "claim",
    "consumers",
    "consumer",
    "projects",
    "project",
    "host",
    "reshapes",
    "reshape",
    "reshape-undone",
    "undo",
    "undo-refused",
    "find",
    "audit",
    "changes",
    "api",
    "api-search",
    "api-operation",
    "api-parameters",
)
SHOWN_FIRST = ("booking-new", "booking-change", "booking-cancel")
NOT_LIVE = ("what-if", "claim", "undo", "undo-refused", "find", *SHOWN_FIRST, *PAGES[-4:])
WIDTHS = (360, 768, 1440)
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe-core that look at colours."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits(open_page: Open, ledger: ExampleLedger, name: str) -> None:
    """axe-core finds nothing, nothing is wider than the window, and no error is reported."""
    watched = open_page(ledger.pages[name], width=WIDTHS[-1])
    if name not in NOT_LIVE:
        watched.live()
    for width in WIDTHS:
        watched.page.set_viewport_size({"width": width, "height": 900})
        watched.picture(f"{name}-light-{width}")
        assert watched.overflow() == [], width
        assert watched.violations() == [], width
    # The themes differ in colours, at any width.
    watched.page.emulate_media(color_scheme="dark")
    watched.picture(f"{name}-dark-{width}")
    assert watched.violations(*COLOURS) == []
    watched.page.set_viewport_size({"width": PHONE, "height": 900})
    watched.picture(f"{name}-phone")
    fits_on_a_phone(watched)
    assert watched.problems == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_without_javascript(open_page: Open, ledger: ExampleLedger, name: str) -> None:
    """Its text is there, and its links and buttons are real ones."""
    watched = open_page(ledger.pages[name], script=False)
    assert watched.page.locator("h1").inner_text()
    assert watched.page.locator("main").inner_text().strip()
    assert watched.page.locator("#connection").inner_text() == "Reload to refresh."
    for link in watched.page.locator("main a").all():
        assert link.get_attribute("href")
    assert watched.problems == []


def test_a_ticket_says_what_each_alternative_waits_for(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """The one that is expected first comes first; also on a phone, where rows are cards."""
    watched = open_page(ledger.pages["ticket-any-of"], width=WIDTHS[0])
    rows = watched.page.locator("[aria-label=Alternatives] tbody tr")
    texts = [row.inner_text() for row in rows.all()]
    assert len(texts) == 3
    assert "1 of gpu" in texts[0]
    assert "paused: install/aws" in texts[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sign_in_page_is_accessible(
    open_page: Open, ledger: ExampleLedger, secrets: dict[str, str], theme: str
) -> None:
    """After a session has ended, and with an error on it."""
    watched = open_page("/ui/sign-in", role=None, theme=theme)
    watched.sign_in(secrets["reader"])
    watched.page.click("text=Sign out")
    watched.page.wait_for_url(f"{ledger.url}/ui/sign-in")
    watched.page.fill("#token", "wrong")
    watched.page.press("#token", "Enter")
    assert "not valid" in watched.page.locator("[role=alert]").inner_text()
    watched.picture(f"sign-in-{theme}-1440")
    assert watched.violations() == []
    assert watched.overflow() == []


def test_the_checks_find_faults(open_page: Open, ledger: ExampleLedger) -> None:
    """The control: a fault of contrast, one of width, and a missing label are found."""
    watched = open_page(ledger.pages["what-if"])  # it is not live: nothing removes the faults
    watched.page.evaluate(
        """() => {
            const faint = document.createElement("p");
            faint.textContent = "faint";
            faint.style.color = "#ddd";
            faint.style.width = "3000px";
            document.querySelector("main").append(faint, document.createElement("input"));
        }"""
    )
    found = " ".join(watched.violations())
    assert "color-contrast" in found
    colours = " ".join(watched.violations(*COLOURS))
    assert "color-contrast" in colours
    assert "label" not in colours
    assert "label" in found
    assert watched.overflow() != []
