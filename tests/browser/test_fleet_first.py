"""The map of a fleet that begins empty, and what it says about a machine below the pointer."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser

from tests.browser.test_fleet import ready
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

MACHINES = 400


@pytest.fixture
def native(tmp_path: Path) -> Iterator[Native]:
    """Return a server with nothing in it."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--no-access-log", moorage=[os.environ["MOORAGE"]]) as server:
        yield Native(server.url, database)


@pytest.mark.parametrize("width", [390, 1440])
def test_a_map_appears_with_the_first_machines(
    browser: Browser, native: Native, width: int
) -> None:
    """Before, no empty canvas is shown, but what to type; then the open page has the map.

    What it says about a machine is on the screen, even if the map is longer.
    """
    context = browser.new_context(viewport={"width": width, "height": 700})
    watched = WatchedPage(context.new_page(), native.url)
    watched.sign_in(native.secret)
    watched.go("/ui/fleet")
    watched.live()
    page = watched.page
    assert "openstack resource provider create" in page.locator("#no-machines").inner_text()
    assert not page.locator("#canvas").is_visible()
    machines = [
        {"uuid": str(uuid4()), "name": f"r0-n{number:03}", "inventories": {"VCPU": {"total": 8}}}
        for number in range(MACHINES)
    ]
    assert native.ask("POST", "/v1/providers:bulk", {"providers": machines}).status == 200
    page.wait_for_selector("#no-machines", state="detached")
    ready(watched)
    page.wait_for_function(
        "(text) => document.getElementById('machine').textContent.startsWith(text)",
        arg=f"{MACHINES} machines in 1 group",
    )
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    page.mouse.wheel(0, box["y"] - 300)
    page.wait_for_function("(y) => scrollY > 0 || y <= 300", arg=box["y"])
    page.locator("#canvas").hover(position={"x": box["width"] / 2, "y": 100})
    said = page.locator("#machine")
    page.wait_for_function("document.getElementById('machine').textContent.startsWith('r0-n')")
    below = said.bounding_box()
    assert below is not None
    assert below["y"] + below["height"] <= 700
    assert watched.overflow() == []
    assert watched.violations() == []
    assert watched.problems == []
    context.close()
