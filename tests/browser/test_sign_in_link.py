"""A one-time link in a real browser: the code is nowhere afterwards, and works once."""

import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import Server, serve


def made(server: Server, database: Path) -> str:
    """Return the link that `moorage dashboard` prints."""
    done = subprocess.run(
        [os.environ["MOORAGE"], "dashboard", "--database", f"sqlite:///{database}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    link = done.stdout.strip()
    assert link.startswith(f"{server.url}/ui/sign-in#link="), done
    return link


@pytest.mark.parametrize("by_file", [False, True])
def test_a_link_is_followed_once(browser: Browser, tmp_path: Path, by_file: bool) -> None:
    """From the terminal, or from the file that the command opens; two browsers have it."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, moorage=[os.environ["MOORAGE"]]) as server:
        link = made(server, database)
        code = link.partition("#link=")[2]
        start = link
        if by_file:
            file = tmp_path / "dashboard.html"
            file.write_text(f'<meta http-equiv="refresh" content="0; url={link}">')
            start = f"file://{file}"
        context = browser.new_context()
        watched = WatchedPage(context.new_page(), server.url)
        referrers: list[str] = []
        watched.page.on("request", lambda one: referrers.append(one.headers.get("referer", "")))
        watched.page.goto(start)
        button = watched.page.get_by_role("button", name="Sign in as admin")
        button.wait_for()
        assert watched.violations() == []
        assert code not in watched.page.url
        button.click()
        watched.page.wait_for_url(f"{server.url}/ui")
        watched.live()
        assert watched.problems == []
        assert not any(code in one for one in referrers)
        inside = context.new_cdp_session(watched.page)
        entries = inside.send("Page.getNavigationHistory")["entries"]
        # What "back" leads to. Chromium remembers what was typed there: a link that has been used.
        assert len(entries) >= 2 and not any(code in one["url"] for one in entries), entries
        context.close()

        other = browser.new_context()
        late = WatchedPage(other.new_page(), server.url)
        late.page.goto(link)
        late.page.get_by_role("alert").wait_for()
        assert "has been used" in late.page.inner_text("#error")
        assert other.cookies() == []
        other.close()
        assert any("/ui/sign-in" in line for line in server.said), "the control: there is a log"
        assert not any(code in line for line in server.said)


def test_without_a_script_nothing_happens(browser: Browser, tmp_path: Path) -> None:
    """The page asks for a token, and the link is not used."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, moorage=[os.environ["MOORAGE"]]) as server:
        link = made(server, database)
        plain = browser.new_context(java_script_enabled=False)
        page = plain.new_page()
        page.goto(link)
        assert page.is_visible("#token")
        plain.close()
        scripted = browser.new_context()
        page = scripted.new_page()
        page.goto(link)
        page.get_by_role("button", name="Sign in as admin").wait_for()
        scripted.close()
