"""The calls of the native API that `moorage run` and the handle commands need."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from moorage.client.run.api_types import Lease, LeaseRequest, StrangeAnswerError, lease_of
from moorage.client.run.clock import instant, instant_of
from moorage.client.run.printing import misfit_text
from moorage.client.transport import UNAUTHORIZED, RefusedError, refused_token
from moorage.wire.operations import leases
from moorage.wire.operations.operation import Operation

ANSWER_SECONDS = 10.0
"""How long to wait for an answer, in addition to the wait that was requested of the server."""

GROUP_READ_MAX = 100
"""Live leases of a group that are read in each state: more than there may be in one project."""

BAD_REQUEST = 400


HINT = "set one with MOORAGE_TOKEN or --token-file"
REREAD = (
    "; a token in a file (--token-file, MOORAGE_TOKEN_FILE) is read again when the file has"
    " changed, other tokens are not"
)


class Requests(Protocol):
    """Sends requests: a Transport, or an object that selects one for each request."""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds_max: float | None = None,
        confirms: bool = False,
    ) -> Any:
        """See `Transport.request`."""
        ...

    @property
    def pages(self) -> str | None:
        """See `Transport.pages`."""
        ...


def _scope(owner: str) -> str:
    """Return whose groups an owner's are: its project's, or its own."""
    project, slash, _ = owner.rpartition("/")
    return f"{project}/" if slash else owner


class Leases:
    """Leases at one server.

    Every call raises UnreachableError, RefusedError and StrangeAnswerError. A lease that `ask`,
    `look` or `retry` has returned must be renewed at once: until then the server gives it only a
    few seconds, because this process may be gone.
    """

    def __init__(self, transport: Requests) -> None:
        self._transport = transport

    @property
    def pages(self) -> str | None:
        """The address of the server's pages for people; None: it has none, or it is unknown."""
        return self._transport.pages

    def ask(self, wish: LeaseRequest, key: str, seconds_max: float = ANSWER_SECONDS) -> Lease:
        """Request units; the same key and wish return the same lease again.

        If the wish sets no TTL, it is `usual_ttl`, or the longest that the pools permit.
        """
        try:
            return self._asked(wish, key, seconds_max)
        except RefusedError as refusal:
            # The key may have been used with the other TTL, see `LeaseRequest.usual_ttl`.
            if refusal.code not in ("invalid", "key_reused"):
                raise
            permitted = self._permitted(wish)
            if permitted == wish:
                raise
        return self._asked(permitted, key, seconds_max)

    def _asked(self, wish: LeaseRequest, key: str, seconds_max: float) -> Lease:
        return self._lease(leases.CREATE_LEASE, body=wish.body(key), seconds_max=seconds_max)

    def _permitted(self, wish: LeaseRequest) -> LeaseRequest:
        """Return the wish with its usual TTL limited to the longest that its pools permit."""
        if wish.ttl is not None or wish.usual_ttl is None:
            return wish
        longest = [wish.usual_ttl]
        for pool in sorted(wish.pool_names):
            try:
                longest.append(float(self._pool(pool)["ttl_max"]))
            except (RefusedError, KeyError, TypeError, ValueError):
                return wish  # then the first refusal is raised
        return wish._replace(usual_ttl=min(longest))

    def with_prefix(self, prefix: str, most: int) -> list[Lease]:
        """Return leases and tickets whose ids begin so, live ones first; of each state this many.

        Without a state, a page could be full of ended ones, and miss those that are live.
        """
        found: list[Lease] = []
        for state in ("granted", "waiting", "ended"):
            found += self._leases({"id_prefix": prefix, "state": state, "limit": most})
        return found

    def held_here(self, pool: str, host: str, most: int) -> list[Lease]:
        """Return the caller's granted leases of a pool with this label `host`, on one page."""
        asked = {"pool": pool, "state": "granted", "mine": True, "label": f"host={host}"}
        return self._leases({**asked, "limit": most})

    def newer_of(self, group: str, lease: Lease) -> list[Lease]:
        """Return the live leases and tickets of a group that were asked for later, in that order.

        Groups of the same name of other projects and owners do not count.
        """
        found: list[Lease] = []
        for state in ("granted", "waiting"):
            found += self._leases({"group": group, "state": state, "limit": GROUP_READ_MAX})
        newer = [
            one
            for one in found
            if _scope(one.owner) == _scope(lease.owner)
            and instant_of(one.asked_at) > instant_of(lease.asked_at)
        ]
        return sorted(newer, key=lambda one: instant_of(one.asked_at))

    def units_of(self, pool: str) -> tuple[int, int | None]:
        """Return how many units of a pool can be granted at once: in all, and to one owner."""
        found = self._pool(pool)
        try:
            quota = found.get("quota")
            return int(found["units"]), None if quota is None else int(quota)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StrangeAnswerError(f"the response is not a pool: {misfit_text(error)}") from error

    def look(self, lease_id: str, wait: float = 0.0) -> Lease:
        """Return a lease; while it is a waiting ticket, wait for a change."""
        return self._looked(lease_id, {"wait": f"{wait:g}"}, wait)

    def await_end(self, lease_id: str, wait: float, *, or_stop: bool = False) -> Lease:
        """Return a lease when it has ended, or its state after this many seconds.

        `or_stop`: also when its holder is asked to stop, which only newer servers know.
        """
        until = "asked_to_stop" if or_stop else "ended"
        return self._looked(lease_id, {"wait": f"{wait:g}", "until": until}, wait)

    def renew(self, lease_id: str, token: str | None, seconds_max: float) -> Lease:
        """Renew a lease."""
        body = {"token": token}
        return self._lease(leases.RENEW_LEASE, lease_id, body=body, seconds_max=seconds_max)

    def give_up(self, ticket_id: str, seconds_max: float = ANSWER_SECONDS) -> Lease:
        """Withdraw a ticket because the longest wait is over; it is safe to repeat."""
        asked = {"gave_up": True}
        try:
            return self._lease(
                leases.RELEASE_LEASE, ticket_id, query=asked, seconds_max=seconds_max
            )
        except RefusedError as refusal:
            if refusal.status != BAD_REQUEST:
                raise
            return self.release(ticket_id, None, seconds_max)  # an older server

    def release(
        self, lease_id: str, token: str | None, seconds_max: float = ANSWER_SECONDS
    ) -> Lease:
        """Release a lease or withdraw a ticket; it is safe to repeat.

        `token`: of the lease; None if it has none yet, or it is unknown.
        """
        asked = {"token": token}
        return self._lease(leases.RELEASE_LEASE, lease_id, query=asked, seconds_max=seconds_max)

    def end_within(self, lease_id: str, token: str | None, seconds: float) -> Lease:
        """Make the server end a lease at most this many seconds from now: an earlier end stays."""
        body = {"token": token, "hold": seconds}
        try:
            return self._lease(leases.SET_LEASE_HOLD, lease_id, body={**body, "at_most": True})
        except RefusedError as refusal:
            if refusal.status != BAD_REQUEST:
                raise
        lease = self.look(lease_id)  # an older server, which sets any end
        wanted = instant_of(instant()) + timedelta(seconds=seconds)
        if lease.hold_until is not None and instant_of(lease.hold_until) <= wanted:
            return lease
        return self._lease(leases.SET_LEASE_HOLD, lease_id, body=body)

    def keep(
        self, lease_id: str, token: str | None, lasts: float, reason: str, seconds_max: float
    ) -> Lease:
        """Keep a lease for inspection for this many seconds, or as long as its pools permit."""
        body = {"token": token, "lasts": lasts, "reason": reason, "at_most": True}
        return self._lease(leases.KEEP_LEASE, lease_id, body=body, seconds_max=seconds_max)

    def retry(
        self, lease_id: str, token: str | None, key: str, seconds_max: float = ANSWER_SECONDS
    ) -> Lease:
        """Release a lease and request the same again, in one step."""
        body = {"token": token, "key": key}
        return self._lease(leases.RETRY_LEASE, lease_id, body=body, seconds_max=seconds_max)

    def outcome(
        self,
        lease_id: str,
        token: str | None,
        result: str,
        detail: str,
        seconds_max: float,
        cause: str = "",
    ) -> Any:
        """Report the result of what was started: ok, failed or throttled.

        Returns the lease as the server sends it.
        """
        body = {"token": token, "result": result, "detail": detail}
        if cause:
            body["cause"] = cause
        return self._call(leases.REPORT_LEASE_OUTCOME, lease_id, body=body, seconds_max=seconds_max)

    def _looked(self, lease_id: str, query: dict[str, Any], wait: float) -> Lease:
        seconds_max = wait + ANSWER_SECONDS
        return self._lease(leases.GET_LEASE, lease_id, query=query, seconds_max=seconds_max)

    def _leases(self, query: dict[str, Any]) -> list[Lease]:
        answer = self._call(leases.LIST_LEASES, query=query)
        try:
            return [lease_of(one) for one in answer["leases"]]
        except (KeyError, TypeError) as error:
            raise StrangeAnswerError(f"the response has no leases: {misfit_text(error)}") from error

    def _pool(self, name: str) -> Any:
        from moorage.wire.operations import pools  # deferred: most runs ask for no pool

        return self._call(pools.GET_POOL, name)

    def _lease(self, operation: Operation[Any], *variables: str, **asked: Any) -> Lease:
        return lease_of(self._call(operation, *variables, **asked))

    def _call(
        self,
        operation: Operation[Any],
        *variables: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        seconds_max: float = ANSWER_SECONDS,
    ) -> Any:
        """Call an operation; return the decoded JSON of its answer."""
        address = operation.address(*variables, query=query)
        try:
            return self._transport.request(
                operation.method, address, body, seconds_max=seconds_max, confirms=True
            )
        except RefusedError as refusal:
            if refusal.status == UNAUTHORIZED and not refusal.token_may_change:
                has_one = refused_token(None) not in str(refusal)
                refusal.args = (f"{refusal}; {HINT}{REREAD if has_one else ''}",)
            raise
