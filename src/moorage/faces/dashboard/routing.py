"""The types of the table of pages: pages, actions and data, and what their functions receive."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from moorage.core.limits import PAGE_QUERY_BYTES_MAX, PAGE_QUERY_PARAMETERS_MAX
from moorage.faces.dashboard.recent_answers import RecentAnswers
from moorage.faces.native_api import NativeApi
from moorage.faces.web import Caller, Limits, RefusalError, query_parse
from moorage.service.app import Service
from moorage.wire.operations.operation import Operation
from moorage.wire.operations.pools import LIST_POOLS

A = TypeVar("A")

ROOT = "/ui"
"""The first segment of all addresses of the dashboard."""


class MethodError(RefusalError):
    """A request with a method that its address does not have. `allowed` names those it has."""

    def __init__(self, method: str, methods: Iterable[str]) -> None:
        super().__init__(HTTPStatus.METHOD_NOT_ALLOWED, f"This address has no {method}.")
        self.allowed = ", ".join(methods)


def check_method(method: str, methods: Collection[str]) -> None:
    """Raise MethodError if an address does not have a method."""
    if method not in methods:
        raise MethodError(method, methods)


def pairs_of(query_string: bytes, limits: Limits) -> list[tuple[str, str]]:
    """Return the parameters of a page's address.

    Raises RefusalError: 400, 414.
    """
    if len(query_string) > PAGE_QUERY_BYTES_MAX:
        raise RefusalError(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            f"The query string of a page may have at most {PAGE_QUERY_BYTES_MAX} bytes.",
        )
    pairs = query_parse(query_string, limits)
    if len(pairs) > PAGE_QUERY_PARAMETERS_MAX:
        raise RefusalError(
            HTTPStatus.BAD_REQUEST,
            f"The query string of a page may have at most {PAGE_QUERY_PARAMETERS_MAX} parameters.",
        )
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """The input of a page, an action or data: the reader, and the requested object."""

    service: Service
    api: NativeApi
    caller: Caller
    path: str
    variables: Mapping[str, str]
    """The values of the variables in the path."""
    pairs: Sequence[tuple[str, str]]
    """Parameters of the address."""
    query: Mapping[str, str]
    """As `pairs`; of a repeated parameter the last counts."""
    now: datetime
    answers: RecentAnswers
    streamed: bool = False
    """Whether an open page is rendered again, and not loaded."""
    form: Mapping[str, str] = field(default_factory=dict)
    """Fields of the submitted form; empty unless it is an action."""

    async def ask(
        self, operation: Operation[A], *variables: str, body: Mapping[str, Any] | None = None
    ) -> A:
        """Call an operation on behalf of the reader. Raises RefusedError."""
        return await self.api.call(self.caller, operation, *variables, body=body)

    async def get(self, operation: Operation[A], *variables: str, **query: object) -> A:
        """As `ask`, with parameters; those that are None are omitted. Raises RefusedError."""
        return await self.api.call(self.caller, operation, *variables, query=query)

    async def recent(self, operation: Operation[A], *variables: str, **query: object) -> A:
        """As `get`, but in a stream the answer may be some seconds old: for what is slow.

        Raises RefusedError.
        """
        key = (self.reader_key, operation, variables, *query.items())
        answer: A = await self.answers.of(
            key, lambda: self.get(operation, *variables, **query), fresh=not self.streamed
        )
        return answer

    @property
    def reader_key(self) -> tuple[object, ...]:
        """Everything of the reader that pages depend on: the rights, but not the name."""
        one = self.caller
        return (one.project_id, one.roles, one.scope, one.foreign, one.system_scope)

    def permits(self, operation: Operation[Any]) -> bool:
        """Return whether the reader may call an operation: a page shows no other buttons."""
        return self.api.permits(self.caller, operation)

    def address(self, **changes: object) -> str:
        """Return this page's address with changed parameters; None removes one."""
        return address_of(self.path, {**self.query, **changes, "notice": None})

    def address_at(self, path: str) -> str:
        """Return another address with this page's parameters."""
        return address_of(path, {**self.query, "notice": None})


def address_of(path: str, query: Mapping[str, object]) -> str:
    """Return an address; parameters that are None or empty are omitted."""
    kept = {name: str(value) for name, value in query.items() if value not in (None, "")}
    quoted = quote(path, safe="/:")
    return f"{quoted}?{urlencode(kept)}" if kept else quoted


Show = Callable[[PageRequest], Awaitable[Mapping[str, Any]]]
"""Returns the variables of a page's template. Raises RefusedError."""

Act = Callable[[PageRequest], Awaitable[str]]
"""Performs an action; returns the address of the page to show next. Raises RefusedError."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer that is not a page."""

    body: bytes
    media_type: str
    filename: str | None = None
    """The browser saves it under this name; None: it does not."""
    compressed: bytes | None = None
    """The body compressed with gzip, for browsers that accept it."""


Read = Callable[[PageRequest], Awaitable[Answer]]
"""Returns data for a script of a page, or an export. Raises RefusedError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. Its stream of fragments has the same address."""

    path: str
    """In it `{name}` stands for one segment, `{name+}` for one or more."""
    title: str
    template: str
    show: Show
    live: bool = True
    """Whether it is rendered again when something changes."""
    personal: bool = False
    """Whether it depends on who reads it, and not only on the rights of the reader."""
    needs: Operation[Any] = LIST_POOLS
    """The operation that a reader must be permitted to call."""
    method: str = "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The target of a form."""

    path: str
    act: Act
    asks: str = ""
    """The question that it asks first, one of `actions.QUESTIONS`; empty: none."""
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The target of a form that shows what it would do, and does it once that is confirmed."""

    path: str
    title: str
    wanted: Callable[[PageRequest], Mapping[str, Any]]
    """Returns the body of `ActionWanted`, without its digest. Raises RefusedError."""
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Data for a script of a page, or an export."""

    path: str
    read: Read
    method: str = "GET"


Entry = Page | Action | Trial | Data
