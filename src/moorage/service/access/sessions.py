"""Sessions of the dashboard: a reader who has presented a token is known by a cookie from then on.

A session is bound to its token: a token that was revoked or has expired has no session, on any
process. Every request reads the row, so nothing can be out of date. A caller of another scheme,
such as Keystone, has no token here: its session is in the memory of one process only, with the
credential to authenticate it again.
"""

import secrets
from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct, structs

from moorage.core.clock import HOUR, MINUTE, Clock, Instant
from moorage.core.errors import Error
from moorage.service import audit_log, errors
from moorage.service.access.audit import audit_row
from moorage.service.access.sign_in_attempts import SignInAttempts
from moorage.service.access.token import Token, digest_of, token_of
from moorage.service.audit_entries import Actor
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.store.access import audit as audit_store
from moorage.store.access import sessions as sessions_store
from moorage.store.api import Engine, Plan

SECRET_BYTES = 32
LIFE = 12 * HOUR
"""How long after signing in a session ends at the latest."""

IDLE = HOUR
"""How long a session lasts without a request."""

NOTED_EVERY = MINUTE
"""The least time between two recorded uses of a session."""

OF_TOKEN_MAX = 32
"""Sessions of one token, or of one user of another scheme; one more ends the oldest."""

FOREIGN_MAX = 1_000
"""Sessions of other schemes in a process; one more ends the oldest."""

OPENED_MAX = 60
"""Sessions that a token or user may open within a minute: each leaves an audit row."""

FORGET_MAX = 1_000
ID_CHARACTERS = 12


class Session(Struct, frozen=True):
    """A session: of one of Moorage's own tokens, or of another scheme's credential."""

    token: Token | None
    credential: Mapping[str, str] = {}
    """The request headers that authenticate the reader again; empty if there is a token."""


class _Foreign(Struct, frozen=True):
    credential: Mapping[str, str]
    name: str
    created_at: Instant
    used_at: Instant


class Sessions:
    """The sessions of one service."""

    def __init__(self, engine: Engine, transactor: Transactor, clock: Clock) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self.attempts = SignInAttempts(clock)
        self.openings = SignInAttempts(clock, OPENED_MAX)
        self._foreign: dict[str, _Foreign] = {}

    async def open(self, token: Token, *, source: str, link: str | None = None) -> str | None:
        """Begin a session and return its secret, which cannot be retrieved again.

        Args:
            token: of the reader; valid.
            source: the network address that it came from, for the audit row.
            link: the hash of the one-time link that is used for it, and is gone afterwards; the
                result is None if it was gone before.

        Raises `Error`: UNAVAILABLE.
        """
        secret, now = secrets.token_urlsafe(SECRET_BYTES), self._clock.now()
        digest = digest_of(secret)
        actor = Actor(token.name, token.id, token.role.value)
        after = {"source": source} if link is None else {"source": source, "link": _id_of(link)}
        row = audit_row(now, actor, "session.open", _id_of(digest), after=after)

        def plan() -> Plan[bool]:
            if link is not None:
                used = yield from sessions_store.session_delete(link)
                if used is None:
                    return False
            yield from sessions_store.session_insert(digest, token.id, now, OF_TOKEN_MAX)
            yield from audit_store.audit_insert(row)
            return True

        if not await self._transactor.submit(RunPlan(plan)):
            return None
        audit_log.write([row])
        return secret

    async def open_foreign(
        self, credential: Mapping[str, str], *, actor: Actor, source: str
    ) -> str:
        """Begin a session of a caller that another scheme has authenticated; return its secret.

        Args:
            credential: the request headers that authenticate it; kept in memory only.
            actor: the caller, for the audit row.
            source: the network address that it came from, likewise.

        Raises `Error`: UNAVAILABLE.
        """
        secret, now = secrets.token_urlsafe(SECRET_BYTES), self._clock.now()
        digest = digest_of(secret)
        row = audit_row(now, actor, "session.open", _id_of(digest), after={"source": source})
        await self._transactor.submit(RunPlan(lambda: audit_store.audit_insert(row)))
        audit_log.write([row])
        own = [one for one, known in self._foreign.items() if known.name == actor.who]
        if len(own) >= OF_TOKEN_MAX:
            del self._foreign[own[0]]
        if len(self._foreign) >= FOREIGN_MAX:
            del self._foreign[next(iter(self._foreign))]
        self._foreign[digest] = _Foreign({**credential}, actor.who, now, now)
        return secret

    async def find(self, secret: str, *, used: bool = True) -> Session | None:
        """Return the session with this secret; None if there is none or it has ended.

        `used`: whether this counts as a use. Raises `Error`: UNAVAILABLE.
        """
        digest, now = digest_of(secret), self._clock.now()
        foreign = self._foreign.get(digest)
        if foreign is not None:
            return self._find_foreign(digest, foreign, now, used)
        with errors.translated():
            stored = await self._engine.read(sessions_store.session_by_sha256(digest))
        if stored is None or _is_over(stored.created_at, stored.used_at, now):
            return None
        token = token_of(stored.token)
        if token.revoked_at is not None:
            return None
        if token.expires_at is not None and now >= token.expires_at:
            return None
        if used and now - stored.used_at >= NOTED_EVERY:
            # A reader who must find out why nothing can be written is let in all the same.
            with suppress(Error):
                plan = RunPlan(lambda: sessions_store.session_used(digest, now))
                await self._transactor.submit(plan)
        return Session(token)

    def _find_foreign(
        self, digest: str, foreign: _Foreign, now: Instant, used: bool
    ) -> Session | None:
        if _is_over(foreign.created_at, foreign.used_at, now):
            del self._foreign[digest]
            return None
        if used:
            self._foreign[digest] = structs.replace(foreign, used_at=now)
        return Session(None, foreign.credential)

    async def close(self, secret: str, *, actor: Actor) -> None:
        """End a session; it is no error if it has ended. Raises `Error`: UNAVAILABLE."""
        digest, now = digest_of(secret), self._clock.now()
        foreign = self._foreign.pop(digest, None) is not None
        row = audit_row(now, actor, "session.close", _id_of(digest))

        def plan() -> Plan[bool]:
            found = yield from sessions_store.session_delete(digest)
            if found is None and not foreign:
                return False
            yield from audit_store.audit_insert(row)
            return True

        if await self._transactor.submit(RunPlan(plan)):
            audit_log.write([row])

    async def forget(self) -> int:
        """Delete sessions that have ended: a chore. Return how many. Raises `Error`."""
        now, total = self._clock.now(), 0
        for digest, one in [*self._foreign.items()]:
            if _is_over(one.created_at, one.used_at, now):
                del self._foreign[digest]
        created, used = Instant(now - LIFE), Instant(now - IDLE)
        while True:
            plan = RunPlan(lambda: sessions_store.sessions_forget(created, used, FORGET_MAX))
            gone = await self._transactor.submit(plan)
            total += gone
            if gone < FORGET_MAX:
                return total


def _is_over(created_at: Instant, used_at: Instant, now: Instant) -> bool:
    return now - created_at >= LIFE or now - used_at >= IDLE


def _id_of(digest: str) -> str:
    """Return a session's id in audit rows: the secret cannot be computed from it."""
    return digest[:ID_CHARACTERS]
