"""Checks, backups, restarts and reads of a running service, and its housekeeping."""

import asyncio
from pathlib import Path

import apsw
import pytest

from moorage.core.clock import DAY
from moorage.core.errors import Code, Error
from moorage.core.ledger.allocations import KEEP, ConsumerRequest
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.service.chores import (
    CHANGES_KEPT_SECONDS,
    FORGET_MAX,
    RESHAPES_FORGET_MAX,
    Chores,
    Retention,
)
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from moorage.service.ledger.reshapes import Wish
from moorage.store import changelog
from tests.service.pools import opened
from tests.service.running import TESTER, Running, claim, consumer_id, provider_id, running
from tests.support import cluster


async def fill_ledger(one: Running) -> None:
    """Put objects of every kind into the ledger."""
    first, second = await one.provider(1, VCPU=8, DISK_GB=9), await one.provider(2, VCPU=8)
    await one.submit(vocabulary_cases.ClassCreate("CUSTOM_A"))
    await one.submit(vocabulary_cases.TraitEnsure("CUSTOM_T"))
    await one.submit(provider_cases.TraitsReplace(first, 1, frozenset({"CUSTOM_T"})))
    await one.submit(provider_cases.ProviderCreate(provider_id(3), "name-3", second))
    await one.outcomes(claim(1, first, VCPU=2, DISK_GB=3), claim(2, first, second, VCPU=1))


def test_postgresql_must_be_backed_up_with_its_own_tools() -> None:
    """The refusal of a backup names these tools, not a missing setting."""
    url = cluster.fresh()

    async def scenario() -> None:
        async with opened(url) as service:
            with pytest.raises(Error, match="pg_dump") as refusal:
                await service.operations.backup_named("copy", by=TESTER)
            assert refusal.value.code is Code.INVALID

    asyncio.run(scenario())
    cluster.shared().drop(cluster.database_of(url))


def test_a_wrong_index_is_found(tmp_path: Path) -> None:
    """The check reports an index that differs from the rows; loading it again repairs it."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            wrong = Changes(inventories={(provider_id(1), "VCPU"): Inventory(8, used=7)})
            one.service.index.catalog.apply(wrong)
            found = await one.service.operations.check()
            assert found != []
            assert all(provider_id(1) in line for line in found)
            feed = one.service.feed
            feed.position = feed.position._replace(revision=feed.position.revision - 1)
            assert len(await one.service.operations.check()) == len(found) + 1
            await one.service.index.load()
            assert await one.service.operations.check() == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (
            "UPDATE provider SET inventories = json_set(inventories, '$.DISK_GB.used', 4) "
            "WHERE inventories LIKE '%DISK_GB%'",
            "sum up to 3",
        ),
        ("UPDATE consumer SET allocations = '{}'", "sum up to 0"),
        ("DELETE FROM consumer WHERE uuid LIKE '00000001%'", "has no allocation on it"),
        ("DELETE FROM holder", "is missing"),
        ("UPDATE provider SET root = uuid WHERE parent IS NOT NULL", "root"),
        ("DELETE FROM provider_tags", "traits"),
    ],
)
def test_wrong_rows_are_found(tmp_path: Path, damage: str, says: str) -> None:
    """The check reports every kind of damage that was done to the file directly."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            intruder = apsw.Connection(str(tmp_path / "ledger"))
            intruder.execute("BEGIN IMMEDIATE")
            intruder.execute(damage)
            intruder.execute("COMMIT")
            intruder.close()
            found = await one.service.operations.check()
            assert [line for line in found if says in line] != []
            await one.service.operations.wipe()

    asyncio.run(scenario())


TURNS = 120
"""Claims of each claimer: several checks last as long."""


def test_a_check_is_right_while_claims_go_on(tmp_path: Path) -> None:
    """Changes during the check are not reported as differences."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            uuids = [await one.provider(n, VCPU=1_000) for n in range(4)]

            async def claimer(n: int) -> None:
                for turn in range(TURNS):
                    await one.submit(claim(1_000 * n + turn, *uuids, VCPU=1))

            claimers = asyncio.gather(*map(claimer, range(8)))
            checks = 0
            while not claimers.done():
                assert await one.service.operations.check() == []
                checks += 1
            await claimers
            assert checks > 5
            assert one.used(uuids[0]) == 8 * TURNS

    asyncio.run(scenario())


def test_a_backup_is_a_ledger(tmp_path: Path) -> None:
    """A copy made by a running service can be opened and has all data acknowledged before it."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            await one.service.operations.backup(str(tmp_path / "copy"), by=TESTER)
            with pytest.raises(Error) as refusal:
                await one.service.operations.backup(str(tmp_path / "copy"), by=TESTER)
            assert refusal.value.code is Code.INVALID
            newest, _ = await one.service.audit.page(None, 3)
            actions = ["database.backup_failed", "database.backup", "database.backup"]
            # Rows of the same instant are not ordered.
            assert sorted(row.action for row in newest) == sorted(actions)
            failed = next(row for row in newest if row.action == "database.backup_failed")
            assert refusal.value.message in str(failed.after)
            await one.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
        async with running(tmp_path / "copy") as other:
            assert other.used(provider_id(1)) == 3
            assert await other.service.reads.consumer(consumer_id(1)) is not None

    asyncio.run(scenario())


def test_a_restart_knows_everything(tmp_path: Path) -> None:
    """After a restart the index is the same as before, at the same revision."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            before = one.service.index
        async with running(tmp_path / "ledger") as one:
            after = one.service.index
            assert (after.epoch, after.revision) == (before.epoch, before.revision)
            assert after.catalog.differences(before.catalog) == []

    asyncio.run(scenario())


def test_a_wipe_leaves_nothing(tmp_path: Path) -> None:
    """The ledger is empty, and the same objects can be created again."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            await one.service.operations.wipe()
            assert len(one.service.index.catalog) == 0
            assert await one.service.reads.consumer(consumer_id(1)) is None
            await fill_ledger(one)

    asyncio.run(scenario())


