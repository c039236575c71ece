"""Nothing blocks the event loop: large work runs in a thread or in pieces.

The tests count objects and threads, never time.
"""

import asyncio
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from moorage.core.errors import Code, Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.facts import Changes
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.model import Described, Inventory
from moorage.core.ledger.search import Catalog
from moorage.core.ledger.search.catalog.large_changes import IMAGES_AT_ONCE, PART_PROVIDERS
from moorage.service.batch.ledger_room import LARGE
from moorage.service.feed.catalog_copies import Copy
from moorage.service.feed.change_rows import tails
from moorage.service.ledger import allocation_cases, provider_cases, vocabulary_cases
from moorage.store import changelog
from moorage.store.api import HEAVY, Plan, Query
from moorage.store.changelog import ROWS_MAX
from moorage.store.ledger import changes as ledger_changes
from tests.service.batch.test_shared import Pair, play
from tests.service.running import (
    Running,
    WatchedTransaction,
    consumer_id,
    provider_id,
    running,
)
from tests.support.pieces import bounded

T = TypeVar("T")

MANY = LARGE + 200


class Counted(Catalog):
    """A catalog that counts the providers of the changes applied to it."""

    def __init__(self) -> None:
        super().__init__(frozenset({"VCPU", "DISK_GB"}), frozenset())
        self.touched = 0
        self.filled_in: set[int] = set()
        """The threads in which it was filled."""

    def apply(self, changes: Changes) -> None:
        uuids = {*changes.providers, *changes.tags, *(uuid for uuid, _ in changes.inventories)}
        self.touched += len(uuids)
        super().apply(changes)

    def fill(self, providers: list[Described]) -> None:
        self.filled_in.add(threading.get_ident())
        super().fill(providers)


class BoundedDriver:
    """Drives work, and fails when a piece of it touches too many providers."""

    def __init__(self, count: Callable[[], int], most: int) -> None:
        self._count, self._most = count, most
        self.pieces = 0

    async def driven(self, work: Generator[None, None, T]) -> T:
        strict = bounded(work, self._count, self._most)
        while True:
            await asyncio.sleep(0)
            self.pieces += 1
            try:
                next(strict)
            except StopIteration as stop:
                answer: T = stop.value
                return answer


async def many_providers(one: Running) -> list[ProviderId]:
    """Create enough providers for a large batch, and a consumer with allocations on all of them."""
    uuids = [provider_id(n) for n in range(MANY)]
    for first in range(0, MANY, 50):
        made = [
            provider_cases.ProviderCreate(uuid, f"name-{uuid}")
            for uuid in uuids[first : first + 50]
        ]
        await asyncio.gather(*map(one.submit, made))
        offers = {"VCPU": InventorySpec(4)}
        given = [
            provider_cases.InventoriesReplace(uuid, 0, offers) for uuid in uuids[first : first + 50]
        ]
        await asyncio.gather(*map(one.submit, given))
    await one.submit(claim_on(uuids))
    return uuids


def claim_on(uuids: list[ProviderId]) -> allocation_cases.AllocationsReplace:
    """A claim of one VCPU of each provider for the first consumer."""
    wish = {uuid: {"VCPU": 1} for uuid in uuids}
    return allocation_cases.AllocationsReplace(
        [ConsumerRequest(consumer_id(1), wish, "project", "user")]
    )


