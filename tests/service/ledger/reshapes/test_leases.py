"""Reshapes of what leases hold: admission and ledger agree afterwards, on both engines."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from moorage.core.admission.model import Lease
from moorage.core.admission.requests import Proof
from moorage.core.errors import Error
from moorage.core.ledger.facts import Facts, Keys
from moorage.core.ledger.reshaping import stranding
from moorage.core.ledger.reshaping.plan import Move, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned
from moorage.core.ledger.reshaping.tenants import Note, NoteCode
from moorage.core.ledger.reshaping.violations import ViolationCode
from moorage.service.admission.lease_cases import LeaseRelease
from moorage.service.app import Service
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.ledger import reshapes
from moorage.store.ledger.load import facts_load
from tests.service.batch.test_shared import Pair, play
from tests.service.ledger.imports.conftest import Database
from tests.service.ledger.reshapes.test_reshapes import codes, refused
from tests.service.ledger.reshapes.trees import (
    HOST,
    LEFT,
    commit,
    host,
    preview,
    records,
    split,
    undo,
    wish,
)
from tests.service.pools import ask, pool_put, spec
from tests.service.running import CLASSES, TESTER, TRAITS, claim, consumer_id

UNITS = 3
MINE, NOVA = consumer_id(1), consumer_id(2)
ROUNDS = 15


async def leased(service: Service, key: str = "a") -> Lease:
    """Return a lease whose consumer has units of the host."""
    held = LeaseAllocations(MINE, {HOST: {"VCPU": UNITS}}, "project", "user", None)
    lease = (await ask(service.admission, key, "p", allocations=held)).lease
    assert lease.state == "granted"
    return lease


async def begin(service: Service) -> Lease:
    """Create a host, where a lease has units, and so has a consumer that is no lease's."""
    await host(service, {2: UNITS})
    await pool_put(service.admission, "p", spec(5))
    return await leased(service)


async def end(service: Service, lease: Lease) -> None:
    """Let a lease end."""
    await service.admission.change(LeaseRelease(lease.id, Proof("me")))


async def used(service: Service) -> int:
    """Return how many units of VCPU are used on all providers."""
    found = (await records(service)).values()
    return sum(one.inventories["VCPU"].used for one in found if "VCPU" in one.inventories)


async def exists(service: Service, n: int) -> bool:
    """Return whether the n-th consumer has allocations."""
    return await service.reads.consumer(consumer_id(n)) is not None


def emptying(**more: Any) -> ReshapePlan:
    """Return a plan that takes what both consumers have of the host, in the way of a heal."""
    both = dict.fromkeys((MINE, NOVA), frozenset({HOST}))
    return ReshapePlan(**{"vacate": both, "release": frozenset(both), **more})


def drifting() -> ReshapePlan:
    """Return a plan by which both consumers have nothing, according to the evidence."""
    nothing = {uuid: {LEFT: 0} for uuid in (MINE, NOVA)}
    made = split({}, {}, accept_drift=frozenset(nothing))
    moves = tuple(Move(one.source, one.target, one.amount, nothing) for one in made.moves)
    return ReshapePlan(create=made.create, moves=moves, accept_drift=made.accept_drift)


PLANS: dict[str, Callable[[], ReshapePlan]] = {"released": emptying, "drift": drifting}


def noted(planned: Planned) -> dict[NoteCode, dict[str, str | None]]:
    """Return whom the notes of a plan are about."""
    return {one.code: {**one.consumers} for one in planned.notes}


def test_a_lease_returns_what_was_moved(database: Database) -> None:
    """It keeps its token, and what it holds now is free when it ends, wherever that is."""

    async def scenario() -> None:
        async with database.served() as service:
            lease = await begin(service)
            plan = split({1: LEFT, 2: LEFT}, {1: UNITS, 2: UNITS})
            assert (await preview(service, plan)).planned.notes == ()
            await commit(service, plan)
            assert (await records(service))[LEFT].inventories["VCPU"].used == 2 * UNITS
            assert await service.operations.check() == []
            after = (await service.admission.queries.lease(lease.id)).lease
            assert (after.state, after.token) == ("granted", lease.token)
            await end(service, lease)
            assert (await used(service), await exists(service, 1)) == (UNITS, False)

    asyncio.run(scenario())


