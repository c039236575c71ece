"""The transactor: what callers are answered, and when, whether or not the commit succeeds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moorage.core.errors import Code, Error
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.service_time import When
from moorage.service.batch.transactor import RETRIES_MAX
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ledger import provider_cases, vocabulary_cases
from moorage.store import changelog
from moorage.store.api import Conflict, Fatal, Unavailable
from tests.service.running import Running, claim, consumer_id, provider_id, running

Scenario = Callable[[Running], Awaitable[None]]


def play(path: Path, scenario: Scenario, **options: Any) -> None:
    """Run a scenario with a service on a new database."""

    async def run() -> None:
        async with running(path / "ledger", **options) as one:
            await scenario(one)

    asyncio.run(run())


def begin(one: Running, *commands: Any) -> list[asyncio.Task[Any]]:
    """Start requests at the same time, without waiting for them."""
    return [asyncio.ensure_future(one.submit(command)) for command in commands]


async def outcome(task: asyncio.Task[Any]) -> Any:
    """Return a caller's answer, or the code of the refusal."""
    try:
        return await task
    except Error as refusal:
        return refusal.code


def test_a_refusal_waits_for_the_commit_it_depends_on(tmp_path: Path) -> None:
    """The refusal is returned once the other claim is durable; until then no reader sees that."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=1)
        one.engine.hold_commits()
        winner, loser = begin(one, claim(1, uuid, VCPU=1), claim(2, uuid, VCPU=1))
        await one.engine.held.wait()
        assert not winner.done()
        assert not loser.done()
        assert one.used(uuid) == 0
        assert await one.service.reads.consumer(consumer_id(1)) is None
        one.engine.continue_commits()
        assert await outcome(winner) is None
        assert await outcome(loser) is Code.CAPACITY_EXCEEDED
        assert one.used(uuid) == 1

    play(tmp_path, scenario)


def test_the_queue_is_bounded(tmp_path: Path) -> None:
    """Requests beyond its length are refused at once; those in the queue are executed."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.hold_commits()
        first = begin(one, claim(0, uuid, VCPU=1))
        await one.engine.held.wait()
        rest = begin(one, *(claim(n, uuid, VCPU=1) for n in range(1, 6)))
        done, _ = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
        assert [await outcome(task) for task in done] == [Code.OVERLOADED] * 2
        assert one.service.transactor.waiting == 3
        assert one.service.transactor.counters.overloaded == 2
        one.engine.continue_commits()
        assert [await outcome(task) for task in [*first, *rest[:3]]] == [None] * 4
        assert one.used(uuid) == 4

    play(tmp_path, scenario, queue_max=3)


def test_a_failed_commit_acknowledges_nothing(tmp_path: Path) -> None:
    """All requests fail, also refused ones; rows and index are unchanged; the next commit works."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=1)
        revision = one.service.index.revision
        one.engine.failures.append(Unavailable("the disk is full"))
        answers = await one.outcomes(claim(1, uuid, VCPU=1), claim(2, uuid, VCPU=1))
        assert answers == [Code.UNAVAILABLE, Code.UNAVAILABLE]
        assert one.used(uuid) == 0
        assert one.service.index.revision == revision
        tail = await one.engine.read(changelog.changes_load(0))
        assert tail.revision == revision
        assert one.fatal == []
        assert await one.outcomes(claim(2, uuid, VCPU=1)) == [None]
        assert one.service.transactor.counters.failed == 2

    play(tmp_path, scenario)


def test_after_a_fatal_commit_nothing_is_accepted(tmp_path: Path) -> None:
    """All waiting requests fail, the process is asked to end, and no further commit is tried."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.hold_commits()
        waiting = begin(one, claim(1, uuid, VCPU=1))
        await one.engine.held.wait()
        waiting += begin(one, claim(2, uuid, VCPU=1), vocabulary_cases.ClassEnsure("CUSTOM_A"))
        fault = Fatal("the sync failed")
        one.engine.failures.append(fault)
        before = one.engine.transactions
        await asyncio.wait(waiting[1:], timeout=0)
        one.engine.continue_commits()
        assert [await outcome(task) for task in waiting] == [Code.UNAVAILABLE] * 3
        assert one.fatal == [fault]
        assert one.engine.transactions == before
        assert await one.outcomes(claim(3, uuid, VCPU=1)) == [Code.UNAVAILABLE]
        assert one.used(uuid) == 0

    play(tmp_path, scenario)


