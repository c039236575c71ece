"""Sessions of the dashboard: only the SHA-256 of a session's secret is stored."""

from typing import NamedTuple

from moorage.core.clock import Instant
from moorage.store.access.tokens import AccessToken, token_from_row
from moorage.store.api import Plan, Query, Write


class StoredSession(NamedTuple):
    """One session, with the token that it is bound to, valid or not."""

    created_at: Instant
    used_at: Instant
    token: AccessToken


def session_insert(sha256: str, token_id: str, now: Instant, kept: int) -> Plan[None]:
    """Add a session; of its token's sessions only the `kept` newest remain."""
    yield [Write("session_insert", [(sha256, token_id, now, now)])]
    yield [Query("session_surplus_delete", (token_id, kept))]


def session_by_sha256(sha256: str) -> Plan[StoredSession | None]:
    """Find a session by the hash of its secret."""
    (rows,) = yield [Query("session_by_sha256", (sha256,))]
    if not rows:
        return None
    created_at, used_at, *token = rows[0]
    return StoredSession(created_at, used_at, token_from_row(tuple(token)))


def session_delete(sha256: str) -> Plan[str | None]:
    """Delete a session; return its token's id, or None if there is no such session."""
    (rows,) = yield [Query("session_delete", (sha256,))]
    return rows[0][0] if rows else None


def session_used(sha256: str, now: Instant) -> Plan[None]:
    """Record that a session was used."""
    yield [Query("session_used", (now, sha256))]


def sessions_forget(created: Instant, used: Instant, rows_max: int) -> Plan[int]:
    """Delete sessions that were created or last used at the latest at these times.

    Deletes at most `rows_max`: while the result is `rows_max`, call it again in another
    transaction.
    """
    (rows,) = yield [Query("sessions_over_delete", (created, used, rows_max))]
    return len(rows)
