"""The types of the route table: routes, the input of their handlers, and the lookup by address."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, TypeVar

from moorage.core.admission.owners import GOVERNORS, is_reserved
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
    """The input of a handler: an authorized request, with all its input decoded.

    `body` is of the route's type `body`, `parameters` of its type `parameters`; None if the route
    has none. `query` is for routes whose parameters no type can describe.
    """

    service: Service
    caller: Caller
    role: Role | None
    """The caller's role of the ladder; None: it has a scoped role."""
    project: str | None
    """The one project that the caller may act in and query; None: any."""
    request_id: str
    headers: Mapping[str, str]
    variables: Mapping[str, str]
    """The values of the variables in the route's path."""
    query: list[tuple[str, str]]
    parameters: P
    body: B
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the caller has disconnected."""
    still: Callable[[], Awaitable[object]]
    """Authorizes the caller again and raises if that fails; for answers that take long."""

    @property
    def actor(self) -> Actor:
        """The caller, for audit rows."""
        role = self.scope.role if self.scope is not None else self.role
        return Actor(self.caller.user_id, self.caller.token_id, "" if role is None else role.value)

    @property
    def scope(self) -> Scope | None:
        """Everything that the caller may act upon, if it has a scoped role."""
        return self.caller.scope

    @property
    def governs(self) -> bool:
        """Is the caller a governor?"""
        return self.scope is not None and self.scope.role is ScopedRole.GOVERNOR

    @property
    def owner(self) -> str:
        """The caller as an owner of leases: `USER`, or `PROJECT/USER` if bound to a project.

        All governors are one owner. Raises `Error`: INVALID, the name is reserved for other leases.
        """
        if self.governs:
            return GOVERNORS
        user = self.caller.user_id
        owner = user if self.project is None else f"{self.project}/{user}"
        if is_reserved(owner):
            raise Error(
                Code.INVALID,
                f"'{owner}' owns the leases of other callers: use a token with another name.",
            )
        return owner


@dataclass(frozen=True, slots=True)
class StatusAnswer(Generic[A]):
    """The answer of a handler whose route has several statuses, with the one it chose."""

    status: int
    body: A


Handler = Callable[[Request[Any, Any]], Awaitable[Any]]
"""Returns a value of the route's type `answer`, plain or as `StatusAnswer`, or a `Stream`.

Raises Error, RefusalError.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method at one address. Its types are plain dataclasses of `wire`."""

    method: str
    path: str
    """Below the server's address; `{name}` stands for one segment, `{name+}` for one or more."""
    role: Role | None
    """The least role of the ladder that may call; None: no token is needed."""
    scopes: tuple[ScopedRole, ...] = ()
    """The scoped roles that may call. The handler must check `Request.scope`."""
    summary: str
    """One sentence for the API reference."""
    handler: Handler
    body: type[Any] | None = None
    parameters: type[Any] | None = None
    """The query parameters: one scalar field each, all with defaults."""
    answer: Any = None
    """None: the answer has no body and its status is 204."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses that the handler may choose with `StatusAnswer`; the type is the same."""
    projects: bool = False
    """Whether readers and users that are bound to a project may call. If so, the handler must
    check `Request.project`."""
    bulk: bool = False
    """Whether the body may have up to `bulk_bytes_max` bytes. If so, the handler receives it as
    bytes and decodes it in pieces, so as not to delay others; `body` is documentation only."""
    free_query: bool = False
    """Whether the handler reads `Request.query` itself. If not, unknown parameters are refused."""
    routine: bool = False
    """Whether clients call it every few seconds: the access log omits its successes."""
    media: tuple[str, ...] = ("application/json",)
    """The content types of the route's answers."""

    @property
    def roles(self) -> list[str]:
        """The least role of the ladder and the scoped roles that may call; empty: no token."""
        return [one.value for one in (self.role, *self.scopes) if one is not None]

    @property
    def body_optional(self) -> bool:
        """Whether the body may be omitted: only that of a POST whose members all have defaults."""
        if self.body is None or self.method != "POST":
            return False
        return not any(
            field.default is MISSING and field.default_factory is MISSING
            for field in fields(self.body)
        )


VARIABLE = re.compile(r"\{(\w+)(\+?)\}")
"""A variable in a path: its name, and `+` if it may span several segments."""


HEAD_SEGMENTS = 3
"""The parts of `/v1/pools` between slashes, the empty one before the first slash included."""


def pattern_of(path: str) -> re.Pattern[str]:
    """Return the regular expression that matches the addresses of a path with variables."""
    return re.compile(
        VARIABLE.sub(lambda found: f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})", path)
    )


@dataclass(slots=True)
class Match:
    """The routes of one address, by method."""

    by_method: dict[str, Route] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


def head_of(path: str) -> str:
    """Return the segments of an address before its first variable may begin: `/v1/pools`."""
    return "/".join(path.split("/", HEAD_SEGMENTS)[:HEAD_SEGMENTS])


class Table:
    """Finds routes by address; if several paths match, the first one wins.

    Raises ValueError for a route that stands twice, or whose address begins with a variable.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._heads: dict[str, dict[str, tuple[re.Pattern[str], dict[str, Route]]]] = {}
        """The paths with variables, by their heads: few are tried for an address."""
        for route in routes:
            if "{" in route.path:
                head = head_of(route.path)
                if "{" in head:
                    raise ValueError(f"{route.path} begins with a variable")
                patterns = self._heads.setdefault(head, {})
                methods = patterns.setdefault(route.path, (pattern_of(route.path), {}))[1]
            else:
                methods = self._fixed.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands twice in the table")
            methods[route.method] = route

    def match(self, path: str) -> Match | None:
        """Return the routes at an address; None if there are none."""
        methods = self._fixed.get(path)
        if methods is not None:
            return Match(methods)
        for pattern, methods in self._heads.get(head_of(path), {}).values():
            found = pattern.fullmatch(path)
            if found is not None:
                return Match(methods, found.groupdict())
        return None
