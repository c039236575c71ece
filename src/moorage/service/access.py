"""Who may call, by tokens of Moorage's own: make, list, revoke, recognise.

A token is shown once, when it is made; only its SHA-256 is stored. Roles are in rising order of
trust; what each means to a dialect is that dialect's authenticator's business.
"""

import hashlib
import secrets
from enum import StrEnum

from msgspec import Struct

from moorage.core.admission.late_releases import OWNER
from moorage.core.admission.slots import BOSKOS
from moorage.core.clock import Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import PAGE_MAX, VOCABLE_LENGTH_MAX
from moorage.service import faults
from moorage.service.audit import Actor, audit_row
from moorage.service.looks import Look
from moorage.service.pages import START, Place, check_limit, place_parse
from moorage.service.transactor import Transactor
from moorage.store import access as access_store
from moorage.store import audit as audit_store
from moorage.store.api import Engine, Plan

SECRET_PREFIX = "moorage_"
"""How every token of ours begins, so that leaked ones can be found by a scanner."""

SECRET_BYTES = 32
ID_BYTES = 6
CACHE_MAX = 4_096
"""Tokens remembered between two requests; beyond it the oldest is looked up again."""


class Role(StrEnum):
    """What a token's holder may do."""

    READER = "reader"
    USER = "user"
    SERVICE = "service"
    OPERATOR = "operator"
    ADMIN = "admin"


class Token(Struct, frozen=True):
    """One token, without its secret. `project_id` is None when it is bound to no project."""

    id: str
    name: str
    role: Role
    project_id: str | None
    created_at: Instant
    revoked_at: Instant | None = None


class Access:
    """The tokens of one service. A revoked token is refused from the revocation's answer on.

    On a shared database another process may have revoked it: so each request first has a look, with
    all that come at the same time, at how many were revoked.
    """

    def __init__(self, engine: Engine, transactor: Transactor, clock: Clock) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self._known: dict[str, Token] = {}
        self._revocations = 0
        self._revoked = 0
        self._looks = Look(self._look)

    async def create(
        self, name: str, role: str, project_id: str | None = None, *, by: Actor
    ) -> tuple[str, Token]:
        """Make a token, as `by` asks. Returns its secret, which nobody can show again, and it.

        Raises `Error`: INVALID for an unknown role, an empty or too long name or project, a name
        that is another owner's, or a role that needs a project without one.
        """
        if "/" in name or name.startswith(BOSKOS) or name == OWNER:
            raise Error(
                Code.INVALID,
                "A token's name has no '/' (an owner of leases is told as PROJECT/NAME), does not"
                f" begin with '{BOSKOS}' and is not '{OWNER}': clients of those hold leases so.",
            )
        token = Token(
            id=secrets.token_hex(ID_BYTES),
            name=_text("name", name),
            role=_role(role),
            project_id=None if project_id is None else _text("project", project_id),
            created_at=self._clock.now(),
        )
        if token.role is Role.USER and project_id is None:
            raise Error(Code.INVALID, "A token of role user needs a project.")
        secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        audit = audit_row(token.created_at, by, "token.create", token.id, after=_description(token))

        def plan() -> Plan[None]:
            yield from access_store.token_insert(_stored(token, secret))
            yield from audit_store.audit_insert(audit)

        await self._transactor.run_alone(plan)
        return secret, token

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Token], str | None]:
        """Return tokens, revoked ones too, oldest first, and the cursor of the next page or None.

        Raises `Error`: INVALID for a wrong cursor or limit, UNAVAILABLE.
        """
        check_limit(limit)
        place = place_parse(cursor, START)
        with faults.told():
            stored = await self._engine.read(
                access_store.tokens_window(place.at, place.id, limit + 1)
            )
        page = [_token(one) for one in stored[:limit]]
        last = str(Place(page[-1].created_at, page[-1].id)) if len(stored) > limit else None
        return page, last

    async def list(self) -> list[Token]:
        """Return all tokens, revoked ones too, oldest first. Raises `Error`: UNAVAILABLE."""
        tokens, cursor = await self.page(None, PAGE_MAX)
        while cursor is not None:
            more, cursor = await self.page(cursor, PAGE_MAX)
            tokens += more
        return tokens

    async def revoke(self, token_id: str, *, by: Actor) -> None:
        """Make a token worthless, as `by` asks.

        Raises `Error`: TOKEN_NOT_FOUND, also when it was revoked already.
        """
        now = self._clock.now()

        def plan() -> Plan[bool]:
            stored = yield from access_store.token_revoke(token_id, now)
            if stored is None:
                return False
            before = _description(_token(stored))
            yield from audit_store.audit_insert(
                audit_row(now, by, "token.revoke", token_id, before)
            )
            return True

        revoked = await self._transactor.run_alone(plan)
        self._forget()
        if not revoked:
            raise Error(Code.TOKEN_NOT_FOUND, f"There is no valid token {token_id}.")

    async def find(self, secret: str) -> Token | None:
        """Return the token with this secret; None when there is none, or it was revoked.

        Raises `Error`: UNAVAILABLE.
        """
        if self._engine.shared:
            with faults.told():
                await self._looks.taken()
        digest = _digest(secret)
        known = self._known.get(digest)
        if known is not None:
            return known
        revocations = self._revocations
        with faults.told():
            stored = await self._engine.read(access_store.token_by_sha256(digest))
        if stored is None or stored.revoked_at is not None:
            return None
        token = _token(stored)
        if revocations == self._revocations:  # otherwise this may be the one that was revoked
            if len(self._known) >= CACHE_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[digest] = token
        return token

    async def _look(self) -> None:
        revoked = await self._engine.read(access_store.revocations_count())
        if revoked != self._revoked:
            self._revoked = revoked
            self._forget()

    def _forget(self) -> None:
        self._revocations += 1
        self._known.clear()


def _description(token: Token) -> dict[str, str | None]:
    """What audit rows tell of a token."""
    return {"name": token.name, "role": token.role.value, "project_id": token.project_id}


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _stored(token: Token, secret: str) -> access_store.AccessToken:
    return access_store.AccessToken(
        id=token.id,
        sha256=_digest(secret),
        name=token.name,
        user_id=token.name,
        project_id=token.project_id or "",
        roles=frozenset({token.role.value}),
        created_at=token.created_at,
    )


def _token(stored: access_store.AccessToken) -> Token:
    (role,) = stored.roles
    return Token(
        id=stored.id,
        name=stored.name,
        role=Role(role),
        project_id=stored.project_id or None,
        created_at=stored.created_at,
        revoked_at=stored.revoked_at,
    )


def _role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise Error(
            Code.INVALID, f"There is no role {role!r}; the roles are {', '.join(Role)}."
        ) from None


def _text(what: str, text: str) -> str:
    if not 1 <= len(text) <= VOCABLE_LENGTH_MAX or not text.isprintable():
        raise Error(
            Code.INVALID, f"A token's {what} is 1 to {VOCABLE_LENGTH_MAX} printable characters."
        )
    return text
