"""Access tokens: only their SHA-256 is stored, never the token itself."""

from collections.abc import Mapping

from msgspec import Struct, json

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Row, Write
from moorage.store.encoding import encode, key_set


class AccessToken(Struct, frozen=True):
    """One token and the identity of its bearer. `sha256` is hexadecimal.

    `revoked_at` is None unless it was revoked, `rotated_at` is None unless another token replaced
    it. It is invalid from `expires_at` on. `used_at` is about when it was last used.
    """

    id: str
    sha256: str
    name: str
    user_id: str
    project_id: str
    roles: frozenset[str]
    created_at: Instant
    revoked_at: Instant | None = None
    scope: dict[str, list[str]] | None = None
    expires_at: Instant | None = None
    rotated_at: Instant | None = None
    used_at: Instant | None = None


def token_insert(token: AccessToken) -> Plan[None]:
    """Add a token. Raises Conflict if its id or its hash already exists."""
    row = (
        token.id,
        token.sha256,
        token.name,
        token.user_id,
        token.project_id,
        key_set(token.roles),
        token.created_at,
        token.revoked_at,
        None if token.scope is None else encode(token.scope),
        token.expires_at,
        token.rotated_at,
        token.used_at,
    )
    yield [Write("token_insert", [row])]


def token_by_sha256(sha256: str) -> Plan[AccessToken | None]:
    """Find a token by its hash, valid or not."""
    (rows,) = yield [Query("token_by_sha256", (sha256,))]
    return token_from_row(rows[0]) if rows else None


def token_by_id(token_id: str) -> Plan[AccessToken | None]:
    """Find a token by its id, valid or not."""
    (rows,) = yield [Query("token_by_id", (token_id,))]
    return token_from_row(rows[0]) if rows else None


def tokens_window(created_at: Instant, token_id: str, rows_max: int) -> Plan[list[AccessToken]]:
    """Return tokens after (created_at, id), oldest first, including invalid ones."""
    (rows,) = yield [Query("tokens_window", (created_at, token_id, rows_max))]
    return [token_from_row(row) for row in rows]


def tokens_over(since: Instant, now: Instant, rows_max: int) -> Plan[list[AccessToken]]:
    """Return tokens that were revoked or have expired since some time."""
    (rows,) = yield [Query("tokens_over", (since, now, rows_max))]
    return [token_from_row(row) for row in rows]


def tokens_valid(name: str, project_id: str, now: Instant) -> Plan[list[AccessToken]]:
    """Return the valid tokens with this name and this project, "" for none."""
    (rows,) = yield [Query("tokens_valid", (name, project_id, now))]
    return [token_from_row(row) for row in rows]


def ends_load() -> Plan[tuple[int, int]]:
    """Return the epoch, and the number of the last token that was revoked or rotated.

    Within an epoch this number never falls, and no end with a smaller number appears later.
    """
    (((epoch, ends),),) = yield [Query("token_ends_load")]
    return epoch, ends


def ended_since(ends: int, rows_max: int) -> Plan[list[str]]:
    """Return the hashes of tokens that were revoked or rotated after the end of this number.

    Args:
        ends: the number of an end, see `ends_load`.
        rows_max: the most hashes returned; the earliest ends first.
    """
    (rows,) = yield [Query("tokens_ended", (ends, rows_max))]
    return [row[0] for row in rows]


def token_revoke(token_id: str, now: Instant) -> Plan[AccessToken | None]:
    """Revoke a token and return it; None if it does not exist or was already revoked."""
    yield [Query("token_ends_raise")]
    (rows,) = yield [Query("token_revoke", (now, token_id))]
    return token_from_row(rows[0]) if rows else None


def token_rotate(token_id: str, now: Instant, until: Instant) -> Plan[AccessToken | None]:
    """Mark a token as replaced and make it expire at `until`; return it.

    Returns None if it does not exist, or was already revoked or rotated.
    """
    yield [Query("token_ends_raise")]
    (rows,) = yield [Query("token_rotate", (now, until, token_id))]
    return token_from_row(rows[0]) if rows else None


def tokens_used(uses: Mapping[str, Instant]) -> Plan[None]:
    """Record when tokens were last used, by id."""
    yield [Write("token_used", [(at, token_id) for token_id, at in sorted(uses.items())])]


def token_from_row(row: Row) -> AccessToken:
    """Return the token of a row with all columns."""
    return AccessToken(
        id=row[0],
        sha256=row[1],
        name=row[2],
        user_id=row[3],
        project_id=row[4],
        roles=frozenset(json.decode(row[5], type=list[str])),
        created_at=row[6],
        revoked_at=row[7],
        scope=None if row[8] is None else json.decode(row[8], type=dict[str, list[str]]),
        expires_at=row[9],
        rotated_at=row[10],
        used_at=row[11],
    )
