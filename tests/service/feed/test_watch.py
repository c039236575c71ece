"""Readers of the change rows: they resume anywhere, are woken in time, and notice gaps."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.service.chores import CHANGES_KEPT_SECONDS, Chores, Retention
from moorage.service.feed.bell import Bell
from moorage.service.feed.watch import ChangesGoneError, Cursor, Seen
from moorage.service.ledger import vocabulary_cases
from tests.service.running import Running, claim, provider_id, running

START = Cursor(1, 0)
LONG = 60.0


async def make_revisions(one: Running) -> None:
    """Create revisions with one change and with several."""
    first, second = await one.provider(1, VCPU=8), await one.provider(2, VCPU=8)
    await one.submit(vocabulary_cases.ClassCreate("CUSTOM_A"))
    await one.outcomes(claim(1, first, VCPU=1), claim(2, second, VCPU=2))
    await one.submit(claim(3, first, second, VCPU=1))


async def followed(one: Running, after: Cursor, rows_max: int) -> list[Seen]:
    """Return all changes after a cursor, read window by window."""
    found: list[Seen] = []
    while True:
        window = await one.service.watch.window(after, rows_max=rows_max)
        found += window.changes
        assert window.next > after or not window.changes
        after = window.next
        if not window.cut:
            return found


def test_a_reader_gets_every_change_from_every_cursor(tmp_path: Path) -> None:
    """Whatever the size of the windows, a reader that resumes at any cursor misses no change."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await make_revisions(one)
            everything = await followed(one, START, 500)
            assert len({(seen.row.revision, seen.row.n) for seen in everything}) == len(everything)
            assert everything[-1].cursor == Cursor(1, one.service.index.revision)
            for rows_max in (1, 2, 3):
                assert await followed(one, START, rows_max) == everything
            for n, seen in enumerate(everything):
                assert await followed(one, seen.cursor, 2) == everything[n + 1 :]
                assert Cursor.parse(str(seen.cursor)) == seen.cursor

    asyncio.run(scenario())


def test_kinds(tmp_path: Path) -> None:
    """A reader of some kinds gets only these, and its cursor passes the others."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await make_revisions(one)
            everything = await followed(one, START, 500)
            window = await one.service.watch.window(START, {"consumer"})
            assert window.changes == [seen for seen in everything if seen.row.kind == "consumer"]
            waited = await one.service.watch.awaited(START, {"consumer"}, seconds=LONG, rows_max=2)
            assert waited.changes == window.changes[: len(waited.changes)] != []
            empty = await one.service.watch.awaited(START, {"trait"}, seconds=0.01, rows_max=2)
            assert (empty.changes, str(empty.next)) == ([], f"1.{one.service.index.revision}")

    asyncio.run(scenario())


def test_a_waiting_reader_is_woken_by_a_commit(tmp_path: Path) -> None:
    """It gets the next change of its kinds, and no earlier one."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await one.provider(1, VCPU=8)
            watch = one.service.watch
            now = await watch.now()
            reader = asyncio.create_task(watch.awaited(now, {"trait"}, seconds=LONG))
            await one.provider(2, VCPU=8)
            assert not reader.done()
            await one.submit(vocabulary_cases.TraitEnsure("CUSTOM_T"))
            window = await reader
            assert [seen.row.key for seen in window.changes] == ["CUSTOM_T"]
            assert window.next == await watch.now()

    asyncio.run(scenario())


def test_no_reader_waits_for_a_service_that_ends(tmp_path: Path) -> None:
    """Waiting readers are answered when the service closes, and later ones do not wait."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            watch = one.service.watch
            readers = [asyncio.create_task(watch.awaited(START, seconds=LONG)) for _ in range(3)]
            await asyncio.wait(readers, timeout=0.01)
            watch.close()
            assert all(window.changes == [] for window in await asyncio.gather(*readers))
            assert (await watch.awaited(START, seconds=LONG)).changes == []

    asyncio.run(scenario())


def test_compacted_changes_are_gone(tmp_path: Path) -> None:
    """A reader before the mark gets the oldest cursor, from which no change is missing."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await make_revisions(one)
            everything = await followed(one, START, 500)
            one.clock.at += 2 * CHANGES_KEPT_SECONDS * 1_000_000
            chores = Chores(
                one.engine,
                one.service.transactor,
                one.clock,
                one.service.admission,
                one.service.chores.stock,
                Retention(changes_min=4),
            )
            mark = await chores.compact()
            assert 0 < mark < one.service.index.revision
            oldest = Cursor(1, mark)
            for after in (START, Cursor(1, mark, 0), Cursor(1, mark - 1)):
                with pytest.raises(ChangesGoneError) as gone:
                    await one.service.watch.window(after)
                assert (gone.value.code, gone.value.oldest) == (Code.CHANGES_GONE, oldest)
            kept = [seen for seen in everything if seen.row.revision > mark]
            assert await followed(one, oldest, 500) == kept != []

    asyncio.run(scenario())


@pytest.mark.parametrize("after", [Cursor(2, 0), Cursor(0, 0), Cursor(1, 1_000), Cursor(1, 7, 0)])
def test_cursors_of_another_history_are_refused(tmp_path: Path, after: Cursor) -> None:
    """A reader cannot resume from another epoch or a future revision."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await one.provider(1, VCPU=8)
            with pytest.raises(ChangesGoneError) as gone:
                await one.service.watch.awaited(after, seconds=LONG)
            assert gone.value.oldest == START
            await one.service.operations.wipe()
            with pytest.raises(ChangesGoneError):
                await one.service.watch.window(START)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text", ["", "1", "1.2.3.4", "1.x", "-1.0", "1.2.", "1." + "9" * 19, "\u0661.\u0662"]
)
def test_malformed_cursors_are_refused(text: str) -> None:
    """Only the format of the service's own cursors is accepted."""
    with pytest.raises(Error) as refusal:
        Cursor.parse(text)
    assert refusal.value.code is Code.INVALID


def test_a_bell_that_rings_before_a_wait_is_heard() -> None:
    """Listeners from before the ring do not wait; nor do listeners of a closed bell."""

    async def scenario() -> None:
        bell = Bell()
        heard, bell_of_others = bell.listen(), bell.listen()
        bell.ring()
        await asyncio.wait_for(heard.wait(), 1)
        await asyncio.wait_for(bell_of_others.wait(), 1)
        assert not bell.listen().is_set()
        bell.close()
        assert bell.closed
        await asyncio.wait_for(bell.listen().wait(), 1)

    asyncio.run(scenario())


def test_the_uuid_of_a_provider_is_its_key(tmp_path: Path) -> None:
    """The keys of change rows are those of the reference."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await one.provider(1, VCPU=8)
            keys = {seen.row.kind: seen.row.key for seen in await followed(one, START, 500)}
            uuid = provider_id(1)
            assert keys == {"provider": uuid, "inventory": f"{uuid}/VCPU"}

    asyncio.run(scenario())
