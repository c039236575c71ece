"""The types of the route table: routes, and the input of their handlers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Generic, TypeVar

from msgspec import Struct

from moorage.core.admission.owners import GOVERNORS, is_reserved
from moorage.core.errors import Code, Error
from moorage.faces.delivery import Delivery
from moorage.faces.web import Caller
from moorage.service.access.audit import Actor
from moorage.service.access.roles import Role, Scope, ScopedRole
from moorage.service.app import Service

A = TypeVar("A")
B = TypeVar("B")
P = TypeVar("P")


class Request(Struct, Generic[B, P], frozen=True, kw_only=True):
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
    prefix: str = ""
    """The path that the server is mounted at."""
    disconnected: Callable[[], Awaitable[None]]
    """Returns when the caller has disconnected."""
    delivery: Delivery
    """Whether the caller reads the answer; for answers that tell it of a grant."""
    still: Callable[[], Awaitable[object]]
    """Authorizes the caller again and raises if that fails; for answers that take long."""

    @property
    def actor(self) -> Actor:
        """The caller, for audit rows."""
        scope = self.caller.scope
        role = self.role if scope is None else scope.role
        return Actor(self.caller.user_id, self.caller.token_id, "" if role is None else role.value)

    @property
    def scope(self) -> Scope | None:
        """Everything that the caller may act upon, if it has a scoped role."""
        return self.caller.scope

    @property
    def governs(self) -> bool:
        """Is the caller a governor?"""
        scope = self.caller.scope
        return scope is not None and scope.role is ScopedRole.GOVERNOR

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


class PromptRequest(Struct, Generic[B], frozen=True):
    """The input of a prompt handler: an authorized request, with its body decoded."""

    service: Service
    caller: Caller
    variables: Mapping[str, str]
    """The values of the variables in the route's path."""
    body: B

    @property
    def scope(self) -> Scope | None:
        """Everything that the caller may act upon, if it has a scoped role."""
        return self.caller.scope


@dataclass(frozen=True, slots=True)
class StatusAnswer(Generic[A]):
    """The answer of a handler whose route has several statuses, with the one it chose."""

    status: int
    body: A


Handler = Callable[[Request[Any, Any]], Awaitable[Any]]
"""Returns a value of the route's type `answer`, plain or as `StatusAnswer`, or a `Stream`.

Raises Error, RefusalError.
"""


PromptHandler = Callable[[PromptRequest[Any]], Any]
"""Returns what the handler would return, if memory is enough to decide; None: call the handler.

It may also raise what the handler would raise: then the handler is called.
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
    """The query parameters: one field each, a scalar or a list of texts, all with defaults."""
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
    prompt: PromptHandler | None = None
    """Answers most requests from memory, without a task for each. Only for routes with a role and a
    body, whose handler neither waits nor writes as a rule."""
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
