"""Moorage's own tokens: create, list, rotate, revoke, validate.

A token's secret is returned once, on creation; only its SHA-256 is stored. Faces map its role to
their own.
"""

import logging
import secrets
from collections.abc import Iterable
from itertools import islice
from typing import Generic, TypeVar

from msgspec import structs

from moorage.core.admission.owners import BOSKOS, LEASE_PROXY, is_reserved
from moorage.core.clock import HOUR, SECOND, Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.limits import IDENTIFIER_LENGTH_MAX, PAGE_MAX, TOKEN_CACHE_MAX
from moorage.core.texts import check_plain
from moorage.service import audit_log, errors
from moorage.service.access.audit import audit_row
from moorage.service.access.roles import Role, ScopedRole, role_parse, scope_parse
from moorage.service.access.sessions import Sessions
from moorage.service.access.sign_in_links import SignInLinks
from moorage.service.access.token import (
    Token,
    description,
    digest_of,
    members_shown,
    secret_new,
    stored,
    successor,
    token_of,
)
from moorage.service.audit_entries import Actor
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.feed.single_flight import SingleFlight
from moorage.service.pages import START, PageMarker, page_of, place_parse, rows_to_read
from moorage.service.values import microseconds, microseconds_or_none
from moorage.store.access import audit as audit_store
from moorage.store.access import tokens as access_store
from moorage.store.api import Engine, Plan
from moorage.wire.admin import RotationWanted, TokenMade, TokenWanted
from moorage.wire.labels import GOVERNOR

USED_EVERY = HOUR
"""The minimum time between two recorded uses of a token."""

WRITTEN_MAX = 1_000
"""The most uses written at once: a batch of all agents' tokens would delay claims."""


class TokenUses:
    """Last uses of tokens, by their ids, of at most `tokens_max` tokens."""

    def __init__(self, tokens_max: int) -> None:
        self._tokens_max = tokens_max
        self._used: dict[str, Instant] = {}
        self._unwritten: dict[str, Instant] = {}

    def note(self, token_id: str, stored: Instant | None, now: Instant) -> None:
        """Note a use; `stored` is the last one in the database. Ignored within `USED_EVERY`."""
        last = self._used.get(token_id, stored)
        if last is not None and now - last < USED_EVERY:
            return
        if token_id not in self._used and len(self._used) >= self._tokens_max:
            first = next(iter(self._used))
            del self._used[first]
            self._unwritten.pop(first, None)
        self._used[token_id] = self._unwritten[token_id] = now

    def last(self, token_id: str) -> Instant | None:
        """Return the last use noted here; it may not have been written yet."""
        return self._used.get(token_id)

    def take(self) -> dict[str, Instant]:
        """Return uses to write, earliest first, at most `WRITTEN_MAX`; they count as written."""
        taken = dict(islice(self._unwritten.items(), WRITTEN_MAX))
        for token_id in taken:
            del self._unwritten[token_id]
        return taken

    def put_back(self, uses: dict[str, Instant]) -> None:
        """Count uses as not written, because writing them has failed."""
        self._unwritten = {**uses, **self._unwritten}


T = TypeVar("T")


class TokenCache(Generic[T]):
    """Tokens by the SHA-256 of their secrets; beyond the limit the first loaded is dropped.

    A token may end while it is being loaded. So `drop` and `clear` count: a load remembers `drops`
    when it begins, and `add` ignores a token whose load began before the last drop.
    """

    def __init__(self, tokens_max: int) -> None:
        self.tokens_max = tokens_max
        self.drops = 0
        self._tokens: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, digest: str) -> T | None:
        """Return the token whose secret has this SHA-256; None if it is not cached."""
        return self._tokens.get(digest)

    def add(self, digest: str, token: T, drops: int) -> None:
        """Cache a token, unless a token was dropped since `drops` was read."""
        if drops != self.drops:
            return
        if len(self._tokens) >= self.tokens_max:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[digest] = token

    def drop(self, digests: Iterable[str]) -> None:
        """Drop the tokens of these hashes, which were revoked or rotated."""
        self.drops += 1
        for digest in digests:
            self._tokens.pop(digest, None)

    def clear(self) -> None:
        """Drop all tokens."""
        self.drops += 1
        self._tokens.clear()


