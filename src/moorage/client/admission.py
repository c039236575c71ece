"""The typed native API of admission: pools, leases and tickets, outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from moorage.client.calling import Room
from moorage.client.slots import Slots
from moorage.client.transport import SECONDS_MAX
from moorage.wire.admin import OwnerRevoked, OwnerRevokeWanted, SignInLink, WhoAmI
from moorage.wire.admission import (
    Lease,
    LeasePage,
    LeaseWanted,
    Pool,
    PoolPage,
    PoolWanted,
)
from moorage.wire.defaults import OFFER_SECONDS
from moorage.wire.operations import admin, leases, pools
from moorage.wire.operations.operation import Operation
from moorage.wire.pages import PAGE_MAX
from moorage.wire.pools.past import PoolHistory, Rehearsal, RehearsalWanted
from moorage.wire.pools.reports import PoolContents, PoolReport

if TYPE_CHECKING:
    from moorage.wire.acting import ActionEffect, ActionWanted
    from moorage.wire.pools.lease_changes import Verified
    from moorage.wire.pools.templates import PoolTemplate, PoolTemplateWanted

CLEARING_SECONDS = 60.0
"""How much longer than usual the end of all leases of an owner may take."""


class Admission(Room):
    """The pools and leases of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server. `token` is always the fencing token of the lease: an old one is refused
    with the code `token_stale`; without a token the server checks only the caller's identity.
    """

    def pools(self) -> Iterator[Pool]:
        """Yield all pools, by name."""
        for page in self._pages(pools.LIST_POOLS):
            yield from page.pools

    def pools_page(self, cursor: str | None = None, limit: int = PAGE_MAX) -> PoolPage:
        """Return one page of pools, by name; watch from `as_of` of the first page."""
        return self._call(pools.LIST_POOLS, query={"cursor": cursor, "limit": limit})

    def pool(self, name: str) -> Pool:
        """Return a pool."""
        return self._call(pools.GET_POOL, name)

    def pool_put(self, name: str, wanted: PoolWanted) -> Pool:
        """Create or update a pool; `wanted.generation` guards against concurrent changes."""
        return self._call(pools.PUT_POOL, name, body=wanted)

    def pool_delete(self, name: str) -> None:
        """Delete a pool that has no leases and no tickets."""
        self._call(pools.DELETE_POOL, name)

    def pool_templates(self) -> list[PoolTemplate]:
        """Return all templates of pools, by name."""
        return self._call(pools.LIST_POOL_TEMPLATES).templates

    def pool_template(self, name: str) -> PoolTemplate:
        """Return a template of pools."""
        return self._call(pools.GET_POOL_TEMPLATE, name)

    def pool_template_put(self, name: str, wanted: PoolTemplateWanted) -> PoolTemplate:
        """Create or update a template; `wanted.generation` guards against concurrent changes."""
        return self._call(pools.PUT_POOL_TEMPLATE, name, body=wanted)

    def pool_template_delete(self, name: str) -> None:
        """Delete a template; its pools stay until they are idle."""
        self._call(pools.DELETE_POOL_TEMPLATE, name)

    def pool_pause(self, name: str, reason: str = "", lasts: float | None = None) -> Pool:
        """Stop granting from a pool, for a reason that its tickets show; all else continues.

        `lasts`: seconds after which the pause ends by itself; None: when the pool is resumed.
        """
        body: dict[str, Any] | None = {"reason": reason} if reason else None
        if lasts is not None:
            body = {"reason": reason, "lasts": lasts}
        return self._call(pools.PAUSE_POOL, name, body=body)

    def pool_resume(self, name: str) -> Pool:
        """Resume granting from a pool."""
        return self._call(pools.RESUME_POOL, name)

    def pool_report(self, name: str, since: float | None = None) -> PoolReport:
        """Return the data for choosing a pool's limit; `since`: seconds up to now."""
        return self._call(pools.GET_POOL_REPORT, name, query={"since": since})

    def pool_contents(self, name: str, leases: int = 100, tickets: int = 100) -> PoolContents:
        """Return a pool with its first leases and tickets, as of one revision."""
        asked = {"leases": leases, "tickets": tickets}
        return self._call(pools.GET_POOL_CONTENTS, name, query=asked)

    def pool_history(
        self, name: str, since: float | None = None, points: int | None = None
    ) -> PoolHistory:
        """Return occupied units and waiting tickets of a pool over the last `since` seconds."""
        asked = {"since": since, "points": points}
        return self._call(pools.GET_POOL_HISTORY, name, query=asked)

    def rehearse(self, name: str, wanted: RehearsalWanted) -> Rehearsal:
        """Replay the past jobs of a pool with other limits and pacings; it changes nothing."""
        return self._call(pools.REHEARSE_POOL, name, body=wanted)

    def slots(self, pool: str) -> Slots:
        """Return the named slots of a pool."""
        return Slots(self._transport, pool)

    def ask(self, wanted: LeaseWanted, wait: float = 0.0) -> Lease:
        """Request units; wait up to 60 seconds for the grant.

        The result is granted, or waiting (then call `lease` to continue waiting, before the
        patience is over), or ended, if this key was used before and its lease has ended. It is safe
        to repeat the call after UnreachableError.
        """
        return self._waited(leases.CREATE_LEASE, wait, body=wanted)

    def leases(
        self,
        pool: str | None = None,
        state: str | None = None,
        owner: str | None = None,
        *,
        key_prefix: str | None = None,
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        older: float | None = None,
        consumer: str | None = None,
        group: str | None = None,
        offered: bool = False,
    ) -> Iterator[Lease]:
        """Yield leases and tickets in the order of their requests.

        `key_prefix` needs an owner, unless the caller is a governor: only keys that begin with it.
        `mine`: those of the caller. `labels`: those that have all of these. `older`: those that
        have been in their state for at least this many seconds. `consumer`: those with allocations
        of the consumer with this UUID. `group`: those of the group of requests. `offered`: those
        that the caller may accept.
        """
        asked = _leases_asked(pool, state, owner, key_prefix, mine, labels, older)
        asked.update(consumer=consumer, group=group, offered=offered or None)
        for page in self._pages(leases.LIST_LEASES, query=asked):
            yield from page.leases

    def leases_page(
        self,
        pool: str | None = None,
        state: str | None = None,
        owner: str | None = None,
        *,
        key_prefix: str | None = None,
        id_prefix: str | None = None,
        mine: bool = False,
        labels: Mapping[str, str] | None = None,
        older: float | None = None,
        cursor: str | None = None,
        limit: int = PAGE_MAX,
    ) -> LeasePage:
        """Return one page of `leases`; if filtered, it may be short and not the last.

        `id_prefix`: only ids that begin with it.
        """
        asked = _leases_asked(pool, state, owner, key_prefix, mine, labels, older)
        asked.update(id_prefix=id_prefix, cursor=cursor, limit=limit)
        return self._call(leases.LIST_LEASES, query=asked)

    def lease(self, lease_id: str, wait: float = 0.0) -> Lease:
        """Return a lease or ticket; wait up to 60 seconds for a ticket to be granted or ended.

        If the caller owns the ticket, the call also keeps its place in line.
        """
        return self._waited(leases.GET_LEASE, wait, lease_id)

    def renew(self, lease_id: str, token: str | None = None) -> Lease:
        """Extend a lease to its full TTL from now."""
        return self._call(leases.RENEW_LEASE, lease_id, body={"token": token})

    def release(
        self,
        lease_id: str,
        token: str | None = None,
        *,
        record_version: int | None = None,
        gave_up: bool = False,
    ) -> Lease:
        """Release a lease, or withdraw a ticket; it is safe to repeat.

        A live lease whose record has another version is refused with the code `record_changed`.
        `gave_up`: the longest wait for a ticket is over, which its cause then says.
        """
        asked = {"token": token, "record_version": record_version, "gave_up": gave_up or None}
        return self._call(leases.RELEASE_LEASE, lease_id, query=asked)

    def record_put(
        self, lease_id: str, record: dict[str, Any], version: int, token: str | None = None
    ) -> Lease:
        """Replace the record of a lease that has this version; 0: it has none yet.

        Another version is refused with the code `record_changed`. It is safe to repeat.
        """
        values = {"record": record, "version": version, "token": token}
        return self._call(leases.PUT_LEASE_RECORD, lease_id, body=values)

    def hold(
        self,
        lease_id: str,
        hold: float | None,
        token: str | None = None,
        *,
        at_most: bool = False,
    ) -> Lease:
        """Make a lease end this many seconds from now; None: it no longer has a hold.

        With `at_most` a lease that ends earlier keeps its end.
        """
        values: dict[str, Any] = {"hold": hold, "token": token}
        if at_most:
            values["at_most"] = True
        return self._call(leases.SET_LEASE_HOLD, lease_id, body=values)

    def keep(
        self,
        lease_id: str,
        lasts: float,
        reason: str = "",
        token: str | None = None,
        *,
        at_most: bool = False,
    ) -> Lease:
        """Keep a lease for inspection for this many seconds: it needs no renewals until it ends.

        `at_most`: for less if its pools permit less.
        """
        values = {"lasts": lasts, "reason": reason, "token": token, "at_most": at_most}
        return self._call(leases.KEEP_LEASE, lease_id, body=values)

    def offer(
        self, lease_id: str, to: str, lasts: float = OFFER_SECONDS, token: str | None = None
    ) -> Lease:
        """Offer a lease to another owner for this many seconds; until it accepts, nothing changes.

        It is safe to repeat, and replaces an earlier offer.
        """
        values = {"to": to, "lasts": lasts, "token": token}
        return self._call(leases.OFFER_LEASE, lease_id, body=values)

    def offer_withdraw(self, lease_id: str, token: str | None = None) -> Lease:
        """Take an offer back; a lease that was accepted is refused with `lease_ended`."""
        return self._call(leases.WITHDRAW_LEASE_OFFER, lease_id, query={"token": token})

    def accept(self, lease_id: str, key: str, labels: Mapping[str, str] | None = None) -> Lease:
        """Take over a lease that is offered to the caller; return the caller's new lease.

        The old lease ends at that moment. It is safe to repeat with the same key. A lease that is
        not offered, or no longer, is refused with the code `not_offered`.
        """
        values = {"key": key, "labels": dict(labels or {})}
        return self._call(leases.ACCEPT_LEASE, lease_id, body=values)

    def decline(self, lease_id: str) -> Lease:
        """Decline a lease that is offered to the caller, as `accept` refuses it."""
        return self._call(leases.DECLINE_LEASE, lease_id)

    def preview(self, wanted: ActionWanted) -> ActionEffect:
        """Return what an action would do now; it changes nothing."""
        from moorage.wire.operations import acting  # deferred: few callers need it

        return self._call(acting.PREVIEW_ACTION, body=wanted)

    def retry(
        self,
        lease_id: str,
        key: str,
        token: str | None = None,
        *,
        requeue: bool = False,
        record_version: int | None = None,
    ) -> Lease:
        """Release a lease and request the same again in one step; `key` is for the new attempt.

        With `requeue` its units are given back, and the new ticket waits at the old place; it may
        have the same key. `record_version` as in `release`.
        """
        values: dict[str, Any] = {"key": key, "token": token}
        if requeue:
            values["requeue"] = True
        if record_version is not None:
            values["record_version"] = record_version
        return self._call(leases.RETRY_LEASE, lease_id, body=values)

    def revoke(self, lease_id: str, reason: str = "", *, holder_is_gone: bool = False) -> Lease:
        """Revoke a lease or ticket.

        With `holder_is_gone` no late release by name is expected of a lease of the lease proxy,
        also if it has ended before.
        """
        values: dict[str, Any] = {"reason": reason}
        if holder_is_gone:
            values["holder_is_gone"] = True
        return self._call(leases.REVOKE_LEASE, lease_id, body=values)

    def revoke_owner(
        self,
        owner: str,
        state: Literal["waiting", "granted"] | None = None,
        pool: str | None = None,
        reason: str = "",
    ) -> OwnerRevoked:
        """End the tickets and leases of an owner, or of all of a project, `PROJECT/*`.

        One call ends 10,000 at most: if there are `more`, call again. Owners may end their own.
        """
        wanted = OwnerRevokeWanted(owner=owner, state=state, pool=pool, reason=reason)
        seconds_max = SECONDS_MAX + CLEARING_SECONDS
        return self._call(leases.REVOKE_OWNER_LEASE, body=wanted, seconds_max=seconds_max)

    def move(self, lease_id: str, priority: int | None = None) -> Lease:
        """Give a waiting ticket another priority; None: make it the first in all its lines.

        A lease that does not wait is refused with the code `not_waiting`.
        """
        values = {"first": True} if priority is None else {"priority": priority}
        return self._call(leases.MOVE_LEASE, lease_id, body=values)

    def force(self, lease_id: str) -> Lease:
        """Grant a waiting ticket at once, over the limit if necessary; it is safe to repeat."""
        return self._call(leases.FORCE_LEASE, lease_id)

    def whoami(self) -> WhoAmI:
        """Return the caller as the server knows it, and the server's version."""
        return self._call(admin.WHOAMI)

    def sign_in_link(self) -> SignInLink:
        """Make a one-time link to the dashboard, see `SignInLink`."""
        return self._call(admin.MAKE_SIGN_IN_LINK)

    def outcome(
        self,
        lease_id: str,
        result: str,
        detail: str = "",
        token: str | None = None,
        cause: str = "",
    ) -> Lease:
        """Report the result of what was started with a lease: ok, failed or throttled.

        `cause`: a short text, the same for failures that belong together.
        """
        values = {"result": result, "detail": detail, "token": token}
        if cause:
            values["cause"] = cause
        return self._call(leases.REPORT_LEASE_OUTCOME, lease_id, body=values)

    def verify(self, pool: str, token: str) -> Verified:
        """Check whether a token belongs to a lease that has units of a pool now."""
        return self._call(leases.VERIFY_LEASE, query={"pool": pool, "token": token})

    def _waited(
        self, operation: Operation[Lease], wait: float, *variables: str, body: Any = None
    ) -> Lease:
        """Call an operation that waits this many seconds for a grant; 0: it does not wait."""
        seconds_max = SECONDS_MAX + wait if wait else None
        query = {"wait": wait or None}
        return self._call(operation, *variables, query=query, body=body, seconds_max=seconds_max)


def _leases_asked(
    pool: str | None,
    state: str | None,
    owner: str | None,
    key_prefix: str | None,
    mine: bool,
    labels: Mapping[str, str] | None,
    older: float | None,
) -> dict[str, Any]:
    return {
        "pool": pool,
        "state": state,
        "owner": owner,
        "key_prefix": key_prefix,
        "mine": mine or None,
        "label": [f"{name}={value}" for name, value in (labels or {}).items()],
        "older": older,
    }
