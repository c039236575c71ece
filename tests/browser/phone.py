"""What a reader with a phone sees of a page: a short header, and each table as a whole."""

from tests.browser.watched_page import WatchedPage

PHONE = 390
HEADER_MAX = 100.0

SIDEWAYS = """() => [...document.querySelectorAll("main *")]
    .filter((one) => getComputedStyle(one).overflowX === "auto")
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} > ${one.clientWidth}`)"""
"""Returns the parts of a page that hide something beside them."""

HEADER = """() => {
    const inside = (one) => {
        const {left, right, width} = one.getBoundingClientRect();
        return width > 0 && left >= 0 && right <= innerWidth;
    };
    const here = (selector) => [...document.querySelectorAll(`header ${selector}`)].map(inside);
    return {
        height: document.querySelector("header").offsetHeight,
        find: here(".find input"), out: here(".reader button"), current: here("[aria-current]"),
    };
}"""
"""Returns the height of the header, and whether the reader sees what matters in it."""


def fits_on_a_phone(watched: WatchedPage) -> None:
    """Check a page, as a reader with a phone sees it."""
    header = watched.page.evaluate(HEADER)
    assert header["height"] <= HEADER_MAX
    assert (header["find"], header["out"]) == ([True], [True])
    assert all(header["current"])
    assert watched.overflow() == []
    assert watched.page.evaluate(SIDEWAYS) == []
