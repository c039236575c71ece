"""Access tokens: stored by their SHA-256, never as they are."""

from msgspec import Struct, json

from moorage.core.clock import Instant
from moorage.store.api import Plan, Query, Row, Write
from moorage.store.rows import key_set


class AccessToken(Struct, frozen=True):
    """One token: who its bearer is. `sha256` is hexadecimal; `revoked_at` None: it is valid."""

    id: str
    sha256: str
    name: str
    user_id: str
    project_id: str
    roles: frozenset[str]
    created_at: Instant
    revoked_at: Instant | None = None


def token_insert(token: AccessToken) -> Plan[None]:
    """Add a token. Raises Conflict if its id or its hash is known already."""
    row = (
        token.id,
        token.sha256,
        token.name,
        token.user_id,
        token.project_id,
        key_set(token.roles),
        token.created_at,
        token.revoked_at,
    )
    yield [Write("token_insert", [row])]


def token_by_sha256(sha256: str) -> Plan[AccessToken | None]:
    """Find a token, revoked or not."""
    (rows,) = yield [Query("token_by_sha256", (sha256,))]
    return _token(rows[0]) if rows else None


def tokens_window(created_at: Instant, token_id: str, rows_max: int) -> Plan[list[AccessToken]]:
    """Return tokens after (created_at, id), oldest first, the revoked ones too."""
    (rows,) = yield [Query("tokens_window", (created_at, token_id, rows_max))]
    return [_token(row) for row in rows]


def revocations_count() -> Plan[int]:
    """Return how many tokens were revoked until now; none ever becomes valid again."""
    (rows,) = yield [Query("revocations_count")]
    return int(rows[0][0])


def token_revoke(token_id: str, now: Instant) -> Plan[AccessToken | None]:
    """End a token and return it. None: there is no such token, or it was revoked before."""
    (rows,) = yield [Query("token_revoke", (now, token_id))]
    return _token(rows[0]) if rows else None


def _token(row: Row) -> AccessToken:
    roles = frozenset(json.decode(row[5], type=list[str]))
    return AccessToken(
        id=row[0],
        sha256=row[1],
        name=row[2],
        user_id=row[3],
        project_id=row[4],
        roles=roles,
        created_at=row[6],
        revoked_at=row[7],
    )
