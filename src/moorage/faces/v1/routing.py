"""The types of the route table: routes, and the input of their handlers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Struct

from moorage.core.admission.owners import GOVERNORS, is_reserved
from moorage.core.errors import Code, Error
from moorage.faces.delivery import Delivery
from moorage.faces.web import Caller
from moorage.service.access.roles import Role, ScopedRole, from_role
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.wire.operations.operation import Operation

A = TypeVar("A")
B = TypeVar("B")
P = TypeVar("P")


class Request(Struct, Generic[B, P], frozen=True, kw_only=True):
    """The input of a handler: an authorized request, with all its input decoded.

    `body` is of the operation's type `body`, `parameters` of its type `parameters`; None if it has
    none.
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
        return Actor(self.caller.user_id, self.caller.token_id, _name_of(role))

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
        if self.caller.scope is not None and self.governs:
            return GOVERNORS
        return _owner_of(self.caller.user_id, self.project)


class PromptRequest(Struct, Generic[B], frozen=True):
    """The input of a prompt handler: an authorized request, with its body decoded."""

    service: Service
    caller: Caller
    variables: Mapping[str, str]
    """The values of the variables in the route's path."""
    body: B


@lru_cache(maxsize=64)
def _name_of(role: Role | ScopedRole | None) -> str:
    return "" if role is None else role.value


@lru_cache(maxsize=256)
def _owner_of(user: str, project: str | None) -> str:
    """Return a user as an owner of leases. Raises `Error`: INVALID, the name is reserved."""
    owner = user if project is None else f"{project}/{user}"
    if is_reserved(owner):
        raise Error(
            Code.INVALID,
            f"'{owner}' owns the leases of other callers: use a token with another name.",
        )
    return owner


@dataclass(frozen=True, slots=True)
class StatusAnswer(Generic[A]):
    """The answer of a handler whose operation has several statuses, with the one it chose."""

    status: int
    body: A


Handler = Callable[[Request[Any, Any]], Awaitable[Any]]
"""Returns a value of the operation's type `answer`, plain or as `StatusAnswer`, or a `Stream`.

Raises Error, RefusalError.
"""


PromptHandler = Callable[[PromptRequest[Any]], Any]
"""Returns what the handler would return, if memory is enough to decide; None: call the handler.

It may also raise what the handler would raise: then the handler is called.
"""


Handlers = Mapping[Operation[Any], Handler]
"""The handlers of a module's operations. A handler must check `Request.caller.scope` if its
operation is for scoped roles, and `Request.project` if it is for callers that are bound to a
project. It receives the body of a bulk operation as bytes and decodes it in pieces, so as not to
delay others.
"""

Prompts = Mapping[Operation[Any], PromptHandler]
"""Handlers that answer most requests from memory, without a task for each. Only for operations
with a role and a body, whose handler neither waits nor writes as a rule.
"""


@dataclass(frozen=True, slots=True)
class Route:
    """An operation with its handler, and what the server makes of its description."""

    operation: Operation[Any]
    handler: Handler
    role: Role | None
    """The least role of the ladder that may call; None: no token is needed."""
    roles: frozenset[Role]
    """The roles of the ladder that may call."""
    scopes: tuple[ScopedRole, ...]
    """The scoped roles that may call."""
    body: type[Any] | None
    body_optional: bool
    parameters: type[Any] | None
    prompt: PromptHandler | None

    @property
    def method(self) -> str:
        """The method of the operation."""
        return self.operation.method

    @property
    def path(self) -> str:
        """The path of the operation."""
        return self.operation.path


def route_of(operation: Operation[Any], handler: Handler, prompt: PromptHandler | None) -> Route:
    """Return the route of an operation."""
    role = None if operation.access.role is None else Role(operation.access.role)
    return Route(
        operation,
        handler,
        role,
        from_role(role or Role.READER),
        tuple(map(ScopedRole, operation.access.scopes)),
        operation.content.body,
        body_optional(operation),
        operation.content.parameters,
        prompt,
    )


def body_optional(operation: Operation[Any]) -> bool:
    """Return whether the body may be omitted: that of a POST whose members all have defaults."""
    kind = operation.content.body
    if kind is None or operation.method != "POST":
        return False
    return not any(
        one.default is MISSING and one.default_factory is MISSING for one in fields(kind)
    )
