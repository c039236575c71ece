"""What a reader does on an open page stays, its buttons work, and the page says when it is old."""

from playwright.sync_api import Route

from tests.browser.conftest import Open
from tests.browser.example_ledger import ExampleLedger
from tests.browser.watched_page import WatchedPage
from tests.faces.v1.native import Native

FORMS = """() => [...document.querySelectorAll("main form")].map((form) =>
    form.action.split(/[/:]/).pop() + ": " + form.querySelector("button").textContent)
"""


def pool_with_a_ticket(native: Native, pool: str) -> tuple[str, str]:
    """Return the lease of a pool's only unit, and a ticket that waits for it."""
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 1, "pacing": None})
    wanted = {"needs": [{"pool": pool}], "ttl": 3600, "patience": 3600}
    lease, ticket = (
        native.ask("POST", "/v1/leases", {**wanted, "key": f"{pool}-{number}"}).body["id"]
        for number in range(2)
    )
    return lease, ticket


def says(watched: WatchedPage, words: str) -> None:
    """Wait until the page says something about its connection."""
    watched.page.wait_for_function(
        "(words) => document.getElementById('connection').textContent.includes(words)", arg=words
    )


def test_a_focused_button_never_becomes_that_of_another_form(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """Also if what it does is no longer possible: a ticket was granted, a pool was paused."""
    lease, ticket = pool_with_a_ticket(ledger.native, "focus")
    watched = open_page(f"/ui/leases/{ticket}")
    watched.live()
    assert "first: Move to the front" in watched.page.evaluate(FORMS)
    watched.page.get_by_role("button", name="Move to the front").focus()
    ledger.native.ask("DELETE", f"/v1/leases/{lease}")
    watched.page.wait_for_function("() => document.querySelector('h1').textContent[0] === 'L'")
    assert watched.page.evaluate(FORMS) == [
        "revoke: Revoke",
        "hold: Change its end",
        "keep: Keep for inspection",
        "offer: Offer",
    ]
    watched.go("/ui/pools/focus")
    watched.live()
    watched.page.get_by_role("button", name="Pause granting").focus()
    ledger.native.ask("POST", "/v1/pools/focus:pause", {})
    watched.page.wait_for_selector("main .alarm")
    assert watched.page.evaluate(FORMS) == [
        "resume: Resume granting",
        "pause: Pause until then",
        "tune: Show what it will do",
    ]
    assert watched.problems == []


def test_a_focused_link_never_becomes_that_of_another_pool(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """The fullest pools change places; each link stays beside the figures of its pool."""
    native = ledger.native
    for name in ("full/a", "full/b"):
        pool_with_a_ticket(native, name)
    watched = open_page("/ui")
    watched.live()
    watched.page.locator("#pool-full\\/a h3 a").focus()
    native.ask("PUT", "/v1/pools/full/a", {"limit": 50, "pacing": None})
    watched.page.wait_for_function(
        "() => document.querySelector('[id=\"pool-full/a\"] [data-sum=units]').textContent === '50'"
    )
    names = watched.page.evaluate(
        """() => [...document.querySelectorAll(".cards .card")].map((card) =>
            card.id === "pool-" + card.querySelector("h3 a").textContent)"""
    )
    assert all(names), names


def test_typed_text_stays_when_the_focus_has_moved_on(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """Until the form is sent; a field that nobody has touched follows the server."""
    native = ledger.native
    _, ticket = pool_with_a_ticket(native, "typed")
    watched = open_page(f"/ui/leases/{ticket}")
    watched.live()
    page = watched.page
    page.fill("input[name=reason]", "the host is gone")
    page.get_by_role("button", name="Revoke").focus()
    native.ask("POST", f"/v1/leases/{ticket}/move", {"priority": 4})
    page.wait_for_function("() => document.querySelector('[name=priority]').value === '4'")
    assert page.input_value("input[name=reason]") == "the host is gone"


def test_open_details_stay_open(open_page: Open, ledger: ExampleLedger) -> None:
    """On a page whose rows move."""
    watched = open_page("/ui/audit")
    watched.live()
    details = watched.page.locator("details").first
    details.locator("summary").click()
    row = details.locator("xpath=ancestor::tr").get_attribute("id")
    ledger.native.token("reader")
    watched.page.wait_for_function(
        "(row) => document.querySelector('tbody tr').id !== row", arg=row
    )
    assert watched.page.locator(f"#{row} details").get_attribute("open") is not None


def test_a_page_tries_again_after_an_answer_that_is_no_stream(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """For example that of a proxy in front of a server that restarts."""
    watched = open_page("/ui/audit")

    def unavailable(route: Route) -> None:
        route.fulfill(status=502, body="Bad Gateway")

    watched.page.route("**/ui/pools", unavailable)
    watched.page.evaluate("history.replaceState(null, '', '/ui/pools')")
    watched.page.evaluate("window.dispatchEvent(new Event('pagehide'))")
    watched.page.evaluate("window.dispatchEvent(new Event('pageshow'))")
    says(watched, "Not connected")
    watched.warns("does not answer")
    watched.page.unroute("**/ui/pools")
    watched.live()


def test_a_page_says_why_it_cannot_be_shown_any_more(
    open_page: Open, ledger: ExampleLedger
) -> None:
    """Its pool was deleted; if there is one of this name again, it is current again."""
    wanted = {"limit": 2, "pacing": None}
    ledger.native.ask("PUT", "/v1/pools/short", wanted)
    watched = open_page("/ui/pools/short")
    watched.live()
    assert ledger.native.ask("DELETE", "/v1/pools/short").status == 204
    watched.warns("There is no pool")
    ledger.native.ask("PUT", "/v1/pools/short", wanted)
    watched.live()
    assert watched.problems == []


def test_a_double_click_is_one_action(open_page: Open, ledger: ExampleLedger) -> None:
    """What was done is said once, and not again after a reload."""
    native = ledger.native
    _, ticket = pool_with_a_ticket(native, "twice")
    watched = open_page(f"/ui/leases/{ticket}")
    watched.live()
    page, posts = watched.page, []
    page.on("request", lambda one: posts.append(one.url) if one.method == "POST" else None)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Grant now").dblclick()
    page.wait_for_selector("h2:has-text('What it will do')")
    page.get_by_role("button", name="Grant over the limit").dblclick()
    page.wait_for_selector(".notice")
    assert page.locator(".notice").inner_text() == "Done."
    assert len(posts) == 2, "the preview and the action"
    page.get_by_role("link", name="Back to").click()
    watched.live()
    assert page.locator(".notice").count() == 0
    assert watched.problems == []
