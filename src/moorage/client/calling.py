"""Calls operations of the native API, and returns their answers as dataclasses of `wire`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from typing import Any, TypeVar, cast

from moorage.client.decoding import decode
from moorage.client.transport import Transport
from moorage.wire.dataclass import members
from moorage.wire.operations.operation import Operation
from moorage.wire.pages import PAGE_MAX

A = TypeVar("A")


class Room:
    """A part of the native API of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _call(
        self,
        operation: Operation[A],
        *variables: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        seconds_max: float | None = None,
    ) -> A:
        """Call an operation; `variables`, `query` are as in `Operation.address`."""
        address = operation.address(*variables, query=query)
        answer = self._transport.request(
            operation.method, address, body_of(body), seconds_max=seconds_max
        )
        return answer_of(operation, answer)

    def _pages(
        self, operation: Operation[A], *variables: str, query: Mapping[str, Any] | None = None
    ) -> Iterator[A]:
        """Yield the pages of a list; each has the cursor of the next one."""
        asked = {**(query or {}), "cursor": None, "limit": PAGE_MAX}
        while True:
            page: Any = self._call(operation, *variables, query=asked)
            yield page
            asked["cursor"] = page.next
            if page.next is None:
                return


def body_of(body: Any) -> Any:
    """Return a body for JSON; it may be a dataclass of `wire`, with times at any depth."""
    if not is_dataclass(body) or isinstance(body, type):
        return body
    return _plain(members(body))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def answer_of(operation: Operation[A], answer: Any) -> A:
    """Return a decoded JSON value as the answer of an operation. Raises UndecodableError."""
    kind = operation.content.answer
    return cast("A", None) if kind is None else decode(kind, answer)
