"""A real Chromium, and a server whose every page has something to show."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, StorageState, sync_playwright

from tests.browser.example_ledger import ExampleLedger
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

Open = Callable[..., WatchedPage]
Sessions = dict[str, StorageState]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the pictures of this run are."""
    folder = Path(os.environ["PICTURES"])
    count = len([*folder.glob("*.png")])
    terminalreporter.write_line(f"browser: {count} pictures of pages are in {folder}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the browser that `make browser` provides."""
    with sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox, and tests may run as root.
        started = playwright.chromium.launch(
            executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleLedger]:
    """Return a server with something on every page."""
    database = tmp_path_factory.mktemp("ledger") / "moorage.sqlite"
    moorage = [os.environ["MOORAGE"]]
    with serve(database, "--no-access-log", moorage=moorage) as server:
        yield ExampleLedger(Native(server.url, database))


@pytest.fixture(scope="session")
def secrets(ledger: ExampleLedger) -> dict[str, str]:
    """Return a token of each role."""
    return {role: ledger.native.token(role) for role in ("reader", "operator", "admin")}


@pytest.fixture(scope="session")
def sessions(browser: Browser, ledger: ExampleLedger, secrets: dict[str, str]) -> Sessions:
    """Return the cookies of a reader of each role, who has signed in with the form."""
    found: Sessions = {}
    for role, secret in secrets.items():
        context = browser.new_context()
        WatchedPage(context.new_page(), ledger.url).sign_in(secret)
        found[role] = context.storage_state()
        context.close()
    return found


@pytest.fixture
def open_page(browser: Browser, ledger: ExampleLedger, sessions: Sessions) -> Iterator[Open]:
    """Return a function that opens a page as a reader with a role who is signed in, or as nobody.

    The session is shared with other tests: who signs out opens a page as nobody, and signs in.
    """
    contexts: list[BrowserContext] = []

    def opened(
        path: str,
        role: str | None = "admin",
        *,
        theme: str = "light",
        width: int = 1440,
        script: bool = True,
    ) -> WatchedPage:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
            storage_state=sessions[role] if role else None,
        )
        contexts.append(context)
        watched = WatchedPage(context.new_page(), ledger.url)
        watched.go(path)
        return watched

    yield opened
    for context in contexts:
        context.close()
