"""50 random states in the browser, while claims and leases go on.

At each look, every total of the page equals the ledger's sum as of the revision that the page
prints, and no bar exceeds its total. The ledger's sums come from the change feed.
"""

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.looks import look
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.chance import seeded
from tests.e2e.support.server import serve
from tests.faces.dashboard.support.history import History
from tests.faces.dashboard.support.totals import PATHS, Mismatch, check
from tests.faces.dashboard.support.writer import Writer, pools_made
from tests.faces.v1.native import Native

LOOKS = 50
"""On each engine: half of them at pages that have just been opened, half at what has changed."""

MOVED = """(before) => document.getElementById("connection").textContent === "Live."
    && document.querySelector("main [data-revision]").textContent !== before"""

ALTERED = {
    "a total": "document.querySelector('[data-sum=units]').textContent = '4'",
    "a revision": "document.querySelector('[data-revision]').textContent = '1.1'",
    "two revisions": """const one = document.querySelector('.revision');
        one.after(one.cloneNode(true))""",
    "a row": "document.querySelector('main tr[id^=lease-]').remove()",
}
"""Faults that must be found, each made in the page by one statement."""


@pytest.fixture(params=["sqlite", "postgresql"])
def peers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Native]]:
    """Return callers of an empty ledger: of one server, or of two that share a database."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shared = request.param == "postgresql"
    database = os.environ["MOORAGE_DATABASE"] if shared else tmp_path / "moorage.sqlite"
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(database, "--no-access-log", moorage=[os.environ["MOORAGE"]]))
            for _ in range(2 if shared else 1)
        ]
        (token,) = tmp_path.rglob("*.token")
        yield [Native(server.url, token.with_suffix("")) for server in servers]


@pytest.fixture
def watched(browser: Browser, peers: list[Native]) -> Iterator[WatchedPage]:
    """Return a page of a reader who is signed in."""
    # Otherwise a bar would grow slowly, and lag behind its figure.
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    watched = WatchedPage(context.new_page(), peers[0].url)
    watched.sign_in(peers[0].token("reader"))
    yield watched
    context.close()


def test_50_states_while_the_ledger_changes(watched: WatchedPage, peers: list[Native]) -> None:
    """Each look is right, most are at different revisions, and nothing else goes wrong."""
    pools_made(peers[0])
    with seeded() as seed:
        writer = Writer(peers[-1], seed)
        writer.start()
        try:
            looks = [*looked_around(watched, History(peers[0]), random.Random(seed))]
        finally:
            writer.stop()
    assert len(looks) == LOOKS
    assert len({revision for revision, _ in looks}) > LOOKS * 0.8, "it has hardly changed"
    assert any(moved for _, moved in looks), "the revision before must differ at times"
    done = writer.done
    assert done["claim"] + done["allocate"] and done["acquire"] and done["release"], done
    assert watched.problems == []


def looked_around(
    watched: WatchedPage, history: History, dice: random.Random
) -> Iterator[tuple[str, bool]]:
    """Look at each page when it has been opened, and when it has changed; all in random order."""
    paths = cycle(dice.sample(PATHS, len(PATHS)))
    for path in islice(paths, LOOKS // 2):
        watched.go(path)
        revision, moved = looked(watched.page, path, history)
        yield revision, moved
        watched.page.wait_for_function(MOVED, arg=revision)
        yield looked(watched.page, path, history)


def looked(page: Page, path: str, history: History) -> tuple[str, bool]:
    """Check a page; return its first revision, and whether the one before had other figures."""
    seen = look(page)
    _, differs = check(path, seen.sections, history)
    assert seen.faults() == [], path
    return seen.sections[0].revision, differs


@pytest.mark.parametrize("peers", ["sqlite"], indirect=True)
def test_faults_are_found(watched: WatchedPage, peers: list[Native]) -> None:
    """The control: the same page, right at first, with one fault after another."""
    native, path = peers[0], "/ui/pools/a"
    pools_made(native)
    need = {"needs": [{"pool": "a", "units": 1}], "ttl": 3600}
    assert native.ask("POST", "/v1/leases", {**need, "key": "one"}).status == 201
    history = History(native)
    for fault in ALTERED.values():
        watched.go(path)
        watched.live()  # later, nothing mends the page: the ledger does not change
        looked(watched.page, path, history)
        watched.page.evaluate(f"() => {{ {fault} }}")
        with pytest.raises(Mismatch):
            looked(watched.page, path, history)
    watched.go(path)
    watched.live()
    for width in ("101", "20"):
        watched.page.evaluate(
            "(width) => document.querySelector('rect.used').setAttribute('width', width)", width
        )
        assert look(watched.page).faults() != []
    revision = look(watched.page).sections[0].revision
    assert native.ask("POST", "/v1/leases", {**need, "key": "two"}).status == 201
    watched.page.wait_for_function(MOVED, arg=revision)
    seen = look(watched.page)
    with pytest.raises(Mismatch):
        check(path, [seen.sections[0]._replace(revision=revision)], history)
