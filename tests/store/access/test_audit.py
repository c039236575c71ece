"""Audit rows, read page by page."""

import asyncio
from uuid import uuid4

from moorage.core.clock import Instant
from moorage.store.access import audit
from moorage.store.access.audit import AuditRow
from moorage.store.api import Engine
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
    """It is longer than what PostgreSQL takes into an index, and is told from its neighbours."""
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
