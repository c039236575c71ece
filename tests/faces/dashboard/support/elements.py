"""The elements of a page, with what each contains."""

from html.parser import HTMLParser

from tests.faces.dashboard.support.browserless import VOID, Page


class Element:
    """An element of a page: its attributes, its text, and what it contains."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.text = ""
        self.inner: list[Element] = []

    def fits(self, tag: str, attributes: dict[str, str]) -> bool:
        """Return whether it has this tag and these attributes."""
        for name, value in attributes.items():
            if name == "class_":
                if value not in self.attributes.get("class", "").split():
                    return False
            elif self.attributes.get(name.replace("_", "-")) != value:
                return False
        return self.tag == tag

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        """Return all such elements in it."""
        return [one for one in self.inner if one.fits(tag, attributes)]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Element] = []
        self.open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.found.append(element)
        for one in self.open:
            one.inner.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for one in self.open:
            one.text += data


def every(page: Page, tag: str, **attributes: str) -> list[Element]:
    """Return all such elements of a page in their order; `class_` is one of the classes."""
    parser = _Parser()
    parser.feed(page.body)
    return [one for one in parser.found if one.fits(tag, attributes)]
