"""Ends the tickets and leases of a token that has ended.

No client can poll a ticket of a revoked or expired token, so the ticket would only block others
until its patience is over. Tickets end with their token, unless another valid token has the same
owner; leases end only if the caller says so, because their work may still run.
"""

from moorage.core.admission.model import State
from moorage.core.clock import SECOND, Clock, Instant
from moorage.core.limits import PATIENCE_SECONDS_MAX
from moorage.service import errors
from moorage.service.access.roles import Role
from moorage.service.access.tokens import AccessTokens
from moorage.service.admission.ending import Cleared, Clearing
from moorage.service.admission.service import Admission
from moorage.service.audit_entries import Actor
from moorage.store.access import tokens as access_store
from moorage.store.access.tokens import AccessToken
from moorage.store.api import Engine

BY_ITSELF = Actor("moorage", None, "server")

OVER_MAX = 10_000
"""Ended tokens that one look reads."""

CLOCKS_DIFFER = 60 * SECOND
"""By how much the clocks of several processes may differ."""

TICKETS: tuple[State, ...] = ("waiting",)
BOTH: tuple[State, ...] = ("waiting", "granted")

OWNING = frozenset({Role.USER, Role.SERVICE, Role.OPERATOR, Role.ADMIN})
"""Roles whose tokens ask for leases in their own name; all governors share one."""


class TokenEnds:
    """Ends tickets of tokens that are not valid any more. Every method raises `Error`."""

    def __init__(
        self, engine: Engine, access: AccessTokens, admission: Admission, clock: Clock
    ) -> None:
        self._engine = engine
        self._access = access
        self._admission = admission
        self._clock = clock
        self._since = Instant(max(0, clock.now() - 2 * PATIENCE_SECONDS_MAX * SECOND))
        """Ends before this have been looked at; at the start: their tickets are over anyway."""

    async def revoke(self, token_id: str, by: Actor, *, leases: bool = False) -> Cleared:
        """Revoke a token and end its tickets, with `leases` its leases, too.

        If the process ends in between, `look` ends the tickets. Raises TOKEN_NOT_FOUND.
        """
        token = await self._access.revoke(token_id, by=by)
        states = BOTH if leases else TICKETS
        return await self._clear(token, states, f"token {token_id} was revoked", by, None)

    async def look(self) -> int:
        """End the tickets of tokens that have ended since the last look; return how many.

        A chore. It finds those that have expired, and those that another process has revoked.
        """
        now = self._clock.now()
        with errors.translated():
            over = await self._engine.read(access_store.tokens_over(self._since, now, OVER_MAX))
        at = (await self._admission.queries.now()).moment.at
        total = 0
        for token in over:
            end = min(filter(None, (token.revoked_at, token.expires_at)))
            asked_until = Instant(at - (now - end) + CLOCKS_DIFFER)
            why = f"token {token.id} is not valid any more"
            cleared = await self._clear(token, TICKETS, why, BY_ITSELF, asked_until)
            total += cleared.tickets
        self._since = Instant(now - CLOCKS_DIFFER)
        return total

    async def _clear(
        self,
        token: AccessToken,
        states: tuple[State, ...],
        why: str,
        by: Actor,
        asked_until: Instant | None,
    ) -> Cleared:
        owner = _owner_of(token)
        if owner is None or await self._is_owned(token):
            return Cleared()
        what = Clearing(owner, states, why, by, asked_until=asked_until)
        cleared = total = await self._admission.owners.clear(what)
        while cleared.more:
            cleared = await self._admission.owners.clear(what)
            total = Cleared(total.tickets + cleared.tickets, total.leases + cleared.leases)
        return total

    async def _is_owned(self, token: AccessToken) -> bool:
        """Return whether a valid token has the same owner."""
        plan = access_store.tokens_valid(token.name, token.project_id, self._clock.now())
        with errors.translated():
            return any(_owner_of(one) is not None for one in await self._engine.read(plan))


def _owner_of(token: AccessToken) -> str | None:
    """Return the owner of a token's leases; None: it has none of its own."""
    if token.scope is not None or not token.roles & {role.value for role in OWNING}:
        return None
    return f"{token.project_id}/{token.name}" if token.project_id else token.name
