"""Audit rows, read page by page."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from moorage.core.clock import Instant
from moorage.store.access import audit
from moorage.store.access.audit import AuditRow
from moorage.store.api import Engine
from moorage.store.open import open_engine
from moorage.store.sql import blocks
from tests.store.access.test_tokens import write

END = Instant(1 << 62)


def test_audit_rows_in_windows(engine: Engine) -> None:
    """Audit rows come back as they were, newest first."""
    rows = [
        AuditRow(
            Instant(n // 2), f"a{n}", "who", None, "admin", "token.create", f"t{n % 2}", None, "{}"
        )
        for n in range(5)
    ]

    async def scenario() -> None:
        for row in rows:
            await write(engine, audit.audit_insert(row))
        assert await engine.read(audit.audit_window(END, "", 9)) == rows[::-1]
        assert await engine.read(audit.audit_window(rows[3].at, rows[3].id, 2)) == rows[2:0:-1]
        assert await engine.read(audit.audit_window(END, "", 9, "t0")) == rows[::-2]
        window = audit.audit_window(rows[3].at, rows[3].id, 1, "t1")
        assert await engine.read(window) == [rows[1]]

    asyncio.run(scenario())


def test_a_target_may_be_a_long_path(engine: Engine) -> None:
    """It is too long for an index of PostgreSQL, and differs from another only at its end."""
    paths = ["".join(f"/{uuid4().hex}" for _ in range(300)) for _ in range(2)]
    paths.append(paths[0] + "x")
    rows = [
        AuditRow(Instant(n), f"a{n}", "who", None, "admin", "database.backup", path, None, None)
        for n, path in enumerate(paths)
    ]

    async def scenario() -> None:
        for row in rows:
            await write(engine, audit.audit_insert(row))
        for row in rows:
            assert await engine.read(audit.audit_window(END, "", 9, row.target)) == [row]

    asyncio.run(scenario())


def test_the_audit_log_of_a_target_is_read_by_target(tmp_path: Path) -> None:
    """On SQLite; the plans of PostgreSQL have tests of their own."""
    file = tmp_path / "ledger.sqlite"
    asyncio.run(open_engine(f"sqlite:///{file}").close())
    asked = blocks("sqlite")["audit_window_of_target"]
    with closing(sqlite3.connect(file)) as session:
        (step,) = session.execute(f"EXPLAIN QUERY PLAN {asked}", (1, "a", 3, "t"))
    assert "USING INDEX audit_target (target=?" in step[3]
