"""The calls of the native API that a command with a lease makes."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote

from moorage.client.run.api_types import Lease, Wish, lease_of
from moorage.client.transport import UNAUTHORIZED, RefusedError

ANSWER_SECONDS = 10.0
"""How long to wait for an answer, beyond what the server was asked to wait."""

WAIT_SECONDS_MAX = 20.0
"""The longest poll: shorter than the 30 seconds after which many proxies cut a quiet connection."""


class Requests(Protocol):
    """What carries requests: a Transport, or what finds one for each."""

    def request(
        self, method: str, path: str, body: Any = None, *, seconds_max: float | None = None
    ) -> Any:
        """See `Transport.request`."""
        ...


class Leases:
    """Leases at one server.

    Every call raises UnreachableError, RefusedError and StrangeAnswerError.
    """

    def __init__(self, transport: Requests) -> None:
        self._transport = transport

    def ask(self, wish: Wish, key: str, seconds_max: float = ANSWER_SECONDS) -> Lease:
        """Ask for units; the same key and wish give the same lease again.

        A TTL that nobody has named is as long as the pools permit.
        """
        try:
            return self._asked(wish, key, seconds_max)
        except RefusedError as refusal:
            # With another TTL, too, the key may have been used: see `Wish.usual_ttl`.
            if refusal.code not in ("invalid", "key_reused"):
                raise
            permitted = self._permitted(wish)
            if permitted == wish:
                raise
        return self._asked(permitted, key, seconds_max)

    def _asked(self, wish: Wish, key: str, seconds_max: float) -> Lease:
        return self._lease("POST", "/v1/leases", wish.body(key), seconds_max)

    def _permitted(self, wish: Wish) -> Wish:
        """Return a wish with a usual TTL that is not above the longest of its pools."""
        if wish.ttl is not None or wish.usual_ttl is None:
            return wish
        longest = [wish.usual_ttl]
        for pool, _ in wish.needs:
            try:
                told = self._answer("GET", f"/v1/pools/{quote(pool)}", None, ANSWER_SECONDS)
                longest.append(float(told["ttl_max"]))
            except (RefusedError, KeyError, TypeError, ValueError):
                return wish  # what was refused before is what counts
        return wish._replace(usual_ttl=min(longest))

    def look(self, lease_id: str, wait: float = 0.0) -> Lease:
        """Return a lease; as long as it waits in line, wait for what becomes of it."""
        return self._lease("GET", f"{_path(lease_id)}?wait={wait:g}", None, wait + ANSWER_SECONDS)

    def await_end(self, lease_id: str, wait: float) -> Lease:
        """Return a lease when it has ended, or as it stands after so many seconds."""
        path = f"{_path(lease_id)}?wait={wait:g}&until=ended"
        return self._lease("GET", path, None, wait + ANSWER_SECONDS)

    def renew(self, lease_id: str, token: str | None, seconds_max: float) -> Lease:
        """Say that the holder is alive."""
        return self._lease("POST", f"{_path(lease_id)}/renew", {"token": token}, seconds_max)

    def release(
        self, lease_id: str, token: str | None, seconds_max: float = ANSWER_SECONDS
    ) -> Lease:
        """Give a lease back, or leave the line; a second time is harmless.

        `token`: of the lease; None: it has none yet, or nobody has heard of it.
        """
        proof = "" if token is None else f"?token={quote(token, safe='')}"
        return self._lease("DELETE", f"{_path(lease_id)}{proof}", None, seconds_max)

    def hold(self, lease_id: str, token: str | None, hold: float) -> Lease:
        """Let the server end a lease so many seconds from now."""
        return self._lease("PATCH", _path(lease_id), {"token": token, "hold": hold})

    def retry(
        self, lease_id: str, token: str | None, key: str, seconds_max: float = ANSWER_SECONDS
    ) -> Lease:
        """Release a lease and ask for the same anew, in one step."""
        body = {"token": token, "key": key}
        return self._lease("POST", f"{_path(lease_id)}/retry", body, seconds_max)

    def outcome(
        self, lease_id: str, token: str | None, result: str, detail: str, seconds_max: float
    ) -> Any:
        """Tell what became of what was started: ok, failed or throttled.

        Returns the lease with all that the server tells of it.
        """
        body = {"token": token, "result": result, "detail": detail}
        return self._answer("POST", f"{_path(lease_id)}/outcome", body, seconds_max)

    def _lease(
        self, method: str, path: str, body: Any = None, seconds_max: float = ANSWER_SECONDS
    ) -> Lease:
        return lease_of(self._answer(method, path, body, seconds_max))

    def _answer(self, method: str, path: str, body: Any, seconds_max: float) -> Any:
        try:
            return self._transport.request(method, path, body, seconds_max=seconds_max)
        except RefusedError as refusal:
            if refusal.status == UNAUTHORIZED:
                refusal.args = (f"{refusal}: MOORAGE_TOKEN or --token-file",)
            raise


def _path(lease_id: str) -> str:
    return f"/v1/leases/{quote(lease_id, safe='')}"
