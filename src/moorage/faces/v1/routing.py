"""The words of the route table: what a route is, what its handler is given, how one is found."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, TypeVar

from moorage.core.admission.compat.lease_proxy import is_reserved
from moorage.core.errors import Code, Error
from moorage.faces.web import Caller
from moorage.service.access.audit import Actor
from moorage.service.access.roles import Role, Scope, ScopedRole
from moorage.service.app import Service

A = TypeVar("A")
B = TypeVar("B")
P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[B, P]):
    """What a handler is given: a request that was let in, with all its input decoded.

    `body` is of the route's type `body`, `parameters` of its type `parameters`; None, if it names
    none. `query` is for routes whose parameters no type can describe.
    """

    service: Service
    caller: Caller
    role: Role | None
    """Of the ladder; None: it was let in by its scope."""
    project: str | None
    """The one project that the caller may act in and ask about; None: any."""
    request_id: str
    headers: Mapping[str, str]
    variables: Mapping[str, str]
    """The parts of the address that the route's path names in braces."""
    query: list[tuple[str, str]]
    parameters: P
    body: B
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the caller has gone away."""
    still: Callable[[], Awaitable[object]]
    """Raises what the caller would be refused with now; for answers that take long."""

    @property
    def actor(self) -> Actor:
        """Who the caller is in audit rows."""
        role = self.scope.role if self.scope is not None else self.role
        return Actor(self.caller.user_id, self.caller.token_id, "" if role is None else role.value)

    @property
    def scope(self) -> Scope | None:
        """All that the caller may act upon, if it has a role outside of the ladder."""
        return self.caller.scope

    @property
    def owner(self) -> str:
        """Who the caller is as the owner of leases; of one bound to a project: `PROJECT/USER`.

        Raises `Error`: INVALID: it is called as those who hold leases by other ways.
        """
        user = self.caller.user_id
        owner = user if self.project is None else f"{self.project}/{user}"
        if is_reserved(owner):
            raise Error(
                Code.INVALID,
                f"As {owner} you would own the leases of Boskos' clients: act under another name.",
            )
        return owner


@dataclass(frozen=True, slots=True)
class Answer(Generic[A]):
    """What a handler answers whose route has more than one status, and which of them it is."""

    status: int
    body: A


Handler = Callable[[Request[Any, Any]], Awaitable[Any]]
"""Returns what the route's type `answer` says, bare or as `Answer`, or a `Stream`.

Raises Error, RefusalError.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method at one address. The types are of `wire`: plain dataclasses."""

    method: str
    path: str
    """Below the server's address; `{name}` stands for one segment, `{name+}` for one or more."""
    role: Role | None
    """The least role of the ladder that may call; None: anybody, without a token."""
    scopes: tuple[ScopedRole, ...] = ()
    """The roles outside of the ladder that may call. The handler minds `Request.scope`."""
    summary: str
    """One sentence for the reference."""
    handler: Handler
    body: type[Any] | None = None
    parameters: type[Any] | None = None
    """Of the query: one scalar field per parameter, all with defaults."""
    answer: Any = None
    """None: the answer has no body and its status is 204."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses that the handler may choose for the same type of answer, by `Answer`."""
    projects: bool = False
    """May readers and users that are bound to a project call? Then the handler minds
    `Request.project`."""
    bulk: bool = False
    """May the body be as long as `bulk_bytes_max` permits? Then the handler gets it as bytes and
    decodes it bit by bit, so that others are not kept waiting; `body` is only told in documents."""
    free_query: bool = False
    """Does the handler read `Request.query` itself? Otherwise unknown parameters are refused."""
    media: tuple[str, ...] = ("application/json",)
    """The content types of its answers."""

    @property
    def roles(self) -> list[str]:
        """The least role of the ladder that may call, and those outside of it; none: anybody."""
        return [one.value for one in (self.role, *self.scopes) if one is not None]

    @property
    def body_optional(self) -> bool:
        """May the body be left out? Not where it says all that a thing shall be."""
        if self.body is None or self.method != "POST":
            return False
        return not any(
            field.default is MISSING and field.default_factory is MISSING
            for field in fields(self.body)
        )


VARIABLE = re.compile(r"\{(\w+)(\+?)\}")
"""In a path: a name, and whether it stands for more than one segment."""


def pattern_of(path: str) -> re.Pattern[str]:
    """Return what the addresses of a path with variables look like."""
    return re.compile(
        VARIABLE.sub(lambda found: f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})", path)
    )


@dataclass(slots=True)
class Match:
    """The routes of one address, by method."""

    by_method: dict[str, Route] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


class Table:
    """Finds routes by address: of paths that both fit, the one that stands first."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        for route in routes:
            if "{" in route.path:
                methods = self._patterns.setdefault(route.path, (pattern_of(route.path), {}))[1]
            else:
                methods = self._fixed.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands twice in the table")
            methods[route.method] = route

    def match(self, path: str) -> Match | None:
        """Return what is at an address; None: nothing."""
        methods = self._fixed.get(path)
        if methods is not None:
            return Match(methods)
        for pattern, methods in self._patterns.values():
            found = pattern.fullmatch(path)
            if found is not None:
                return Match(methods, found.groupdict())
        return None
