"""What an operation of the native API is, and how its address is written.

Cheap to import: the tables name types of `wire` that are imported only when they are asked for.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.wire.enums import LadderRole, ScopedRole

A = TypeVar("A")

VARIABLE = re.compile(r"\{(\w+)(\+?)\}")
"""A variable in a path: its name, and `+` if it may span several segments."""


class Access:
    """Where an operation is, and who may call it."""

    __slots__ = ("method", "path", "projects", "role", "scopes")

    def __init__(
        self, place: str, role: LadderRole | None, *scopes: ScopedRole, projects: bool = False
    ) -> None:
        """Describe the access to an operation.

        Args:
            place: its method and its path below the server's address. In the path `{name}` stands
                for one segment, `{name+}` for one or more.
            role: the least role of the ladder that may call; None: no token is needed.
            scopes: the scoped roles that may call, within their scope.
            projects: whether readers and users that are bound to a project may call.
        """
        self.method, _, self.path = place.partition(" ")
        self.role = role
        self.scopes = scopes
        self.projects = projects


class Content(Generic[A]):
    """What an operation receives and answers. The types are plain dataclasses of `wire`."""

    __slots__ = ("_answer", "_body", "_parameters", "also", "bulk", "media", "status")

    def __init__(
        self,
        *,
        body: Any = None,
        parameters: Any = None,
        answer: type[A] | None = None,
        status: int = 200,
        also: tuple[int, ...] = (),
        bulk: bool = False,
        media: tuple[str, ...] = ("application/json",),
    ) -> None:
        """Describe the content of an operation.

        Args:
            body: the type of the body.
            parameters: of the query parameters: one field each, a scalar or a list of texts, all
                with defaults.
            answer: the type of the answer; None: it has no body, and its status is 204.
            status: of the answer.
            also: other statuses that it may have, with the same type.
            bulk: whether the body may be long (`bulk_bytes_max`).
            media: the content types of the answer.
        """
        self._body = body
        self._parameters = parameters
        self._answer = answer
        self.status = status
        self.also = also
        self.bulk = bulk
        self.media = media

    @property
    def body(self) -> Any:
        """The type of the body; None: there is none."""
        return _type_of(self._body)

    @property
    def parameters(self) -> Any:
        """The type of the query parameters; None: there are none."""
        return _type_of(self._parameters)

    @property
    def answer(self) -> type[A] | None:
        """The type of the answer; None: it has no body."""
        kind: type[A] | None = _type_of(self._answer)
        return kind


class Operation(Generic[A]):
    """One method at one address. `A` is the type of its answer; None: it has no body."""

    __slots__ = ("access", "content", "method", "path", "routine", "summary")

    def __init__(
        self, access: Access, content: Content[A], summary: str, *, routine: bool = False
    ) -> None:
        """Describe an operation.

        Args:
            access: where it is, and who may call it.
            content: what it receives and answers.
            summary: one sentence for the API reference.
            routine: whether clients call it every few seconds.
        """
        self.access = access
        self.content = content
        self.summary = summary
        self.routine = routine
        self.method = access.method
        self.path = access.path

    def __repr__(self) -> str:
        """Return its method and path."""
        return f"{self.method} {self.path}"

    def named(self, variables: Sequence[str]) -> dict[str, str]:
        """Return the values of the variables in its path by their names."""
        return dict(zip((name for name, _ in VARIABLE.findall(self.path)), variables))

    def address(self, *variables: str, query: Mapping[str, Any] | None = None) -> str:
        """Return the address of one call, below the server's.

        Args:
            variables: the values of the variables in the path, in their order.
            query: parameters by name, as in `pairs_of`.
        """
        rest = iter(variables)
        path = VARIABLE.sub(lambda one: quote(next(rest), safe="/" if one[2] else ""), self.path)
        given = pairs_of(query or {})
        return f"{path}?{urlencode(given)}" if given else path


def pairs_of(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return query parameters as they are sent: lists and tuples are repeated, None is omitted."""
    return [
        (name, "true" if one is True else "false" if one is False else str(one))
        for name, value in query.items()
        for one in (value if isinstance(value, (list, tuple)) else [value])
        if one is not None
    ]


class Named:
    """A type that is imported only when it is asked for."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name


class Types:
    """Stands for a module of `wire` in a table: its attributes are the names of its types."""

    def __init__(self, module: str) -> None:
        self._module = f"moorage.wire.{module}"

    def __getattr__(self, name: str) -> Named:
        return Named(self._module, name)


def _type_of(kind: Any) -> Any:
    return getattr(import_module(kind.module), kind.name) if isinstance(kind, Named) else kind