@pytest.mark.parametrize("way", PLANS)
def test_a_lease_that_lost_its_units_goes_on(database: Database, way: str) -> None:
    """The preview says so. When it ends nothing is returned twice; undo in time gives it back all.

    What others create under the same name in between is not the lease's.
    """

    async def scenario() -> None:
        async with database.served() as service:
            lease = await begin(service)
            plan = PLANS[way]()
            shown = (await preview(service, plan)).planned
            assert codes(shown) == []
            assert noted(shown) == {NoteCode.LEASES_LOSE: {MINE: lease.id}}
            await commit(service, plan)
            assert await used(service) == 0
            assert await service.operations.check() == []
            back = (await service.reshapes.undo_preview(wish(1).id)).planned
            assert (codes(back), noted(back)) == ([], {NoteCode.CREATED_AGAIN: {NOVA: None}})
            await undo(service, 1, 2)
            assert await used(service) == 2 * UNITS
            await end(service, lease)
            assert (await used(service), await exists(service, 1)) == (UNITS, False)
        async with database.served() as service:
            lease = await leased(service, "again")
            await commit(service, plan, 3)
            await service.transactor.submit(claim(1, HOST, DISK_GB=5))
            await end(service, lease)
            assert await exists(service, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("way", PLANS)
def test_nothing_comes_back_for_a_lease_that_has_ended(database: Database, way: str) -> None:
    """Undo is refused, with the consumer: nobody would ever return its units.

    If the operator leaves it out, all the rest is undone. The control is the other consumer, of
    which nobody knows: it comes back.
    """

    async def scenario() -> None:
        async with database.served() as service:
            lease = await begin(service)
            await commit(service, PLANS[way]())
            await end(service, lease)
        async with database.served() as service:
            for again in (undo(service, 1, 2), undo(service, 1, 3)):
                refusal = await refused(again)
                (found,) = refusal.planned.violations
                assert (found.code, found.consumer) == (ViolationCode.LEASE_ENDED, MINE)
                assert lease.id in found.message
            shown = (await service.reshapes.undo_preview(wish(1).id)).planned
            assert codes(shown) == [ViolationCode.LEASE_ENDED]
            wrong = await service.reshapes.undo_preview(
                wish(1).id, frozenset({MINE, consumer_id(7)})
            )
            assert codes(wrong.planned) == [ViolationCode.CONSUMER_UNKNOWN]
            out = frozenset({MINE})
            shown = (await service.reshapes.undo_preview(wish(1).id, out)).planned
            assert noted(shown) == {NoteCode.CREATED_AGAIN: {NOVA: None}}
            await service.reshapes.undo(wish(1).id, wish(4, shown.digest), TESTER, out)
            assert await used(service) == UNITS
            assert [await exists(service, n) for n in (1, 2)] == [False, True]
            assert (await records(service)).keys() == {HOST}

    asyncio.run(scenario())


def test_a_later_lease_of_the_same_consumer_is_another_one(database: Database) -> None:
    """A lease that was granted after the reshape does not own what the former one had."""

    async def scenario() -> None:
        async with database.served() as service:
            lease = await begin(service)
            await commit(service, emptying())
            await end(service, lease)
            later = await leased(service, "later")
            await commit(service, emptying(vacate={MINE: frozenset({HOST})}, release={MINE}), 2)
            assert codes((await service.reshapes.undo_preview(wish(1).id)).planned) == [
                ViolationCode.LEASE_ENDED
            ]
            await undo(service, 2, 3)
            await end(service, later)
            assert await used(service) == 0

    asyncio.run(scenario())


def test_tickets_that_would_wait_in_vain_are_named(database: Database) -> None:
    """Those that ask for units which move away, or of which too few are left; undoing names more.

    The control: a ticket that asks for what stays, and one that never could be granted.
    """

    async def scenario() -> None:
        async with database.served() as service:
            await host(service, {}, total=16)
            await pool_put(service.admission, "p", spec(1))
            await ask(service.admission, "first", "p")
            asked = {1: {"VCPU": 9}, 2: {"VCPU": 8}, 3: {"DISK_GB": 9}, 4: {"VCPU": 17}}
            tickets = {}
            for n, amounts in asked.items():
                held = LeaseAllocations(consumer_id(n), {HOST: amounts}, "project", "user", None)
                found = await ask(service.admission, f"t{n}", "p", allocations=held)
                assert found.lease.state == "waiting"
                tickets[n] = found.lease.id
            half = replace(split({}, {}), moves=(split({}, {}).moves[0],))
            for plan, named in ((half, {1}), (split({}, {}), {1, 2})):
                (note,) = (await preview(service, plan)).planned.notes
                assert note.code is NoteCode.TICKETS_STRANDED
                assert note.consumers == {consumer_id(n): tickets[n] for n in named}
                assert f"{len(named)} waiting ticket" in note.message
                assert f"VCPU of provider {HOST}" in note.message
            shaped = ReshapePlan(rename={HOST: "another"}, traits={HOST: frozenset()})
            assert (await preview(service, shaped)).planned.notes == ()
            made = await commit(service, split({}, {}))
            assert made.summary.places
            held = LeaseAllocations(consumer_id(5), {LEFT: {"VCPU": 8}}, "project", "user", None)
            last = await ask(service.admission, "t5", "p", allocations=held)
            back = await service.reshapes.undo_preview(wish(1).id)
            (note,) = back.planned.notes
            assert note.consumers == {consumer_id(5): last.lease.id}

    asyncio.run(scenario())


def test_only_some_tickets_are_looked_at_and_named(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may be long; the message says that there are more."""
    monkeypatch.setattr(reshapes, "TICKETS_READ_MAX", 3)
    monkeypatch.setattr(stranding, "TICKETS_NAMED_MAX", 2)

    async def scenario() -> Note:
        async with database.served() as service:
            await host(service, {}, total=16)
            await pool_put(service.admission, "p", spec(1))
            await ask(service.admission, "first", "p")
            for n in range(1, 6):
                held = LeaseAllocations(consumer_id(n), {HOST: {"VCPU": 1}}, "p", "u", None)
                await ask(service.admission, f"t{n}", "p", allocations=held)
            (note,) = (await preview(service, split({}, {}))).planned.notes
            return note

    note = asyncio.run(scenario())
    assert note.message.startswith("At least 3 waiting tickets")
    assert set(note.consumers) == {consumer_id(1), consumer_id(2)}


def test_what_an_undo_removes_is_known_as_well(database: Database) -> None:
    """Undoing an undo creates no consumer again either if its lease has ended since."""

    async def scenario() -> None:
        async with database.served() as service:
            lease = await begin(service)
            await commit(service, emptying())
            await undo(service, 1, 2)
            await undo(service, 2, 3)
            await end(service, lease)
            assert codes((await service.reshapes.undo_preview(wish(3).id)).planned) == [
                ViolationCode.LEASE_ENDED
            ]

    asyncio.run(scenario())


async def outcome(awaitable: Awaitable[Any]) -> bool:
    """Return whether something was done, and not refused."""
    try:
        await awaitable
    except Error:
        return False
    return True


def test_an_undo_beside_the_end_of_the_lease_leaves_nothing() -> None:
    """Two processes: whichever is first, nobody holds units whose lease has ended."""

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await host(one, {2: UNITS})
        await pool_put(one.admission, "p", spec(50))
        done = 0
        for n in range(1, 3 * ROUNDS, 3):
            lease = await leased(one, str(n))
            await commit(one, emptying(), n)
            back, _ = await asyncio.gather(outcome(undo(two, n, n + 1)), end(one, lease))
            done += back
            assert not await exists(one, 1)
            if not back:
                out = frozenset({MINE})
                await one.reshapes.undo(wish(n).id, wish(n + 2), TESTER, out)
            assert await used(one) == UNITS

    play(scenario)


def test_an_undo_waits_for_leases_that_may_be_ending() -> None:
    """One that has looked for its consumer, and not found it, ends before the undo is decided.

    The control: what no lease had is created again at once.
    """

    async def scenario(pair: Pair) -> None:
        one, two = pair.services
        await begin(one)
        for n, uuid in ((1, MINE), (2, NOVA)):
            only = {uuid: frozenset({HOST})}
            await commit(one, emptying(vacate=only, release=frozenset(only)), n)
        async with one.engine.transaction() as transaction:
            keys = Keys(consumers={MINE}, returned={MINE})
            assert not (await transaction.run(facts_load(keys, CLASSES, TRAITS))).consumers
            await undo(two, 2, 3)
            waiting = asyncio.ensure_future(undo(two, 1, 4))
            done, _ = await asyncio.wait([waiting], timeout=0.5)
            assert not done
        await waiting
        assert await used(two) == 2 * UNITS

    play(scenario)


@pytest.mark.parametrize("returned", [True, False])
def test_the_end_of_a_lease_sees_what_was_created_while_it_waited(returned: bool) -> None:
    """It waits for the ledger's lock before it looks; the control looks first, and sees nobody."""

    async def scenario(pair: Pair) -> None:
        one = pair.services[0]
        await host(one, {2: UNITS})
        keys = Keys(consumers={NOVA}, returned={NOVA} if returned else set())
        with (
            psycopg.connect(pair.url) as other,
            psycopg.connect(pair.url, autocommit=True) as looks,
        ):
            other.execute("SELECT pg_advisory_xact_lock(778, 1)")
            other.execute("CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM consumer")
            with psycopg.connect(pair.url) as gone:
                gone.execute("DELETE FROM consumer")
            async with one.engine.transaction() as transaction:
                load = facts_load(keys, CLASSES, TRAITS)
                loading: asyncio.Future[Facts] = asyncio.ensure_future(transaction.run(load))
                waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                async with asyncio.timeout(60):
                    while not looks.execute(waits).fetchall():
                        await asyncio.sleep(0)
                other.execute("INSERT INTO consumer SELECT * FROM kept")
                other.commit()
                assert (NOVA in (await loading).consumers) == returned

    play(scenario)
