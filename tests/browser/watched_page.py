"""A page in the browser, with everything that goes wrong in it."""

import os
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page

SECONDS = 15.0

OVERFLOW = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth > width
        ? [...document.querySelectorAll("body *")]
            .filter((one) => one.getBoundingClientRect().right > width + 1)
            .map((one) => one.outerHTML.slice(0, 120)).slice(0, 5)
        : [];
}"""
"""Returns what is wider than the window."""


@cache
def axe() -> str:
    """Return the source of axe-core."""
    return Path(os.environ["AXE"]).read_text()


class WatchedPage:
    """A page, and its problems: errors, refused loads, violations of the policy."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.problems: list[str] = []
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

    def _said(self, message: ConsoleMessage) -> None:
        # Chromium reports violations of the policy here, also those of Trusted Types.
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text}")

    def sign_in(self, token: str) -> None:
        """Sign in with the form, as a reader does."""
        self.page.goto(f"{self.url}/ui/sign-in")
        self.page.fill("#token", token)
        self.page.click("button")
        self.page.wait_for_url(f"{self.url}/ui")

    def go(self, path: str) -> None:
        """Open another page."""
        answer = self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == 200, (path, answer.status)

    def live(self) -> None:
        """Wait until the page is current, and says so without a warning."""
        self.page.wait_for_function(
            """() => document.getElementById('connection').textContent.startsWith('Live')
                && document.getElementById('stale').hidden"""
        )
        assert not self.page.title().startswith("Old")

    def warns(self, text: str) -> None:
        """Wait until the page warns that it may be old, for this reason."""
        self.page.wait_for_function(
            """(text) => !document.getElementById('stale').hidden
                && document.querySelector('#stale [role=alert]').textContent.includes(text)""",
            arg=text,
        )
        assert self.page.title().startswith("Old: ")

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page, for people to look at."""
        self.page.screenshot(path=Path(os.environ["PICTURES"], f"{name}.png"), full_page=True)

    def violations(self, *rules: str) -> list[str]:
        """Return what axe-core finds, by these of its rules or by all."""
        # Playwright runs it beside the page, where its policy does not apply.
        self.page.evaluate(axe())
        options = {"resultTypes": ["violations"], **({"runOnly": [*rules]} if rules else {})}
        found: dict[str, Any] = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
            for one in found["violations"]
            for node in one["nodes"][:3]
        ]

    def overflow(self) -> list[str]:
        """Return elements that make the page wider than its window."""
        wide: list[str] = self.page.evaluate(OVERFLOW)
        return wide