def test_large_batches_are_made_in_a_thread_and_followed_in_pieces(tmp_path: Path) -> None:
    """The deletion of a consumer of many providers is decided in a thread and followed in parts."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            uuids = await many_providers(one)
            assert all(one.used(uuid) == 1 for uuid in uuids)
            threads = reading_threads(one)
            await one.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
            assert {name.split("_")[0] for name in threads} == {"moorage-commit", "MainThread"}
            assert all(one.used(uuid) == 0 for uuid in uuids)
            threads.clear()
            assert await one.outcomes(allocation_cases.AllocationsDelete(consumer_id(2))) == [
                Code.ALLOCATIONS_NOT_FOUND
            ]
            assert set(threads) == {"MainThread"}, "a small batch stays in the event loop"

    asyncio.run(scenario())


def reading_threads(one: Running) -> list[str]:
    """Record from now on in which threads the plans of transactions read their rows."""
    threads: list[str] = []

    class Noting(WatchedTransaction):
        def _counted(self, plan: Plan[T]) -> Plan[T]:
            inner = super()._counted(plan)
            try:
                asked: Any = next(inner)
                while True:
                    rows = yield asked
                    threads.append(threading.current_thread().name)
                    asked = inner.send(rows)
            except StopIteration as stop:
                answer: T = stop.value
                return answer

    one.engine.wrapper = Noting
    return threads


def test_readers_meanwhile_see_all_of_a_large_batch_or_nothing(tmp_path: Path) -> None:
    """The catalog is not available between two parts of a batch."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            uuids = await many_providers(one)
            index, seen = one.service.index, set()
            released = asyncio.ensure_future(
                one.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
            )
            torn = False
            while not released.done():
                torn = torn or not index._whole.is_set()
                if index._whole.is_set():
                    catalog = await index.current()
                    seen.add(sum(catalog.record(uuid).inventories["VCPU"].used for uuid in uuids))  # type: ignore[union-attr]  # they are there
                await asyncio.sleep(0)
            assert torn, "the batch was not applied in parts"
            assert seen <= {0, MANY}

    asyncio.run(scenario())


def test_copies_are_made_in_bounded_pieces(tmp_path: Path) -> None:
    """A copy is read in a separate thread, and follows a few providers at a time."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            uuids = await many_providers(one)
            catalog = Counted()
            copy, strict = Copy(catalog), BoundedDriver(lambda: catalog.touched, IMAGES_AT_ONCE)
            await copy.read(one.engine)
            assert len(catalog) == MANY
            assert catalog.filled_in and threading.get_ident() not in catalog.filled_in
            await one.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
            await copy.follow(one.engine, strict, lambda: one.service.index.revision)
            assert strict.pieces > MANY // PART_PROVIDERS
            assert catalog.differences(one.service.index.catalog) == []
            with pytest.raises(AssertionError):
                await BoundedDriver(lambda: catalog.touched, 9).driven(planted(catalog, uuids))

    asyncio.run(scenario())


def planted(catalog: Catalog, uuids: list[ProviderId]) -> Generator[None, None, None]:
    """A single piece that changes too many providers."""
    catalog.apply(Changes(inventories={(uuid, "VCPU"): Inventory(4) for uuid in uuids}))
    yield


def test_a_tail_is_read_in_bounded_windows_of_whole_batches(tmp_path: Path) -> None:
    """However large a batch is, few rows are decoded at a time, and batches stay whole."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await many_providers(one)
            await one.submit(allocation_cases.AllocationsDelete(consumer_id(1)))
            windows = []
            place: Any = (0, 0)
            while place is not None:
                load = changelog.changes_load(*place, kinds=ledger_changes.CATALOG_KINDS)
                tail = await one.engine.look(load)
                rows = sum(
                    len(each.ledger.providers) + len(each.ledger.inventories)
                    for each in tail.batches
                )
                assert rows <= ROWS_MAX
                assert not any(each.ledger.consumers for each in tail.batches)
                windows.append(tail)
                place = tail.place
            assert len(windows) > 2 * MANY // ROWS_MAX
            revisions, sizes = [], []
            async for tail in tails(one.engine, 0, ledger_changes.CATALOG_KINDS):
                revisions += [batch.revision for batch in tail.batches]
                sizes += [len(batch.ledger.inventories) for batch in tail.batches]
            assert revisions == list(range(1, one.service.index.revision + 1))
            assert sizes[-2:] == [MANY, MANY]

    asyncio.run(scenario())