def test_a_fatal_commit_ends_the_rest_of_its_batch(tmp_path: Path) -> None:
    """When a batch is executed item by item and one commit is fatal, the others do not run."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.failures.extend([Conflict("somebody else")] * RETRIES_MAX)
        one.engine.failures.append(Fatal("the sync failed"))
        before = one.engine.transactions
        answers = await one.outcomes(*(claim(n, uuid, VCPU=1) for n in range(3)))
        assert answers == [Code.UNAVAILABLE] * 3
        assert len(one.fatal) == 1
        assert one.engine.transactions == before + RETRIES_MAX + 1

    play(tmp_path, scenario)


def test_a_conflict_is_decided_again_on_fresh_rows(tmp_path: Path) -> None:
    """The batch is loaded and decided again; the outcome is as if there had been no conflict."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=1)
        one.engine.failures.extend([Conflict("somebody else")] * (RETRIES_MAX - 1))
        answers = await one.outcomes(claim(1, uuid, VCPU=1), claim(2, uuid, VCPU=1))
        assert answers == [None, Code.CAPACITY_EXCEEDED]
        assert one.service.transactor.counters.retries == RETRIES_MAX - 1
        assert one.used(uuid) == 1

    play(tmp_path, scenario)


def test_after_many_conflicts_item_by_item(tmp_path: Path) -> None:
    """A request whose commits always conflict does not fail the others."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.failures.extend([Conflict("somebody else")] * (2 * RETRIES_MAX))
        answers = await one.outcomes(*(claim(n, uuid, VCPU=1) for n in range(3)))
        assert answers == [Code.UNAVAILABLE, None, None]
        assert one.used(uuid) == 2

    play(tmp_path, scenario)


def test_the_last_conflict_is_reported(tmp_path: Path) -> None:
    """The refusal after all attempts has the message of the last conflict."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.failures.extend(Conflict(f"obstacle {n}") for n in range(RETRIES_MAX))
        with pytest.raises(Error, match=f"obstacle {RETRIES_MAX - 1}"):
            await one.submit(claim(1, uuid, VCPU=1))

    play(tmp_path, scenario)


def test_a_class_rename_runs_alone(tmp_path: Path) -> None:
    """Earlier requests use the old name, later ones the new one, though all arrive together."""

    async def scenario(one: Running) -> None:
        await one.submit(vocabulary_cases.ClassCreate("CUSTOM_A"))
        uuid = await one.provider(1, CUSTOM_A=3)
        revision = one.service.index.revision
        answers = await one.outcomes(
            claim(1, uuid, CUSTOM_A=1),
            vocabulary_cases.ClassRename("CUSTOM_A", "CUSTOM_B"),
            claim(2, uuid, CUSTOM_A=1),
            claim(3, uuid, CUSTOM_B=1),
        )
        assert [answers[n] for n in (0, 2, 3)] == [None, Code.CLASS_UNKNOWN, None]
        assert one.service.index.revision == revision + 3
        assert one.used(uuid, "CUSTOM_B") == 2
        held = await one.service.reads.consumer(consumer_id(1))
        assert held is not None
        assert held.allocations == {uuid: {"CUSTOM_B": 1}}

    play(tmp_path, scenario)


def test_a_batch_of_claims_takes_few_statements(tmp_path: Path) -> None:
    """64 claims of new and known consumers on two providers each take at most 12 statements."""

    async def scenario(one: Running) -> None:
        uuids = [await one.provider(n, VCPU=1_000, DISK_GB=1_000) for n in range(128)]
        pairs = [(uuids[n], uuids[n + 64]) for n in range(64)]
        await one.outcomes(*(claim(n, *pairs[n], VCPU=1) for n in range(32)))
        before = one.engine.transactions
        answers = await one.outcomes(
            *(claim(n, *pairs[n], generation=1, DISK_GB=2) for n in range(32)),
            *(claim(n, *pairs[n], VCPU=1, DISK_GB=1) for n in range(32, 64)),
        )
        assert answers == [None] * 64
        assert one.engine.transactions == before + 1
        assert one.engine.statements[-1] <= 12

    play(tmp_path, scenario)


