"""An open page stays current."""

from playwright.sync_api import Page, Route

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger


def test_changes_appear_in_place(open_page: Open, ledger: ExampleLedger) -> None:
    """Figures change; typed text, the focus and opened details stay."""
    watched = open_page(f"/ui/pools/{POOL}", "operator")
    watched.live()
    page = watched.page
    page.fill("input[name=reason]", "half a sent")
    ledger.native.ask("PUT", f"/v1/pools/{POOL}", {"limit": 7, "hold": 1200, "pacing": None})
    page.wait_for_function("() => document.querySelector('[data-sum=units]').textContent === '7'")
    page.keyboard.type("ence")
    assert page.input_value("input[name=reason]") == "half a sentence"
    ledger.native.ask("PUT", f"/v1/pools/{POOL}", {"limit": 6, "hold": 1200, "pacing": None})
    page.wait_for_function("() => document.querySelector('[data-sum=units]').textContent === '6'")
    assert page.input_value("input[name=reason]") == "half a sentence"
    assert watched.problems == []


CHILDREN = "[...document.getElementById('main').children].map(one => one.localName)"


def stream_held(page: Page) -> list[Route]:
    """Return where the next stream of a page will be, which does not go on by itself."""
    held: list[Route] = []

    def go_on(route: Route) -> None:
        if route.request.resource_type == "eventsource":
            held.append(route)
        else:
            route.continue_()

    page.route("**/ui/leases", go_on)
    return held


def test_what_is_typed_before_the_stream_speaks_stays(open_page: Open) -> None:
    """The first state that the server sends changes nothing of a page that is current."""
    watched = open_page("/ui")
    page, held = watched.page, stream_held(watched.page)
    watched.go("/ui/leases")
    field = page.locator("input[name=pool]")
    field.click()
    page.keyboard.type("gp")
    before = page.evaluate(CHILDREN)
    (stream,) = held
    stream.continue_()
    watched.live()
    after = page.evaluate(CHILDREN)
    assert after == before
    page.keyboard.type("u")
    assert field.input_value() == "gpu"
    page.locator("h1").click()
    page.wait_for_url("**/ui/leases?pool=gpu*")
    assert watched.problems == []


def test_ages_tick(open_page: Open, ledger: ExampleLedger) -> None:
    """They are those of the command line, in the browser as on the server."""
    watched = open_page(f"/ui/leases/{ledger.ticket}")
    watched.live()
    texts = watched.page.evaluate(
        """async (seconds) => {
            const { ageText } = await import(
                document.querySelector("script[type=module]").src.replace("live.js", "ages.js")
            );
            return seconds.map(ageText);
        }""",
        [0, 59, 60, 61, 3599, 3600, 3660, 86399, 86400, 90000, 10**7],
    )
    assert texts == [
        "0s", "59s", "1m", "1m01s", "59m59s", "1h", "1h01m", "23h59m", "1d", "1d01h", "115d17h",
    ]  # fmt: skip
    before = watched.page.locator("time").first.inner_text()
    watched.page.wait_for_function(
        "(text) => document.querySelector('time').textContent !== text", arg=before
    )