def test_a_check_compares_while_batches_go_on(tmp_path: Path) -> None:
    """The copy for the comparison follows the index meanwhile; an earlier difference is found."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            uuids = [await one.provider(n, VCPU=1_000) for n in range(40)]
            wrong = Changes(inventories={(uuids[7], "VCPU"): Inventory(8, used=7)})
            one.service.index.catalog.apply(wrong)
            checking = asyncio.ensure_future(one.service.operations.check())
            n = 100
            while not checking.done():
                n += 1
                wish = {uuids[n % 7]: {"VCPU": 1}}
                request = ConsumerRequest(consumer_id(n), wish, "project", "user")
                await one.submit(allocation_cases.AllocationsReplace([request]))
            found = checking.result()
            assert found and all(uuids[7] in line for line in found)
            assert n > 101
            await one.service.index.load()

    asyncio.run(scenario())


def test_another_epoch_of_the_same_history_needs_no_reload() -> None:
    """If the last known revision has the same transaction, all earlier ones are the same, too."""

    async def scenario(pair: Pair) -> None:
        first = await pair.provider(VCPU=1)
        kept = [await service.index.current() for service in pair.services]
        with psycopg.connect(pair.url) as server:
            server.execute("UPDATE clock SET epoch = epoch + 1")
        second = await pair.provider(VCPU=1)
        for service, catalog in zip(pair.services, kept, strict=True):
            now = await service.index.current()
            assert now is catalog
            assert now.record(first) is not None and now.record(second) is not None
            assert service.index.epoch == 2

    play(scenario)


def test_another_history_of_the_same_length_is_loaded_again() -> None:
    """If the last known revision was written at another time, the catalog is outdated."""

    async def scenario(pair: Pair) -> None:
        uuid = await pair.provider(VCPU=1)
        kept = [await service.index.current() for service in pair.services]
        with psycopg.connect(pair.url) as server:
            newest = "(SELECT revision FROM clock)"
            server.execute(f"UPDATE change SET at = at + 1 WHERE revision = {newest}".encode())
            server.execute("UPDATE provider SET name = 'another'")
            server.execute("UPDATE clock SET epoch = epoch + 1")
        for service, catalog in zip(pair.services, kept, strict=True):
            now = await service.index.current()
            assert now is not catalog
            record = now.record(uuid)
            assert record is not None and record.provider.name == "another"

    play(scenario)


def test_deleting_an_unknown_class_or_trait_locks_nothing(tmp_path: Path) -> None:
    """The deletion neither locks the ledger nor reads the providers."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            await one.submit(vocabulary_cases.ClassCreate("CUSTOM_A"))
            asked = statements_of(one)
            answers = await one.outcomes(
                vocabulary_cases.ClassDelete("CUSTOM_NO"), vocabulary_cases.TraitDelete("CUSTOM_NO")
            )
            assert answers == [Code.CLASS_NOT_FOUND, Code.TRAIT_NOT_FOUND]
            answers = await one.outcomes(
                vocabulary_cases.ClassDelete("VCPU"), vocabulary_cases.TraitDelete("HW_NO")
            )
            assert answers == [Code.STANDARD_CLASS, Code.TRAIT_NOT_FOUND]
            assert not {"ledger_lock", "resource_class_uses_count", "trait_uses_count"} & set(asked)
            await one.submit(vocabulary_cases.ClassDelete("CUSTOM_A"))
            assert {"ledger_lock", "resource_class_uses_count"} <= set(asked), (
                "the control: deleting an existing class does both"
            )

    asyncio.run(scenario())


def statements_of(one: Running) -> list[str]:
    """Record from now on which statements are executed in transactions."""
    asked: list[str] = []

    class Noting(WatchedTransaction):
        def _counted(self, plan: Plan[T]) -> Plan[T]:
            inner = super()._counted(plan)
            try:
                statements: Any = next(inner)
                while True:
                    asked.extend(one.block for one in statements)
                    statements = inner.send((yield statements))
            except StopIteration as stop:
                answer: T = stop.value
                return answer

    one.engine.wrapper = Noting
    return asked


def test_heavy_statements_leave_the_loop(tmp_path: Path) -> None:
    """A plan continues in the commit thread after a heavy statement; a light one stays."""

    async def scenario() -> None:
        async with running(tmp_path / "ledger") as one:
            threads: list[str] = []

            def plan(text: str) -> Plan[int]:
                yield [Query("clock_load")]
                threads.append(threading.current_thread().name)
                rows = yield [Query("consumers_load", (f'["{text}"]',))]
                threads.append(threading.current_thread().name)
                return len(rows)

            for text in ("x", "x" * HEAVY):
                async with one.engine.engine.transaction() as transaction:
                    assert await transaction.run(plan(text)) == 1
            assert threads[:3] == ["MainThread"] * 3
            assert threads[3].startswith("moorage-commit")
            with pytest.raises(Error):
                await one.submit(provider_cases.ProviderDelete(provider_id(9)))

    asyncio.run(scenario())
