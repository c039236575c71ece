"""Windows over change rows, providers, tokens, audit rows: in order, none twice, none left out."""

import asyncio

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.store import changelog, pages
from moorage.store.access import audit
from moorage.store.access import tokens as access
from moorage.store.access.audit import AuditRow
from moorage.store.access.tokens import AccessToken
from moorage.store.api import Engine
from moorage.store.ledger.changes import change_rows
from moorage.store.pages import ChangeRow
from tests.store.access.test_tokens import write
from tests.store.build import held, provider_id, provider_new, run, together

END = Instant(1 << 62)


async def filled(engine: Engine) -> list[ChangeRow]:
    """Make some batches; return their change rows as the followers of other processes see them."""
    await run(engine, together(*(provider_new(n, VCPU=8) for n in range(5))))
    for n in range(4):
        await run(
            engine, together(held(2 * n, {n: {"VCPU": 1}}), held(2 * n + 1, {n: {"VCPU": 2}}))
        )
    tail = await engine.read(changelog.changes_load(0))
    return [
        ChangeRow(revision, n, *row)
        for revision, changes, _ in tail.batches
        for n, row in enumerate(change_rows(changes))
    ]


def test_change_rows_in_windows_of_any_size(engine: Engine) -> None:
    """Window after window gives every change row once, in order, from every place."""

    async def scenario() -> None:
        expected = await filled(engine)
        assert len(expected) > 20
        for size in (1, 2, 3, 7, 100):
            found: list[ChangeRow] = []
            place = (0, 0)
            while True:
                window = await engine.read(pages.changes_window(*place, size))
                if not window.rows:
                    break
                assert len(window.rows) <= size
                found += window.rows
                place = window.rows[-1][:2]
            assert found == expected
            assert (window.epoch, window.revision, window.compacted) == (1, 5, 0)
        for n, row in enumerate(expected):
            after = await engine.read(pages.changes_window(row.revision, row.n, 1_000))
            assert after.rows == expected[n + 1 :]

    asyncio.run(scenario())


def test_providers_in_windows(engine: Engine) -> None:
    """Providers come in the order of their UUIDs."""

    async def scenario() -> None:
        await run(engine, together(*(provider_new(n) for n in (3, 1, 2))))
        first = await engine.read(pages.providers_window(ProviderId(""), 2))
        assert first == [provider_id(1), provider_id(2)]
        assert await engine.read(pages.providers_window(first[-1], 2)) == [provider_id(3)]

    asyncio.run(scenario())


def test_tokens_in_windows(engine: Engine) -> None:
    """Tokens of the same instant are told apart by their ids."""
    tokens = [
        AccessToken(f"t{n}", str(n) * 64, "name", "u", "p", frozenset(), Instant(n // 2))
        for n in range(5)
    ]

    async def scenario() -> None:
        for token in reversed(tokens):
            await write(engine, access.token_insert(token))
        found: list[AccessToken] = []
        while more := await engine.read(
            access.tokens_window(found[-1].created_at, found[-1].id, 1)
            if found
            else access.tokens_window(Instant(-1), "", 1)
        ):
            found += more
        assert found == tokens

    asyncio.run(scenario())


def test_audit_rows_in_windows(engine: Engine) -> None:
    """Audit rows come back as they were, newest first."""
    rows = [
        AuditRow(
            Instant(n // 2), f"a{n}", "who", None, "admin", "token.create", "t", None, '{"a":1}'
        )
        for n in range(5)
    ]

    async def scenario() -> None:
        for row in rows:
            await write(engine, audit.audit_insert(row))
        assert await engine.read(audit.audit_window(END, "", 9)) == rows[::-1]
        assert await engine.read(audit.audit_window(rows[3].at, rows[3].id, 2)) == rows[2:0:-1]

    asyncio.run(scenario())
