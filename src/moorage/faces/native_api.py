"""The native API for callers inside the process: operations, rights and answers as over HTTP.

A face that shows pages asks it as a client would. So authorization, validation and decisions stand
once, and whatever a page shows a script can request, too.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from moorage.faces.web import Caller
from moorage.wire.operations.operation import Operation

A = TypeVar("A")


class RefusedError(Exception):
    """A refusal of the native API: the HTTP status, the code for programs, the reason.

    `oldest` is as in `wire.problems`.
    """

    def __init__(self, status: int, code: str, message: str, oldest: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.oldest = oldest


class NativeApi(Protocol):
    """Calls operations on behalf of an authenticated caller."""

    async def call(
        self,
        caller: Caller,
        operation: Operation[A],
        *variables: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> A:
        """Return the answer of an operation.

        Args:
            caller: as an authenticator has returned it.
            operation: any of the native API.
            variables: the values of the variables in its path, in their order.
            query: parameters by name; None is omitted.
            body: as decoded JSON; None: no body.

        Raises:
            RefusedError: the operation was refused.
        """
        ...

    def permits(self, caller: Caller, operation: Operation[Any]) -> bool:
        """Return whether the caller may call the operation at all; it may still refuse."""
        ...