def test_reads_of_consumers(tmp_path: Path) -> None:
    """Allocations and usages can be read by consumer, provider, project and user."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            wish = {provider_id(1): {"VCPU": 1}}
            owner = ConsumerRequest(consumer_id(3), wish, "project", "other", KEEP, None)
            await one.submit(allocation_cases.AllocationsReplace([owner]))
            reads = one.service.reads
            held = await reads.consumer(consumer_id(2))
            assert held is not None
            assert held.allocations == {provider_id(n): {"VCPU": 1} for n in (1, 2)}
            assert await reads.consumer(consumer_id(9)) is None
            rows = await reads.provider_allocations(provider_id(1))
            assert [(row[0], row[1], row[2]) for row in rows] == [
                (consumer_id(1), 1, {"VCPU": 2, "DISK_GB": 3}),
                (consumer_id(2), 1, {"VCPU": 1}),
                (consumer_id(3), 1, {"VCPU": 1}),
            ]
            whole = await reads.usages("project")
            assert sorted(whole.amounts, key=str) == sorted(
                [("INSTANCE", "VCPU", 4), ("INSTANCE", "DISK_GB", 3), (None, "VCPU", 1)], key=str
            )
            assert whole.consumers == {"INSTANCE": 2, None: 1}
            one_user = await reads.usages("project", "other")
            assert (one_user.amounts, one_user.consumers) == ([(None, "VCPU", 1)], {None: 1})
            assert (await reads.usages("nobody")).amounts == []

    asyncio.run(scenario())


def test_old_change_rows_are_deleted(tmp_path: Path) -> None:
    """Young rows and the newest ones are kept; a second run changes nothing."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await fill_ledger(one)
            service = one.service
            chores = Chores(
                one.engine,
                service.transactor,
                one.clock,
                service.admission,
                service.chores.stock,
                Retention(changes_min=3),
            )
            assert await chores.compact() == 0, "no row was old"
            one.clock.at += (CHANGES_KEPT_SECONDS + 1) * 1_000_000
            mark = await chores.compact()
            assert 0 < mark < service.index.revision
            assert await chores.compact() == mark
            tail = await one.engine.read(changelog.changes_load(mark))
            assert tail.compacted == mark
            assert [at for at, *_ in tail.batches] == list(
                range(mark + 1, service.index.revision + 1)
            )

    asyncio.run(scenario())


def test_old_audit_rows_are_deleted(tmp_path: Path) -> None:
    """All rows older than `audit_days` are deleted; without the setting none ever is."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            service = one.service
            stock = service.chores.stock
            parts = (one.engine, service.transactor, one.clock, service.admission, stock)
            chores = Chores(*parts, Retention(audit_days=2))
            for n in range(FORGET_MAX + 5):
                await service.audit.record(TESTER, "act", str(n))
            one.clock.at += 2 * DAY
            await service.audit.record(TESTER, "act", "young")
            assert await chores.forget_audit() == 0
            one.clock.at += 1
            await service.audit.record(TESTER, "act", "younger")
            assert await Chores(*parts).forget_audit() == 0
            assert await chores.forget_audit() == FORGET_MAX + 5
            rows, _ = await service.audit.page(None, 10)
            assert [row.target for row in rows] == ["younger", "young"]
            assert await chores.forget_receipts() == 0, "SQLite has none"

    asyncio.run(scenario())


def test_old_reshapes_are_deleted_with_the_audit_rows(tmp_path: Path) -> None:
    """Those that are older than `audit_days` go, also the last one; a jump of the clock takes none.

    Without the setting none is ever deleted.
    """

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            service = one.service
            parts = (one.engine, service.transactor, one.clock, service.admission)
            chores = Chores(*parts, service.chores.stock, Retention(audit_days=2))
            await service.transactor.submit(provider_cases.ProviderCreate(provider_id(1), "host"))
            for n in range(RESHAPES_FORGET_MAX + 2):
                plan = ReshapePlan(rename={provider_id(1): f"host-{n}"})
                await service.reshapes.carry_out(plan, Wish(str(n), str(n), None, ""), TESTER)
            one.clock.jump = 3 * DAY
            assert await chores.forget_reshapes() == 0
            one.clock.jump = 0
            one.clock.at += 2 * DAY + 1_000
            assert await chores.forget_reshapes() == 0, "no audit row is younger"
            await service.audit.record(TESTER, "act", "young")
            assert await Chores(*parts, service.chores.stock).forget_reshapes() == 0
            assert await chores.forget_reshapes() == RESHAPES_FORGET_MAX + 2
            assert await service.reshapes.page(None, 10) == ([], None)

    asyncio.run(scenario())


def test_a_clock_that_jumps_erases_no_audit_rows(tmp_path: Path) -> None:
    """Rows survive a jump while the service runs and a start of the service after the jump.

    As a control, they are deleted when the time has really passed.
    """

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            service = one.service
            stock = service.chores.stock
            parts = (one.engine, service.transactor, one.clock, service.admission, stock)
            chores = Chores(*parts, Retention(audit_days=400))
            await service.audit.record(TESTER, "act", "old")
            one.clock.jump = 401 * DAY
            assert await Chores(*parts, Retention(audit_days=400)).forget_audit() == 0
            await service.audit.record(TESTER, "act", "after the jump")
            assert await chores.forget_audit() == 0
            one.clock.jump = 0
            one.clock.at += 401 * DAY
            assert await chores.forget_audit() == 1

    asyncio.run(scenario())
