"""Links from other sites, such as the page of a CI job, lead signed-in readers to their page."""

import pytest

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger

ELSEWHERE = "http://ci.example/job"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_link_of_another_site_opens_the_page(
    open_page: Open, ledger: ExampleLedger, script: bool
) -> None:
    """Browsers do not send the cookie with it, because it is SameSite=Strict."""
    watched = open_page("/ui", script=script)
    page, address = watched.page, f"{ledger.url}/ui/pools/{POOL}?since=3600"
    page.route(
        f"{ELSEWHERE}*",
        lambda route: route.fulfill(
            body=f'<!doctype html><a href="{address}">pool</a>', content_type="text/html"
        ),
    )
    page.goto(ELSEWHERE)
    page.click("a")
    page.wait_for_selector("h1:has-text('azure'), #token")
    assert page.locator("#token").count() == 0, "it asks a signed-in reader for a token"
    assert page.url == address
    page.context.clear_cookies()
    page.goto(ELSEWHERE)
    page.click("a")
    page.wait_for_selector("#token")  # the control: somebody who is not signed in
