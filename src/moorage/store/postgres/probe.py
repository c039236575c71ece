"""Tests at startup, with two sessions, the server features on which correctness depends.

Some databases speak PostgreSQL's protocol and accept advisory locks without locking anything. Some
poolers run each transaction in another session of the server, which loses settings such as
`synchronous_commit`, and some send read-only statements to a standby, which lags behind.
"""

import secrets
from typing import Any

import psycopg
from psycopg import Connection

from moorage.store.api import Unusable
from moorage.store.postgres.connection import EXCHANGED, conninfo_of, name_of
from moorage.store.postgres.migrate import startup_error

TURNS = (0, 0, 1, 0, 1, 1, 0, 1)
"""The order in which the two sessions run statements; it exposes poolers that exchange sessions."""

_KEYS_BEGIN = 1_000_000
"""Advisory locks with lower keys are in use."""

_MARK = "SELECT set_config('moorage.session', %s, false)"
_WHO = "SELECT pg_backend_pid(), current_setting('moorage.session', true), pg_is_in_recovery()"
_LOCK = "SELECT pg_advisory_xact_lock(778, %s)"
_TRY = "SELECT pg_try_advisory_xact_lock(778, %s)"
_TRY_SHARED = "SELECT pg_try_advisory_xact_lock_shared(778, %s)"
_ROW_LOCK = "SELECT number FROM migration WHERE number = 1 FOR UPDATE"

Session = Connection[tuple[Any, ...]]


def check(url: str) -> None:
    """Run all tests. Raises Unusable, Unavailable."""
    name = name_of(url)
    try:
        with _session(url) as one, _session(url) as other:
            for tried in (_sessions, _advisory_locks, _row_locks):
                wrong = tried(one, other)
                if wrong is not None:
                    raise Unusable(f"cannot use {name}: {wrong}")
    except psycopg.Error as error:
        raise startup_error(name, error) from error


def _session(url: str) -> Session:
    return psycopg.connect(conninfo_of(url), autocommit=True, prepare_threshold=None)


def _sessions(*both: Session) -> str | None:
    """Check that each connection always uses the same session, its own, on the primary."""
    marks = [secrets.token_hex(8) for _ in both]
    for session, mark in zip(both, marks, strict=True):
        session.execute(_MARK, (mark,))
    pids: list[set[int]] = [set(), set()]
    for n in TURNS:
        ((pid, mark, standby),) = both[n].execute(_WHO).fetchall()
        if standby:
            return "a standby answers reads, and may lack what was just committed"
        pids[n].add(pid)
        if mark != marks[n] or len(pids[n]) > 1 or pids[0] & pids[1]:
            return EXCHANGED
    return None


def _advisory_locks(one: Session, other: Session) -> str | None:
    key = secrets.randbelow((1 << 31) - _KEYS_BEGIN) + _KEYS_BEGIN
    with one.transaction():
        one.execute(_LOCK, (key,))
        for statement in (_TRY, _TRY_SHARED):
            if _value(other, statement, key):
                return "its advisory locks exclude nobody, and correctness depends on them"
    if not _value(other, _TRY, key):
        return "its advisory locks outlive their transactions"
    return None


def _row_locks(one: Session, other: Session) -> str | None:
    with one.transaction():
        one.execute(_ROW_LOCK)
        if other.execute(_ROW_LOCK + " SKIP LOCKED").fetchall():
            return "its row locks exclude nobody, and correctness depends on them"
    return None


def _value(session: Session, statement: str, key: int) -> bool:
    ((value,),) = session.execute(statement, (key,)).fetchall()
    return bool(value)
