"""A reader of the dashboard without a browser: cookies, forms, and what a page says."""

import re
from collections.abc import Generator, Mapping
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from tests.faces.v1.native import Native

SECONDS = 30.0
FORM = "application/x-www-form-urlencoded"
TEXTS = frozenset({"value", "aria-label", "title"})
"""Attributes that may have any text."""

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Form(NamedTuple):
    """A form of a page: where it goes, and what it sends unless it is filled in."""

    action: str
    method: str
    fields: dict[str, str]


class Section(NamedTuple):
    """What a page says under one revision: its sums, and its leases and tickets."""

    revision: str
    figures: dict[str, list[str]]
    """Texts of elements with `data-sum`, by its value."""
    rows: list[str]
    """The ids of rows."""


class Document(HTMLParser):
    """What a page says: elements in order, forms, texts of marked figures, problems."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.figures: dict[str, list[str]] = {}
        """Texts of elements with `data-sum`, by its value."""
        self.revisions: list[str] = []
        self.sections: list[Section] = []
        """What follows each revision."""
        self.inline: list[str] = []
        """Scripts, styles and handlers that the policy would block."""
        self.text = ""
        self._open: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()
        assert self._open == [], f"elements are left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.inline += [f"{tag} {name}" for name in named if name == "style" or name[:2] == "on"]
        self.inline += [
            f"{tag} {name}"
            for name in named
            if name not in TEXTS and "script:" in named[name].lower()
        ]
        if tag == "style" or (tag == "script" and "src" not in named):
            self.inline.append(tag)
        if tag == "form" and named.get("method") != "dialog" and named.get("role") != "search":
            self.forms.append(Form(named["action"], named.get("method", "get"), {}))
        if tag in {"input", "select", "textarea"} and "name" in named and self.forms:
            self.forms[-1].fields[named["name"]] = named.get("value", "")
        if tag == "tr" and "id" in named and self.sections:
            self.sections[-1].rows.append(named["id"])
        if tag == "a":
            self.links.append(named["href"])
        if tag not in VOID:
            self._open.append(
                (tag, named.get("data-sum", ""), "yes" if "data-revision" in named else "")
            )

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:  # of SVG
            self.inline += [f"{tag} {name}" for name, _ in attrs if name[:2] == "on"]
            return
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open[-1][0] != tag and self._open[-1][0] in {"li", "p", "td"}:
            self._open.pop()
        assert self._open and self._open[-1][0] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        for _, figure, revision in self._open[-1:]:
            if figure:
                self.figures.setdefault(figure, []).append(data.strip())
            if figure and self.sections:
                self.sections[-1].figures.setdefault(figure, []).append(data.strip())
            if revision:
                self.revisions.append(data.strip())
                self.sections.append(Section(data.strip(), {}, []))


class Page(NamedTuple):
    """An answer of the dashboard."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def document(self) -> Document:
        """What the page says."""
        return Document(self.body)


def confirming(answer: Page, action: str) -> Form:
    """Return the form with which a page asks whether to go on: a question, or a preview."""
    (form,) = [one for one in answer.document.forms if one.action == action]
    assert form.fields.get("sure") == "yes" or form.fields.get("digest"), answer
    return form


class Browser:
    """Keeps the cookies of one server, and sends forms as browsers do."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookies: dict[str, str] = {}

    def ask(
        self, method: str, path: str, form: Mapping[str, str] | None = None, **headers: str
    ) -> Page:
        """Send one request; underscores in names of headers become dashes."""
        connection = self._connection()
        try:
            answer = self._sent(connection, method, path, form, headers)
            body = answer.read().decode()
        finally:
            connection.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        cookie = named.get("set-cookie", "")
        if cookie:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return Page(answer.status, named, body)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        return HTTPConnection(parts.hostname or "", parts.port, timeout=SECONDS)

    def _sent(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        form: Mapping[str, str] | None,
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            kept = "; ".join(f"{name}={value}" for name, value in self.cookies.items() if value)
            sent.setdefault("Cookie", kept)
        raw = None
        if form is not None:
            raw = urlencode(form)
            sent = {"Content-Type": FORM, "Origin": self.url, **sent}
        connection.request(method, quote(path, safe="/:?=&%+,.!~"), raw, sent)
        return connection.getresponse()

    def get(self, path: str, **headers: str) -> Page:
        """Read a page."""
        return self.ask("GET", path, **headers)

    def sign_in(self, token: str, following: str = "", **headers: str) -> Page:
        """Sign in with a token."""
        return self.ask("POST", "/ui/sign-in", {"token": token, "next": following}, **headers)

    def submit(self, path: str, action: str, **fields: str) -> Page:
        """Read a page and submit its form with this target, and the page that asks first."""
        page = self.get(path)
        assert page.status == 200, page
        forms = [one for one in page.document.forms if one.action == action]
        (form, *_) = [one for one in forms if one.method == "post"]
        answer = self.ask("POST", action, {**form.fields, **fields})
        if answer.status == 200:
            form = confirming(answer, action)
            answer = self.ask("POST", action, form.fields)
        return answer

    def events(self, path: str) -> Generator[tuple[str, str], None, None]:
        """Yield the events of a page's stream, by name and data, until it ends."""
        connection = self._connection()
        try:
            answer = self._sent(connection, "GET", path, None, {"Accept": "text/event-stream"})
            assert answer.status == 200, answer.status
            name, data = "", []
            for line in answer:
                text = line.decode().rstrip("\n")
                field, _, value = text.partition(": ")
                if field == "event":
                    name = value
                elif text.startswith("data:"):
                    data.append(text[5:].removeprefix(" "))
                elif not text and name:
                    yield name, "\n".join(data)
                    name, data = "", []
        finally:
            connection.close()


def signed_in(native: Native, role: str, project: str | None = None) -> Browser:
    """Return a reader with a new token of a role."""
    browser = Browser(native.url)
    answer = browser.sign_in(native.token(role, project))
    assert answer.status == 303, answer
    return browser


def revision_of(document: Document) -> tuple[int, int]:
    """Return the epoch and the revision that a page names first."""
    found = re.fullmatch(r"(\d+)\.(\d+)", document.revisions[0])
    assert found, document.revisions
    return int(found[1]), int(found[2])
