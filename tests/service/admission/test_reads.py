"""A decision does not read rows that are irrelevant to it, however many there are."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.compat.boskos import AcquireRequest
from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.admission.model import Slot
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import LeaseId
from moorage.core.service_time import When
from moorage.service.admission.lease_cases import LeasePoll, LeaseRenew
from moorage.service.batch.use_case import UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.compat.boskos_cases import Acquire, Release, Reset, Update
from moorage.service.ids import lease_id_new
from moorage.store.admission import load
from moorage.store.api import Plan
from tests.service.pools import (
    ask,
    opened,
    pass_time,
    pool_put,
    refusal,
    spec,
    wish,
    with_manual_clock,
)
from tests.service.running import TESTER, Running
from tests.support import cluster

SLOTS = 40
WAITING = 60


class Slotted(UseCase[None]):
    """Create a pool with many slots."""

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={"s"}))

    def decide(self, world: World, when: When) -> Changes:
        facts = world.admission
        pool = structs.replace(
            facts.pools["p"], name="s", spec=structs.replace(facts.pools["p"].spec, limit=None)
        )
        names = [f"slot-{n}" for n in range(SLOTS)]
        slots = {
            ("s", name): Slot("s", name, "free", "", None, {}, Instant(n))
            for n, name in enumerate(names)
        }
        made = AdmissionChanges(pools={"s": pool}, slots=dict(slots))
        return Changes(admission=made)

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


class Made(Slotted):
    """The same, and load the pool that it copies."""

    def keys(self) -> Keys:
        return Keys(admission=AdmissionKeys(pools={"s", "p"}))


async def furnished(one: Running) -> None:
    """Create a pool with slots and pools with a gang, with a unit of each occupied."""
    admission, transactor = one.service.admission, one.service.transactor
    for name in ("p", "q", "r"):
        await pool_put(admission, name, spec())
    await transactor.submit(Made())
    for name in ("p", "q", "r"):
        await ask(admission, f"held-{name}", name)
    await ask(admission, "gang", "q", "r")


async def read(one: Running, case: UseCase[Any]) -> Facts:
    """Return the facts that a case loads for its decision."""
    keys = case.keys().admission
    assert keys is not None
    return await one.engine.read(load.facts_load(keys))


def test_signs_of_life_read_one_row(tmp_path: Path) -> None:
    """A renewal or poll reads neither the slots of the pool nor pools with gangs."""

    async def scenario(one: Running) -> None:
        await furnished(one)
        held = (await ask(one.service.admission, "a", "s")).lease
        for case in (LeaseRenew(held.id, Proof("me")), LeasePoll(held.id)):
            facts = await read(one, case)
            assert (list(facts.leases), facts.pools, facts.slots) == ([held.id], {}, {})
        facts = await read(one, Update("slot-0", "me", True, "leased", {}))
        assert (list(facts.leases), facts.pools) == ([held.id], {})
        assert [slot.name for slot in facts.slots["s"].values()] == ["slot-0"]
        one.clock.at += 10 * SECOND
        renewed = await one.service.admission.change(LeaseRenew(held.id, Proof("me")))
        assert renewed.lease.heard_until == (held.heard_until or 0) + 10 * SECOND

    with_manual_clock(tmp_path, scenario)


def test_a_janitor_and_a_reaper_read_no_line(tmp_path: Path) -> None:
    """They read no waiting tickets; an acquire that fails without a request id writes nothing."""

    async def scenario(one: Running) -> None:
        await furnished(one)
        admission, transactor = one.service.admission, one.service.transactor
        await ask(admission, "all", "s", units=SLOTS)
        for n in range(WAITING):
            await ask(admission, f"{n}", "s")
        acquire = Acquire(
            AcquireRequest("s", "free", "busy", "janitor", "", LeaseId("x"), ""), False
        )
        reset = Reset("s", "leased", 10**15, "dirty", True, TESTER)
        assert len((await read(one, acquire)).leases) == 0
        assert len((await read(one, reset)).leases) == 1
        before = one.service.index.revision
        assert await refusal(transactor.submit(acquire)) is Code.NO_CAPACITY
        assert one.service.index.revision == before

    with_manual_clock(tmp_path, scenario)


@pytest.mark.parametrize("patience", [10, 30])
def test_most_polls_are_not_written(tmp_path: Path, patience: int) -> None:
    """Few polls are written, yet no ticket is withdrawn before its patience is over."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec())
        await ask(admission, "a", "p", ttl=3_000 * SECOND)
        ticket = (await ask(admission, "b", "p", patience=patience * SECOND)).lease.id
        deadlines = set()
        for _ in range(20):
            one.clock.at += patience * SECOND // 10
            deadlines.add((await admission.waited(ticket, 0.0)).lease.heard_until)
        assert len(deadlines) == 7
        await pass_time(one, patience * SECOND - 1)
        assert (await admission.queries.lease(ticket)).lease.state == "waiting"
        await pass_time(one, patience * SECOND // 5 + 2)
        assert (await admission.queries.lease(ticket)).lease.cause == "unheard"

    with_manual_clock(tmp_path, scenario)


def watched(plan: Plan[Any], lines: list[int]) -> Plan[Any]:
    """Forward a plan, and record how many tickets of lines it reads."""
    try:
        statements = plan.send(None)
        while True:
            results = yield statements
            for statement, rows in zip(statements, results, strict=True):
                if statement.block == "line_pass":
                    lines.append(len(rows))
            statements = plan.send(results)
    except StopIteration as end:
        return end.value


def test_a_list_of_pools_reads_the_first_of_each_line(tmp_path: Path) -> None:
    """It shows the first tickets and their reasons without a pass over the tickets behind them."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        for name in ("p", "q"):
            await pool_put(admission, name, spec())
            await ask(admission, f"held-{name}", name)
        for n in range(WAITING):
            await admission.acquire(wish(f"{n}", "p"), TESTER)
        lines: list[int] = []
        real = one.engine.read_aside

        async def counted(plan: Plan[Any], *, slow: bool = False) -> Any:
            return await real(watched(plan, lines), slow=slow)

        one.engine.read_aside = counted  # type: ignore[method-assign]  # it passes on
        pools, _, _ = await admission.queries.pools(None, 10)
        assert lines == [1]
        first = pools[0].first
        assert first is not None
        assert first.standing is not None
        assert (first.lease.key, first.standing.position) == ("0", 1)
        assert pools[1].first is None

    with_manual_clock(tmp_path, scenario)


@pytest.mark.parametrize("shared", [False, True], ids=["sqlite", "postgres"])
def test_a_request_id_keeps_its_history(tmp_path: Path, shared: bool) -> None:
    """An ended lease leaves its key to its successor and remains known by its id."""

    async def scenario(url: str) -> None:
        async with opened(url) as service:
            admission, transactor = service.admission, service.transactor
            await pool_put(admission, "p", spec())
            await transactor.submit(Made())
            held = []
            for _ in range(3):
                wish_ = AcquireRequest("s", "free", "busy", "me", "id", lease_id_new(), "")
                slot = (await transactor.submit(Acquire(wish_))).slot
                held.append(slot.lease)
                await transactor.submit(Update(slot.name, "me", False, "busy", {"n": "1"}))
                await transactor.submit(Release(slot.name, "me", False, "free", TESTER))
            assert None not in held
            assert len(set(held)) == 3
            listed, _, _ = await admission.queries.leases(None, 10, "s")
            assert [one.lease.id for one in listed] == held
            assert len({one.lease.key for one in listed}) == 3
            assert {one.lease.cause for one in listed} == {"released"}

    asyncio.run(scenario(cluster.fresh() if shared else f"sqlite:///{tmp_path}/m.sqlite"))