ID_BYTES = 6
ENDED_MAX = 1_000
"""The most ends of tokens that one look reads; with more it drops all cached tokens."""

REFUSALS_NOTED_MAX = 4_096
"""Tokens whose refusals are remembered, so that they are logged at most once a minute."""

NOTED_EVERY = 60 * SECOND
"""The minimum time between two log lines about the same revoked or expired token."""

log = logging.getLogger("moorage.auth")


class AccessTokens:
    """The tokens of one service. A revoked token is refused as soon as its revocation is answered.

    On a shared database another process may have revoked or rotated tokens. So each request first
    reads the number of the last one; concurrent requests share one query.
    """

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        clock: Clock,
        cache_max: int = TOKEN_CACHE_MAX,
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self.sessions = Sessions(engine, transactor, clock)
        """The sessions of readers who have presented a token."""
        self.links = SignInLinks(engine, transactor, clock, self.sessions)
        """The one-time links that begin such a session."""
        self._cache: TokenCache[Token] = TokenCache(cache_max)
        self._epoch, self._ends = 0, 0
        self._looks = SingleFlight(self._look)
        self._uses = TokenUses(cache_max)
        self._noted: dict[str, Instant] = {}

    async def create(
        self,
        name: str,
        role: str,
        project_id: str | None = None,
        *,
        by: Actor,
        scope: dict[str, list[str]] | None = None,
        lasts: int | None = None,
    ) -> tuple[str, Token]:
        """Create a token. Returns its secret, which cannot be retrieved again, and the token.

        Args:
            name: name of the holder.
            role: name of the role.
            project_id: the project that it is bound to; required for the role user.
            by: who creates it.
            scope: for a scoped role: names by the kind of object, see `roles.Scope`.
            lasts: microseconds until it expires; None: never.

        Raises `Error`: INVALID for an unknown role, an invalid name or project, one that could be
        confused with another owner of leases, and a missing or superfluous project or scope.
        """
        known = role_parse(role)
        now = self._clock.now()
        _check_owner(name, project_id)
        _check_project(known, project_id)
        token = Token(
            id=secrets.token_hex(ID_BYTES),
            name=_text("name", name),
            role=known,
            project_id=None if project_id is None else _text("project", project_id),
            created_at=now,
            scope=scope_parse(known, scope or {}),
            expires_at=None if lasts is None else _after(now, "expires_in", lasts, least=1),
        )
        secret = secret_new()
        row = audit_row(now, by, "token.create", token.id, after=description(token))

        def plan() -> Plan[None]:
            yield from access_store.token_insert(stored(token, secret))
            yield from audit_store.audit_insert(row)

        await self._transactor.submit(RunPlan(plan))
        audit_log.write([row])
        return secret, token

    async def rotate(
        self, token_id: str, *, grace: int, by: Actor, lasts: int | None = None
    ) -> tuple[str, Token]:
        """Replace a token by a new one. Returns the new secret, and the new token.

        Args:
            token_id: of the old token. It stays valid for `grace`, unless it expires before.
            grace: microseconds.
            by: who rotates it.
            lasts: microseconds until the new one expires; None: the old one's original lifetime;
                never, if that had no expiry.

        Raises `Error`: TOKEN_NOT_FOUND if there is no such token, or it is not valid, or has been
        rotated already; INVALID.
        """
        now = self._clock.now()
        until = _after(now, "grace", grace)
        fresh = None if lasts is None else _after(now, "expires_in", lasts, least=1)
        secret, new_id = secret_new(), secrets.token_hex(ID_BYTES)

        def plan() -> Plan[tuple[Token, audit_store.AuditRow, str] | None]:
            old = yield from access_store.token_by_id(token_id)
            if old is None or (old.expires_at is not None and old.expires_at <= now):
                return None
            ends = until if old.expires_at is None else Instant(min(until, old.expires_at))
            if (yield from access_store.token_rotate(token_id, now, ends)) is None:
                return None
            new = successor(token_of(old), new_id, now, fresh)
            after = {**description(new), "id": new_id, "grace": (ends - now) / SECOND}
            row = audit_row(now, by, "token.rotate", token_id, description(token_of(old)), after)
            yield from access_store.token_insert(stored(new, secret))
            yield from audit_store.audit_insert(row)
            return new, row, old.sha256

        made = await self._transactor.submit(RunPlan(plan))
        if made is None:
            raise Error(
                Code.TOKEN_NOT_FOUND,
                f"There is no valid token '{token_id}', or it was replaced already.",
            )
        token, row, digest = made
        self._cache.drop([digest])
        audit_log.write([row])
        return secret, token

    async def page(self, cursor: str | None, limit: int) -> tuple[list[Token], str | None]:
        """Return tokens, oldest first, including invalid ones, and the next page's cursor.

        Raises `Error`: INVALID for a wrong cursor or limit, UNAVAILABLE.
        """
        rows_max = rows_to_read(limit)
        place = place_parse(cursor, START)
        with errors.translated():
            stored = await self._engine.read(
                access_store.tokens_window(place.at, place.id, rows_max)
            )
        page, following = page_of(stored, limit, lambda one: PageMarker(one.created_at, one.id))
        return [self._with_use(token_of(one)) for one in page], following

    async def list(self) -> list[Token]:
        """Return all tokens, oldest first, including invalid ones. Raises `Error`."""
        tokens, cursor = await self.page(None, PAGE_MAX)
        while cursor is not None:
            more, cursor = await self.page(cursor, PAGE_MAX)
            tokens += more
        return tokens

    async def revoke(self, token_id: str, *, by: Actor) -> access_store.AccessToken:
        """Revoke a token; return it as it is now.

        Raises `Error`: TOKEN_NOT_FOUND, also if it was revoked already.
        """
        now = self._clock.now()

        def plan() -> Plan[tuple[audit_store.AuditRow, access_store.AccessToken] | None]:
            stored = yield from access_store.token_revoke(token_id, now)
            if stored is None:
                return None
            row = audit_row(now, by, "token.revoke", token_id, description(token_of(stored)))
            yield from audit_store.audit_insert(row)
            return row, stored

        made = await self._transactor.submit(RunPlan(plan))
        if made is None:
            raise Error(Code.TOKEN_NOT_FOUND, f"There is no valid token '{token_id}'.")
        row, token = made
        self._cache.drop([token.sha256])
        audit_log.write([row])
        return token

    async def find(self, secret: str) -> Token | None:
        """Return the token with this secret; None if there is none or it is no longer valid.

        Raises `Error`: UNAVAILABLE.
        """
        if self._engine.shared:
            with errors.translated():
                await self._looks.taken()
        digest = digest_of(secret)
        token = self._cache.get(digest) or await self._load(digest)
        return None if token is None else self._unexpired(token)

    def find_prompt(self, digest: str) -> Token | None:
        """Do what `find` does if memory is enough for it; None: ask `find`.

        It is not enough if other processes may have revoked the token, or if it is not cached.

        Args:
            digest: the SHA-256 of the secret, see `digest_of`.
        """
        token = None if self._engine.shared else self._cache.get(digest)
        return None if token is None else self._unexpired(token)

    def _unexpired(self, token: Token) -> Token | None:
        """Return a token and note its use; None: it has expired."""
        now = self._clock.now()
        if token.expires_at is not None and now >= token.expires_at:
            self._tell(token, "it has expired", now)
            return None
        self._uses.note(token.id, token.used_at, now)
        return token

    async def note_uses(self) -> None:
        """Write the times at which tokens were last used: a chore. Raises `Error`."""
        uses = self._uses.take()
        if not uses:
            return
        try:
            await self._transactor.submit(RunPlan(lambda: access_store.tokens_used(uses)))
        except Error:
            self._uses.put_back(uses)
            raise

    def _with_use(self, token: Token) -> Token:
        """Return the token with its last use here, which may not have been written yet."""
        uses = filter(None, (token.used_at, self._uses.last(token.id)))
        return structs.replace(token, used_at=max(uses, default=None))

    async def _load(self, digest: str) -> Token | None:
        drops = self._cache.drops
        with errors.translated():
            stored = await self._engine.read(access_store.token_by_sha256(digest))
        if stored is None:
            return None
        token = token_of(stored)
        if token.revoked_at is not None:
            self._tell(token, "it was revoked", self._clock.now())
            return None
        self._cache.add(digest, token, drops)
        return token

    def _tell(self, token: Token, why: str, now: Instant) -> None:
        """Log the refusal of a formerly valid token, which may indicate misuse."""
        if now - self._noted.get(token.id, 0) < NOTED_EVERY:
            return
        if len(self._noted) >= REFUSALS_NOTED_MAX:
            self._noted.clear()
        self._noted[token.id] = now
        log.warning("refused the token %s (%s): %s", token.id, token.name, why)

    async def _look(self) -> None:
        epoch, ends = await self._engine.read(access_store.ends_load())
        if (epoch, ends) == (self._epoch, self._ends):
            return
        ended: list[str] | None = None
        if epoch == self._epoch and ends > self._ends:
            plan = access_store.ended_since(self._ends, ENDED_MAX)
            ended = await self._engine.read(plan)
        if ended is None or len(ended) == ENDED_MAX:
            self._cache.clear()
        else:
            self._cache.drop(ended)
        self._epoch, self._ends = epoch, ends


