"""A request as data: it can be sent, printed, shrunk and sent again.

Generations are symbolic (`Generation`) until a request is sent, so that a sequence is still valid
when some of its requests are omitted.
"""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from moorage.faces.placement.microversion import LATEST
from tests.e2e.support.hostile import Pairs, Raw, written
from tests.e2e.support.peer import head

VERSION = "OpenStack-API-Version"
NOTHING: Any = Raw(b"")
"""Stands for the absence of a body."""


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations of all providers and consumers.

    `offers` has the classes of each provider's inventories; `free` has, by the template of a route,
    the objects that its DELETE would remove, each as a list of the names in its path.
    """

    providers: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, int] = field(default_factory=dict)
    offers: dict[str, list[str]] = field(default_factory=dict)
    free: dict[str, list[list[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generation:
    """Stands for the generation of a provider, or of a consumer (null if it does not exist)."""

    of: str
    consumer: bool = False
    off_by: int = 0

    def value(self, known: Generations) -> int | None:
        """Return the number that is sent."""
        if not self.consumer:
            return known.providers.get(self.of, 0) + self.off_by
        found = known.consumers.get(self.of)
        return self.off_by or None if found is None else found + self.off_by


@dataclass(frozen=True, slots=True)
class Ask:
    """One request; `template` is its route as in the documentation."""

    method: str
    template: str
    path: str
    query: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = NOTHING

    @property
    def what(self) -> str:
        """The method and the route."""
        return f"{self.method} {self.template}"

    @property
    def target(self) -> str:
        """Path and query string."""
        return "?".join([self.path, *(["&".join(self.query)] if self.query else [])])

    @property
    def minor(self) -> int | None:
        """N of the requested microversion 1.N; None if it has another form."""
        text = dict(self.headers).get(VERSION, "placement 1.0").removeprefix("placement 1.")
        if text == "placement latest":
            return LATEST
        return int(text) if text.isascii() and text.isdigit() else None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The query string's names and values, decoded."""
        return parse_qsl("&".join(self.query), keep_blank_values=True)

    def bytes(self, known: Generations) -> bytes:
        """Return the bytes to send."""
        content = None if self.body is NOTHING else written(resolved(self.body, known))
        return head(self.method, self.target, list(self.headers), content)

    def text(self, known: Generations) -> str:
        """Return the text for a report."""
        headers = [f"{name}: {value}" for name, value in self.headers if name not in USUAL]
        version = dict(self.headers).get(VERSION, "no version").removeprefix("placement ")
        lines = [f"{self.method} {self.target} ({version})", *headers]
        if self.body is not NOTHING:
            lines.append(written(resolved(self.body, known)).decode("utf-8", "backslashreplace"))
        return "\n    ".join(lines)


ADMIN = (("X-Auth-Token", "admin"), ("X-Roles", "admin,service"))
JSON = ("Content-Type", "application/json")
USUAL = {VERSION, *dict(ADMIN)}
"""Headers that a report leaves out."""


def plain(method: str, path: str, minor: int = 39, body: Any = NOTHING, template: str = "") -> Ask:
    """Return a request with the usual headers."""
    path, _, query = path.partition("?")
    headers = [(VERSION, f"placement 1.{minor}"), *ADMIN]
    if body is not NOTHING:
        headers.append(JSON)
    pieces = tuple(query.split("&")) if query else ()
    return Ask(method, template or path, path, pieces, tuple(headers), body)


def resolved(value: Any, known: Generations) -> Any:
    """Return the value with symbolic generations replaced by numbers."""
    match value:
        case Generation():
            return value.value(known)
        case Pairs():
            return Pairs([(key, resolved(of, known)) for key, of in value])
        case dict():
            return {key: resolved(of, known) for key, of in value.items()}
        case list():
            return [resolved(of, known) for of in value]
    return value
