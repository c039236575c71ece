"""Every page below a path, as a browser sees it: files, streams, forms and the map."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.example_ledger import ExampleLedger
from tests.browser.test_pages import NOT_LIVE, PAGES
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

PREFIX = "/placement"


@pytest.fixture(scope="module")
def below(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ExampleLedger, WatchedPage, list[str]]]:
    """Return a ledger below a path, a reader who is signed in there, and what the browser asks."""
    database = tmp_path_factory.mktemp("below") / "moorage.sqlite"
    options = ("--no-access-log", "--path-prefix", PREFIX)
    with serve(database, *options, moorage=[os.environ["MOORAGE"]]) as server:
        native = Native(server.url, Path(database))
        ledger = ExampleLedger(native)
        context = browser.new_context()
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        watched = WatchedPage(context.new_page(), f"{server.url}{PREFIX}")
        watched.sign_in(native.token("admin", name="below"))
        yield ledger, watched, asked
        context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_below_a_path(below: Any, name: str) -> None:
    """No error, nothing is asked for outside of the path, and the page is live."""
    ledger, watched, asked = below
    watched.go(ledger.pages[name])
    if name not in NOT_LIVE:
        watched.live()
    assert watched.problems == []
    assert asked
    assert all(url.startswith(watched.url) for url in asked)


def test_a_form_works_below_a_path(below: Any) -> None:
    """It returns to a page below the path."""
    ledger, watched, _ = below
    watched.go(ledger.pages["overview"])
    watched.page.click("text=Sign out")
    watched.page.wait_for_url(f"{watched.url}/ui/sign-in")