def _check_owner(name: str, project_id: str | None) -> None:
    """Refuse names by which the holder would own other owners' leases. Raises INVALID."""
    if "/" in name or is_reserved(name) or (project_id is not None and is_reserved(project_id)):
        raise Error(
            Code.INVALID,
            "A token's name must not contain '/', because an owner of leases is PROJECT/NAME."
            f" Its name and its project must not begin with '{BOSKOS}' or '{GOVERNOR}', or be"
            f" '{LEASE_PROXY}', because these names own the leases of Boskos, of governors and of"
            " the lease proxy.",
        )


def _check_project(role: Role | ScopedRole, project_id: str | None) -> None:
    if role is Role.USER and project_id is None:
        raise Error(Code.INVALID, "A token of role 'user' needs a project.")
    if role not in (Role.USER, Role.READER) and project_id is not None:
        raise Error(
            Code.INVALID,
            f"A token of role '{role}' must not have a project: omit the project, or choose the"
            " role 'user' or 'reader'.",
        )


def _after(now: Instant, what: str, microseconds: int, least: int = 0) -> Instant:
    if microseconds < least:
        raise Error(Code.INVALID, f"{what} must be above 0.")
    return Instant(now + microseconds)


def _text(what: str, text: str) -> str:
    check_plain(f"A token's {what}", text)
    if not 1 <= len(text) <= IDENTIFIER_LENGTH_MAX or not text.isprintable():
        raise Error(
            Code.INVALID,
            f"A token's {what} must have 1 to {IDENTIFIER_LENGTH_MAX} printable characters.",
        )
    return text


async def create_token(tokens: AccessTokens, wanted: TokenWanted, by: Actor) -> TokenMade:
    """Create a token. Raises `Error`."""
    secret, token = await tokens.create(
        wanted.name,
        wanted.role,
        wanted.project_id,
        scope=wanted.scope,
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**members_shown(token), token=secret)


async def rotate_token(
    tokens: AccessTokens, token_id: str, wanted: RotationWanted, by: Actor
) -> TokenMade:
    """Replace a token by a new one. Raises `Error`."""
    secret, token = await tokens.rotate(
        token_id,
        grace=microseconds("grace", wanted.grace),
        lasts=microseconds_or_none("expires_in", wanted.expires_in),
        by=by,
    )
    return TokenMade(**members_shown(token), token=secret)
