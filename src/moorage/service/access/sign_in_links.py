"""One-time links that sign a browser in to the dashboard as the caller who has made them.

A link has a code. It is a row beside those of sessions, under a hash that no cookie can have, and
is deleted by the transaction that begins its session: so it works once, on any process, after a
restart, and ends with its token.
"""

import secrets

from moorage.core.clock import MINUTE, Clock, Instant
from moorage.service import audit_log, errors
from moorage.service.access.audit import audit_row
from moorage.service.access.sessions import ID_CHARACTERS, OF_TOKEN_MAX, SECRET_BYTES, Sessions
from moorage.service.access.token import Token, digest_of, token_of
from moorage.service.audit_entries import Actor
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.store.access import audit as audit_store
from moorage.store.access import sessions as sessions_store
from moorage.store.api import Engine, Plan

LIFE = 2 * MINUTE
"""How long a link can be used: enough to copy it from one screen to another."""


class SignInLinks:
    """The links of one service."""

    def __init__(
        self, engine: Engine, transactor: Transactor, clock: Clock, sessions: Sessions
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self._sessions = sessions

    async def make(self, token_id: str, *, by: Actor) -> tuple[str, Instant]:
        """Return the code of a new link for a token, and when it ends.

        Raises `Error`: UNAVAILABLE.
        """
        code, now = secrets.token_urlsafe(SECRET_BYTES), self._clock.now()
        digest = _digest_of(code)
        row = audit_row(now, by, "session.link", digest[:ID_CHARACTERS])

        def plan() -> Plan[None]:
            yield from sessions_store.session_insert(digest, token_id, now, OF_TOKEN_MAX)
            yield from audit_store.audit_insert(row)

        await self._transactor.submit(RunPlan(plan))
        audit_log.write([row])
        return code, Instant(now + LIFE)

    async def find(self, code: str) -> Token | None:
        """Return whom a link signs in, without using it; None: it has been used, or has ended.

        Raises `Error`: UNAVAILABLE.
        """
        now = self._clock.now()
        with errors.translated():
            stored = await self._engine.read(sessions_store.session_by_sha256(_digest_of(code)))
        if stored is None or now - stored.created_at >= LIFE:
            return None
        token = token_of(stored.token)
        ended = token.expires_at is not None and now >= token.expires_at
        return None if ended or token.revoked_at is not None else token

    async def redeem(self, code: str, *, source: str) -> str | None:
        """Use a link: return the secret of a new session; None: somebody else was first.

        Raises `Error`: UNAVAILABLE.
        """
        token = await self.find(code)
        if token is None:
            return None
        return await self._sessions.open(token, source=source, link=_digest_of(code))


def _digest_of(code: str) -> str:
    """Return the hash of a code. The secret of a session has no space, so it is never the same."""
    return digest_of(f"sign-in link {code}")
