"""What a page shows at one moment, as its reader sees it: sums, rows, and widths of bars."""

from typing import Any, NamedTuple

from playwright.sync_api import Page

from tests.faces.dashboard.support.browserless import Section

LOOK = """() => {
    const main = document.getElementById("main"), sections = [];
    for (const one of main.querySelectorAll("[data-revision], [data-sum], tr[id]")) {
        const text = one.textContent.trim(), last = sections.at(-1);
        if (one.hasAttribute("data-revision")) sections.push([text, {}, []]);
        else if (one.localName === "tr") last?.[2].push(one.id);
        else if (last) (last[1][one.dataset.sum] ??= []).push(text);
    }
    const edges = (one) => {
        const { left, right } = one.getBoundingClientRect();
        return [left, right];
    };
    const bars = [...main.querySelectorAll("svg.bar, svg.three")].map((svg) => {
        const around = svg.closest("section.card, tr") ?? main;
        const sums = [...around.querySelectorAll("[data-sum]")];
        return [
            edges(svg),
            [...svg.querySelectorAll("rect:not(.rest)")]
                .map((part) => [part.classList[0], ...edges(part)]),
            Object.fromEntries(
                sums.map((sum) => [sum.dataset.sum.split(".").at(-1), sum.textContent])
            ),
        ];
    });
    return { sections, bars };
}"""
"""Returns everything at once: the page cannot change in between."""

PIXEL = 1.0
"""Widths are rounded: to a thousandth of the bar, and to a part of a pixel."""


class Bar(NamedTuple):
    """A bar: its own edges, those of its parts by kind, and the figures beside it."""

    edges: tuple[float, float]
    parts: list[tuple[str, float, float]]
    figures: dict[str, int]

    @property
    def width(self) -> float:
        """Its length in pixels."""
        return self.edges[1] - self.edges[0]

    def faults(self) -> list[str]:
        """Return what is wrong: parts that exceed the bar, or are not as long as their figure."""
        left, right = self.edges
        if self.width < PIXEL:
            return ["it is not visible"]
        found = [
            f"{kind} exceeds it"
            for kind, begins, ends in self.parts
            if begins < left - PIXEL or ends > right + PIXEL or ends < begins
        ]
        lengths = {kind: ends - begins for kind, begins, ends in self.parts}
        if "physical" not in lengths and sum(lengths.values()) > self.width + PIXEL:
            found.append("its parts together exceed it")
        return found + [
            f"{kind} has the length of {lengths.get(kind, 0.0) / self.width:.3f}, not {share:.3f}"
            for kind, share in self._shares().items()
            if abs(lengths.get(kind, 0.0) - share * self.width) > PIXEL
        ]

    def _shares(self) -> dict[str, float]:
        """Return how much of the bar each part is, by the figures beside it."""
        figures = self.figures
        if "units" in figures:
            return {"used": min(1.0, figures["occupied"] / max(1, figures["units"]))}
        if "total" not in figures:
            return {}
        if len(self.parts) < len(("physical", "offered", "used")):
            return {"used": min(1.0, figures["used"] / max(1, figures["offered"]))}
        amounts = {"physical": figures["total"], **figures}
        longest = max(amounts[name] for name in ("physical", "offered", "used"))
        return {name: amounts[name] / max(1, longest) for name in ("physical", "offered", "used")}


class Seen(NamedTuple):
    """What a page shows."""

    sections: list[Section]
    bars: list[Bar]

    def faults(self) -> list[str]:
        """Return what is wrong with bars."""
        return [f"{bar}: {fault}" for bar in self.bars for fault in bar.faults()]


def look(page: Page) -> Seen:
    """Return what a page shows now."""
    found: dict[str, Any] = page.evaluate(LOOK)
    bars = [
        Bar(
            (bar[0][0], bar[0][1]),
            [(kind, left, right) for kind, left, right in bar[1]],
            {name: int(text.replace(",", "")) for name, text in bar[2].items() if ":" not in name},
        )
        for bar in found["bars"]
    ]
    return Seen([Section(*section) for section in found["sections"]], bars)
