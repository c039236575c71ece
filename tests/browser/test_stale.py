"""A page that may be wrong says so over everything else, and not any more once it is current."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.buffering_proxy import BufferingProxy
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

SILENT = "00:50"
"""Longer than a page waits for a sign of life."""

IN_SIGHT = """() => {
    const { top, bottom, left, right } = document.getElementById('stale').getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    return top === 0 && right - left >= document.documentElement.clientWidth
        && document.elementFromPoint(x, y).closest('#stale') !== null;
}"""
"""Is the warning at the top of the window, as wide as that, with nothing over it?"""


@contextmanager
def opened(
    browser: Browser, native: Native, url: str, width: int = 1440, theme: str = "light"
) -> Iterator[WatchedPage]:
    """Open the page of pools, with a clock that can be set."""
    scheme = "dark" if theme == "dark" else "light"
    context = browser.new_context(
        viewport={"width": width, "height": 500}, color_scheme=scheme, reduced_motion="reduce"
    )
    watched = WatchedPage(context.new_page(), url)
    watched.page.clock.install()
    watched.sign_in(native.token("reader"))
    watched.go("/ui/pools")
    yield watched
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_a_killed_server_is_noticed_at_once(
    browser: Browser, tmp_path: Path, width: int, theme: str
) -> None:
    """Wherever the reader has scrolled to; a new server at the same place makes it current."""
    database = tmp_path / "moorage.sqlite"
    moorage = [os.environ["MOORAGE"]]
    with serve(database, "--no-access-log", moorage=moorage) as server:
        native = Native(server.url, database)
        for number in range(40):
            native.ask("PUT", f"/v1/pools/p{number}", {"limit": 2, "pacing": None})
        with opened(browser, native, server.url, width, theme) as watched:
            watched.live()
            os.kill(server.pid, signal.SIGKILL)
            watched.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            watched.warns("The server does not answer. What you see is from")
            assert watched.page.evaluate("window.scrollY") > 0
            assert watched.page.evaluate(IN_SIGHT)
            assert "old" in watched.page.locator("#stale > span").inner_text()
            assert watched.page.locator("#connection").inner_text().startswith("Not connected.")
            watched.picture(f"stale-{width}-{theme}")
            assert watched.violations() == []
            port = server.url.rpartition(":")[2]
            with serve(database, "--listen", f"127.0.0.1:{port}", moorage=moorage):
                watched.live()


def test_a_server_that_stands_still_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """It answers nothing, and nothing closes the connection; it goes on, and so does the page."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--no-access-log", moorage=[os.environ["MOORAGE"]]) as server:
        native = Native(server.url, database)
        with opened(browser, native, server.url) as watched:
            watched.live()
            os.kill(server.pid, signal.SIGSTOP)
            try:
                watched.page.clock.fast_forward(SILENT)
                watched.warns("The server does not answer.")
                assert watched.page.evaluate(IN_SIGHT)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            watched.live()


def test_a_proxy_that_keeps_the_stream_to_itself_is_noticed(
    browser: Browser, tmp_path: Path
) -> None:
    """It answers pages, and collects what the stream says. Let through, the page is current."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--no-access-log", moorage=[os.environ["MOORAGE"]]) as server:
        native = Native(server.url, database)
        with (
            BufferingProxy(server.url) as proxy,
            opened(browser, native, proxy.url) as watched,
        ):
            watched.page.clock.fast_forward(SILENT)
            watched.warns("The server does not answer.")
            proxy.buffers = False
            watched.page.clock.fast_forward(SILENT)
            watched.live()
