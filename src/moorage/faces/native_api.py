"""The native API for callers inside the process: the same routes, rights and answers as over HTTP.

A face that shows pages asks it as a client would. So authorization, validation and decisions stand
once, and whatever a page shows a script can request, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from moorage.faces.web import Caller

Query = Sequence[tuple[str, str]]


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
    """Calls routes on behalf of an authenticated caller."""

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        query: Query = (),
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the answer of a route, a value of `wire`; None if the answer has no body.

        Args:
            caller: as an authenticator has returned it.
            method: of the request.
            path: decoded, such as `/v1/pools/install/azure:pause`.
            query: decoded pairs.
            body: as decoded JSON; None: no body.

        Raises:
            RefusedError: the route refused, or there is none.
        """
        ...

    def permits(self, caller: Caller, method: str, path: str) -> bool:
        """Return whether the caller may call the route at all; it may still refuse."""
        ...
