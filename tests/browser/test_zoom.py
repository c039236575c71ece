"""The map of 15,000 machines: what a frame costs while the reader zooms, from a trace.

Times are those of the browser's main thread on the processor, so that other processes do not count.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.test_fleet import ready
from tests.browser.watched_page import WatchedPage
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

MACHINES, EACH = 15_000, 40
AT_ONCE = 1_000
FRAME_MS = 12.0
TASK_MS = 50.0
HEAP_BYTES = 50_000_000
STEPS = 60
PARTS = (
    *("FireAnimationFrame", "UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize"),
    "Commit",
)
"""Script and paint, as the trace calls them."""

DRAWN = {"FireAnimationFrame", "Commit"}
"""Parts of each frame that shows something new."""

SLOW = """() => new Promise((done) => requestAnimationFrame(() => {
    const end = performance.now() + 400;
    while (performance.now() < end);
    done();
}))"""


class Costs(NamedTuple):
    """Milliseconds of each frame, and of the longest task."""

    frames: list[float]
    longest: float


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a server with 15,000 machines in racks."""
    database = tmp_path_factory.mktemp("zoom") / "moorage.sqlite"
    with serve(database, "--no-access-log", moorage=[os.environ["MOORAGE"]]) as server:
        native = Native(server.url, database)
        for first in range(0, MACHINES, AT_ONCE):
            hosts = [
                {
                    "uuid": str(UUID(int=number + 1, version=4)),
                    "name": f"r{number // EACH:03}-n{number % EACH:02}",
                    "inventories": {"VCPU": {"total": 64, "reserved": number % 64}},
                }
                for number in range(first, first + AT_ONCE)
            ]
            assert native.ask("POST", "/v1/providers:bulk", {"providers": hosts}).status == 200
        yield native


@pytest.fixture
def page(browser: Browser, native: Native) -> Iterator[Page]:
    """Return the map, drawn, with the pointer on it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    watched = WatchedPage(context.new_page(), native.url)
    watched.sign_in(native.secret)
    watched.go("/ui/fleet?group=name&colour=reserved")
    page = ready(watched)
    page.locator("#canvas").hover()
    yield page
    assert watched.problems == []
    context.close()


def costs(path: Path) -> Costs:
    """Return what the main thread has spent, from a trace."""
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    names = {
        (one["pid"], one["tid"]): one["args"]["name"]
        for one in events
        if one["name"] == "thread_name"
    }
    mine = [
        one
        for one in events
        if one.get("ph") == "X" and names.get((one["pid"], one["tid"])) == "CrRendererMain"
    ]
    tasks = [one for one in mine if one["name"] == "RunTask"]
    parts = sorted((one for one in mine if one["name"] in PARTS), key=began)
    frames = []
    for task in tasks:
        some = parts[bisect_left(parts, began(task), key=began) :]
        inner = some[: bisect_left(some, ended(task), key=began)]
        inner = [one for one in inner if one["pid"] == task["pid"]]
        if {one["name"] for one in inner} >= DRAWN:
            outer = [one for one in inner if not any(within(one, other) for other in inner)]
            frames.append(sum(one.get("tdur", 0) for one in outer) / 1000)
    return Costs(sorted(frames), max(one.get("tdur", 0) for one in tasks) / 1000)


def began(event: dict[str, Any]) -> float:
    """Return when an event began, in microseconds."""
    at: float = event["ts"]
    return at


def ended(event: dict[str, Any]) -> float:
    """Return when an event ended."""
    at: float = event["ts"] + event["dur"]
    return at


def within(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether an event happened during another one."""
    return one is not other and began(other) <= began(one) and ended(one) <= ended(other)


def traced(browser: Browser, page: Page, path: Path, control: bool = False) -> Costs:
    """Zoom in and out; return what it cost."""
    browser.start_tracing(
        page=page,
        path=path,
        categories=["devtools.timeline", "disabled-by-default-devtools.timeline"],
    )
    if control:
        page.evaluate(SLOW)
    for step in range(2 * STEPS):
        page.mouse.wheel(0, -60 if step < STEPS else 60)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    browser.stop_tracing()
    return costs(path)


def test_zooming_is_smooth(browser: Browser, page: Page, tmp_path: Path) -> None:
    """95 % of the frames take at most 12 ms, no task takes 50 ms, and little memory is used."""
    frames, longest = traced(browser, page, tmp_path / "trace.json")
    assert len(frames) >= STEPS
    assert frames[int(len(frames) * 0.95)] <= FRAME_MS
    assert longest <= TASK_MS
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = session.send("Performance.getMetrics")["metrics"]
    heap = {one["name"]: one["value"] for one in found}["JSHeapUsedSize"]
    assert 0 < heap <= HEAP_BYTES


def test_a_slow_frame_is_found(browser: Browser, page: Page, tmp_path: Path) -> None:
    """The control: one frame that takes 400 ms, whatever else the machine does."""
    assert traced(browser, page, tmp_path / "trace.json", control=True).longest > TASK_MS
