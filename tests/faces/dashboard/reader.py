"""Somebody who is signed in to the dashboard, without JavaScript; and elements of a page."""

import http.client
import json
import re
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.faces.v1.native import ANSWER_SECONDS

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"}


class Page(NamedTuple):
    """An answer of the dashboard."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """The decoded body."""
        return json.loads(self.text)

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        """Return all elements with these attributes; `class_` is one of the classes."""
        return [one for one in elements(self.text) if one.fits(tag, attributes)]


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


def elements(text: str) -> list[Element]:
    """Return all elements of a page in their order."""
    parser = _Parser()
    parser.feed(text)
    return parser.found


class Reader:
    """Reads pages and submits forms with the cookie of a session."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.cookie = ""
        signed = self.submit("/ui/sign-in", token=token)
        assert signed.status == 303, signed
        self.cookie = signed.headers["set-cookie"].partition(";")[0]

    def get(self, address: str) -> Page:
        """Read a page."""
        return self._ask("GET", address, None)

    def submit(self, address: str, **fields: str) -> Page:
        """Submit a form, with the form token of this session once there is one."""
        if self.cookie:
            fields["form_token"] = self.form_token()
        return self._ask("POST", address, urlencode(fields))

    def form_token(self) -> str:
        """Return the form token that stands in every page."""
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', self.get("/ui/pools").text)
        assert found is not None
        return found[1]

    def _ask(self, method: str, address: str, body: str | None) -> Page:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=ANSWER_SECONDS
        )
        headers = {"Origin": self.url, "Cookie": self.cookie}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, address, body, headers)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Page(answer.status, answer.read().decode(), named)
        finally:
            connection.close()
