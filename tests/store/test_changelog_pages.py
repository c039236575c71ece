"""Pages of the change log: in order, each row once."""

import asyncio

from moorage.store import changelog
from moorage.store.api import Engine
from moorage.store.changelog import ChangeRow, changes_window
from moorage.store.ledger.changes import change_rows
from tests.store.build import claimed, provider_new, run, together


async def filled(engine: Engine) -> list[ChangeRow]:
    """Make some batches; return their change rows as the followers of other processes see them."""
    await run(engine, together(*(provider_new(n, VCPU=8) for n in range(5))))
    for n in range(4):
        await run(
            engine, together(claimed(2 * n, {n: {"VCPU": 1}}), claimed(2 * n + 1, {n: {"VCPU": 2}}))
        )
    tail = await engine.read(changelog.changes_load(0))
    return [
        ChangeRow(revision, n, *row, at)
        for revision, changes, at, *_ in tail.batches
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
                window = await engine.read(changes_window(*place, size))
                if not window.rows:
                    break
                assert len(window.rows) <= size
                found += window.rows
                place = window.rows[-1][:2]
            assert found == expected
            assert (window.epoch, window.revision, window.compacted) == (1, 5, 0)
        for n, row in enumerate(expected):
            after = await engine.read(changes_window(row.revision, row.n, 1_000))
            assert after.rows == expected[n + 1 :]

    asyncio.run(scenario())
