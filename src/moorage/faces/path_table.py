"""Finds what has a method and an address: the routes of an API, the pages of the dashboard."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from moorage.wire.operations.operation import VARIABLE


class Addressed(Protocol):
    """One method at one address.

    In the path `{name}` stands for one segment, `{name+}` for one or more.
    """

    @property
    def method(self) -> str:
        """The HTTP method."""
        ...

    @property
    def path(self) -> str:
        """The address below the server's."""
        ...


T = TypeVar("T", bound=Addressed)

HEAD_SEGMENTS = 3
"""The parts of `/v1/pools` between slashes, the empty one before the first slash included."""


def pattern_of(path: str) -> re.Pattern[str]:
    """Return the regular expression that matches the addresses of a path with variables."""
    return re.compile(
        VARIABLE.sub(lambda found: f"(?P<{found[1]}>{'.+' if found[2] else '[^/]+'})", path)
    )


@dataclass(slots=True)
class Match(Generic[T]):
    """The routes of one address, by method."""

    by_method: dict[str, T] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


def head_of(path: str) -> str:
    """Return the segments of an address before its first variable may begin: `/v1/pools`."""
    return ends_of(path)[0]


def ends_of(path: str) -> tuple[str, str]:
    """Return the head of a path, and its last segment; empty if that has a variable."""
    parts = path.split("/")
    return "/".join(parts[:HEAD_SEGMENTS]), "" if "{" in parts[-1] else parts[-1]


class Table(Generic[T]):
    """Finds routes by address; if several paths match, the first one wins.

    Raises ValueError for a route that stands twice, or whose address begins with a variable.
    """

    def __init__(self, routes: Iterable[T]) -> None:
        self._fixed: dict[str, dict[str, T]] = {}
        varied: dict[str, tuple[re.Pattern[str], dict[str, T]]] = {}
        for route in routes:
            if "{" in route.path:
                if "{" in head_of(route.path):
                    raise ValueError(f"{route.path} begins with a variable")
                methods = varied.setdefault(route.path, (pattern_of(route.path), {}))[1]
            else:
                methods = self._fixed.setdefault(route.path, {})
            if route.method in methods:
                raise ValueError(f"{route.method} {route.path} stands twice in the table")
            methods[route.method] = route
        self._varied = {
            (head, last): [
                found
                for path, found in varied.items()
                if ends_of(path) in {(head, last), (head, "")}
            ]
            for head, last in map(ends_of, varied)
        }
        """The paths with variables that an address with these ends may match: few are tried."""

    def match(self, path: str) -> Match[T] | None:
        """Return the routes at an address; None if there are none."""
        methods = self._fixed.get(path)
        if methods is not None:
            return Match(methods)
        head, last = ends_of(path)
        few = self._varied.get((head, last))
        for pattern, methods in self._varied.get((head, ""), []) if few is None else few:
            found = pattern.fullmatch(path)
            if found is not None:
                return Match(methods, found.groupdict())
        return None
