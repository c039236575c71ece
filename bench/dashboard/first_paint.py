"""Loads pages in a real Chromium and prints when they were painted, as lines of JSON.

    .venv-browser/bin/python -m bench.dashboard.first_paint CHROMIUM URL ROUNDS < PAGES

The standard input is one JSON object: `token`, and `pages` (addresses by name). Each load has an
empty cache. Times are those of the browser, in milliseconds from the beginning of the navigation.
"""

import json
import statistics
import sys
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

SETTLED_MS = 2_000
"""How long a page is open before its memory is read."""

TIMES = """() => new Promise((done) => {
    new PerformanceObserver((list) => {
        const paint = list.getEntriesByName("first-contentful-paint")[0];
        const load = performance.getEntriesByType("navigation")[0];
        if (paint) done([paint.startTime, load.responseStart]);
    }).observe({type: "paint", buffered: true});
})"""
"""Returns when something was painted for the first time, and when the answer began."""


def signed_in(browser: Browser, url: str, token: str) -> Page:
    """Return a page of a reader who is signed in."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto(f"{url}/ui/sign-in")
    page.fill("#token", token)
    page.click("button")
    page.wait_for_url(f"{url}/ui")
    return page


def loaded(page: Page, address: str) -> tuple[float, float]:
    """Return when a page was painted first, and when its answer began."""
    session = page.context.new_cdp_session(page)
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    answer = page.goto(address)
    assert answer is not None
    assert answer.ok, (address, answer.status)
    painted, answered = page.evaluate(TIMES)
    session.detach()
    return painted, answered


def heap_bytes(page: Page) -> int:
    """Return the memory of the page's scripts after a collection."""
    page.wait_for_timeout(SETTLED_MS)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return int({one["name"]: one["value"] for one in found}["JSHeapUsedSize"])


def main(chromium: str, url: str, rounds: int) -> int:
    """Load every page several times, in turn; print a line for each."""
    asked: dict[str, Any] = json.load(sys.stdin)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in asked["pages"]}
    heaps = {}
    with sync_playwright() as playwright:
        # Chromium refuses to run as root with its sandbox.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = signed_in(browser, url, asked["token"])
        for number in range(rounds + 1):
            for name, path in asked["pages"].items():
                times = loaded(page, url + path)
                if number:  # the first round warms the browser up
                    found[name].append(times)
                else:
                    heaps[name] = heap_bytes(page)
        browser.close()
    for name, loads in found.items():
        painted, answered = (sorted(column) for column in zip(*loads, strict=True))
        line = {
            "page": name,
            "first paint ms, median": round(statistics.median(painted)),
            "longest": round(painted[-1]),
            "answer begins ms, median": round(statistics.median(answered)),
            "heap MB": round(heaps[name] / 1e6, 1),
        }
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