def test_a_request_cancelled_in_the_queue_is_not_executed(tmp_path: Path) -> None:
    """A request whose caller leaves while it waits has no effect."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.hold_commits()
        first = begin(one, claim(1, uuid, VCPU=1))
        await one.engine.held.wait()
        gone, stays = begin(one, claim(2, uuid, VCPU=1), claim(3, uuid, VCPU=1))
        await asyncio.wait([gone, stays], timeout=0)
        gone.cancel()
        one.engine.continue_commits()
        await asyncio.gather(*first, stays)
        assert one.used(uuid) == 2
        assert await one.service.reads.consumer(consumer_id(2)) is None

    play(tmp_path, scenario)


def test_a_request_cancelled_during_the_commit_is_executed(tmp_path: Path) -> None:
    """The batch is completed; the other callers are answered, and the claim is valid."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        one.engine.hold_commits()
        gone, stays = begin(one, claim(1, uuid, VCPU=1), claim(2, uuid, VCPU=1))
        await one.engine.held.wait()
        gone.cancel()
        one.engine.continue_commits()
        assert await outcome(stays) is None
        assert one.used(uuid) == 2

    play(tmp_path, scenario)


def test_stopping_finishes_what_was_accepted(tmp_path: Path) -> None:
    """Accepted requests are answered; later ones are refused."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=200)
        tasks = begin(one, *(claim(n, uuid, VCPU=1) for n in range(150)))
        await asyncio.wait(tasks, timeout=0)
        await one.service.transactor.stop()
        assert [task.result() for task in tasks] == [None] * 150
        assert await one.outcomes(claim(999, uuid, VCPU=1)) == [Code.UNAVAILABLE]
        assert one.used(uuid) == 150

    async def run() -> None:
        # Not by play(): a stopped service cannot check itself.
        async with running(tmp_path / "ledger") as one:
            await scenario(one)
            one.engine.failures.append(Unavailable("stopped"))

    asyncio.run(run())


@dataclass
class Broken(UseCase[None]):
    """A use case with a fault in its decision, or in its keys."""

    name: str

    def keys(self) -> Keys:
        return Keys(LedgerKeys(names={self.name}))

    def decide(self, world: World, when: When) -> Changes:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("name", "fault"), [("fine", ZeroDivisionError), ("half \ud800", UnicodeEncodeError)]
)
def test_a_fault_affects_no_other_request(
    tmp_path: Path, name: str, fault: type[Exception]
) -> None:
    """The caller gets the unexpected exception; the other requests of the batch succeed."""

    async def scenario(one: Running) -> None:
        uuid = await one.provider(1, VCPU=9)
        answers = await one.outcomes(claim(1, uuid, VCPU=1), Broken(name), claim(2, uuid, VCPU=1))
        assert (answers[0], answers[2]) == (None, None)
        assert isinstance(answers[1], fault)
        assert one.used(uuid) == 2

    play(tmp_path, scenario)


def test_time_never_goes_back(tmp_path: Path) -> None:
    """Every created object has a distinct time, whatever the clock does."""

    async def scenario(one: Running) -> None:
        first = await one.submit(provider_cases.ProviderCreate(provider_id(1), "one"))
        one.clock.at -= 60_000_000
        second, third = await one.outcomes(
            provider_cases.ProviderCreate(provider_id(2), "two"),
            provider_cases.ProviderCreate(provider_id(3), "three"),
        )
        assert first.created_at < second.created_at < third.created_at
        one.clock.at += 120_000_000
        fourth = await one.submit(provider_cases.ProviderCreate(provider_id(4), "four"))
        assert fourth.created_at == one.clock.now()

    play(tmp_path, scenario)
