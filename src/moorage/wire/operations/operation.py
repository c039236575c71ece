"""What an operation of the native API is, and how its address is written.

Cheap to import: the tables name types of `wire` that are imported only when they are asked for.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.wire.enums import LadderRole, ScopedRole

A = TypeVar("A")

VARIABLE = re.compile(r"\{(\w+)(\+?)\}")
"""A variable in a path: its name, and `+` if it may span several segments."""


class Operation(Generic[A]):
    """One method at one address. `A` is the type of its answer; None: it has no body.

    The types of its body, parameters and answer are plain dataclasses of `wire`.
    """

    __slots__ = (
        "_answer",
        "_body",
        "_parameters",
        "also",
        "bulk",
        "media",
        "method",
        "path",
        "projects",
        "role",
        "routine",
        "scopes",
        "status",
        "summary",
    )

    def __init__(
        self,
        place: str,
        *,
        role: LadderRole | None,
        summary: str,
        scopes: tuple[ScopedRole, ...] = (),
        projects: bool = False,
        body: Any = None,
        parameters: Any = None,
        answer: type[A] | None = None,
        status: int = 200,
        also: tuple[int, ...] = (),
        bulk: bool = False,
        routine: bool = False,
        media: tuple[str, ...] = ("application/json",),
    ) -> None:
        """Describe an operation.

        Args:
            place: its method and its path below the server's address. In the path `{name}` stands
                for one segment, `{name+}` for one or more.
            role: the least role of the ladder that may call; None: no token is needed.
            summary: one sentence for the API reference.
            scopes: the scoped roles that may call, within their scope.
            projects: whether readers and users that are bound to a project may call.
            body: the type of the body.
            parameters: of the query parameters: one field each, a scalar or a list of texts, all
                with defaults.
            answer: the type of the answer; None: it has no body, and its status is 204.
            status: of the answer.
            also: other statuses that it may have, with the same type.
            bulk: whether the body may be long (`bulk_bytes_max`).
            routine: whether clients call it every few seconds.
            media: the content types of the answer.
        """
        self.method, _, self.path = place.partition(" ")
        self.role = role
        self.summary = summary
        self.scopes = scopes
        self.projects = projects
        self._body = body
        self._parameters = parameters
        self._answer = answer
        self.status = status
        self.also = also
        self.bulk = bulk
        self.routine = routine
        self.media = media

    def __repr__(self) -> str:
        """Return its method and path."""
        return f"{self.method} {self.path}"

    @property
    def body(self) -> Any:
        """The type of its body; None: it has none."""
        return _type_of(self._body)

    @property
    def parameters(self) -> Any:
        """The type of its query parameters; None: it has none."""
        return _type_of(self._parameters)

    @property
    def answer(self) -> type[A] | None:
        """The type of its answer; None: it has no body."""
        kind: type[A] | None = _type_of(self._answer)
        return kind

    def address(self, *variables: str, query: Mapping[str, Any] | None = None) -> str:
        """Return the address of one call, below the server's.

        Args:
            variables: the values of the variables in the path, in their order.
            query: parameters by name; a list is repeated, and None is omitted.
        """
        rest = iter(variables)
        path = VARIABLE.sub(lambda one: quote(next(rest), safe="/" if one[2] else ""), self.path)
        given = [
            (name, "true" if one is True else "false" if one is False else one)
            for name, value in (query or {}).items()
            for one in (value if isinstance(value, list) else [value])
            if one is not None
        ]
        return f"{path}?{urlencode(given)}" if given else path


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
