"""Lines in rows: in order, page by page, with the changes of the batch so far."""

import asyncio
from random import Random

import pytest

from moorage.core.admission.facts import Changes, Facts, Keys, Line
from moorage.core.admission.model import Lease, Need
from moorage.core.clock import SECOND, Instant
from moorage.core.ids import LeaseId, ProviderId
from moorage.store.admission import line_pass, load
from moorage.store.api import Engine, Plan, Write
from moorage.store.encoding import encode
from tests.store.admission.grants import (
    AT,
    ended,
    facts_of,
    granted,
    lease_id,
    pool,
    run,
    saved,
    slot,
    ticket,
)


def shuffled_tickets(seed: int, count: int) -> list[Lease]:
    """Return tickets for pool `a` in random order, with few priorities, some also for `b`."""
    random = Random(seed)
    tickets = []
    for n in range(count):
        needs = ("a", "b") if n % 5 == 0 else ("a",)
        more = {"arrival": 1_000 - n, "place": random.choice([0, 0, 5, 9])}
        tickets.append(ticket(n, *needs, priority=random.randint(-2, 2), **more))
    random.shuffle(tickets)
    return tickets


def in_order(tickets: list[Lease]) -> list[Lease]:
    """Return tickets in the order of their line."""
    return sorted(tickets, key=lambda one: (-one.priority, one.place, one.arrival))


async def load_lines(engine: Engine, facts: Facts, wanted: dict[str, int]) -> None:
    """Load some lines up to the wanted lengths."""
    async with engine.transaction() as transaction:
        await transaction.run(load.lines_load(facts, wanted))


def test_a_line_in_pages(engine: Engine) -> None:
    """For any page size, the line contains all waiting tickets by priority and arrival."""

    async def scenario() -> None:
        tickets = shuffled_tickets(1, 40)
        others = [ticket(100, "c"), granted(ticket(101, "a")), ended(ticket(102, "a"))]
        gangs = {"gangs": 8}
        await saved(engine, pool("a", **gangs), pool("b", **gangs), pool("c"), *tickets, *others)
        ids = [one.id for one in in_order(tickets)]
        for pages in ([40], [39, 41], [1, 2, 40, 50], [7, 14, 21, 28, 35, 42]):
            facts = await facts_of(engine, Keys(pools={"a"}))
            for upto in pages:
                await load_lines(engine, facts, {"a": upto})
                assert facts.lines["a"] == Line(ids[:upto], whole=upto >= 40)
            assert facts.leases == {one.id: one for one in tickets if one.id in ids[:upto]}

    asyncio.run(scenario())


def test_lines_of_many_pools_at_once(engine: Engine) -> None:
    """Each pool gets the number of tickets that was asked for; an empty line is whole."""

    async def scenario() -> None:
        tickets = shuffled_tickets(2, 10)
        gangs = {"gangs": 2}
        await saved(engine, pool("a", **gangs), pool("b", **gangs), pool("c"), *tickets)
        facts = await facts_of(engine, Keys(pools={"a", "b", "c"}))
        await load_lines(engine, facts, {"a": 3, "c": 5, "b": 2})
        both = [one for one in tickets if len(one.needs) == 2]
        assert facts.lines == {
            "a": Line([one.id for one in in_order(tickets)[:3]]),
            "b": Line([one.id for one in in_order(both)], whole=True),
            "c": Line(whole=True),
        }

    asyncio.run(scenario())


async def write_row(engine: Engine, write: Write) -> None:
    """Run a write in a separate transaction."""

    def plan() -> Plan[None]:
        yield [write]

    async with engine.transaction() as transaction:
        await transaction.run(plan())
        await transaction.commit()


async def line_of(engine: Engine, facts: Facts, stuck: str = "[]") -> list[int]:
    """Return the arrivals in the loaded part of the line of pool `a`."""

    def stuck_in(name: str) -> str:
        assert name == "a"
        return stuck

    async with engine.transaction() as transaction:
        await transaction.run(load.lines_load(facts, {"a": 100}, stuck_in))
    assert facts.lines["a"].whole
    return [facts.leases[one].arrival for one in facts.lines["a"].tickets]


def test_a_line_without_those_who_are_passed_over(engine: Engine) -> None:
    """Tickets for more units than the pool or the quota has are not loaded, unless forced."""

    async def scenario() -> None:
        tickets = [
            ticket(1, "a", owner="full"),
            ticket(2, "a", owner="full", forced=True),
            ticket(3, Need("a", 2), owner="half"),
            ticket(4, "a", owner="half"),
            ticket(5, Need("a", 3), owner="new"),
            ticket(6, Need("a", 4), owner="new"),
            ticket(7, Need("a", 9), owner="new", forced=True),
        ]
        held = [
            granted(ticket(8, Need("a", 3), owner="full")),
            granted(ticket(9, Need("a", 2), owner="half"), 1),
        ]
        await saved(engine, pool("a", 20, quota=3), *tickets, *held)
        assert await line_of(engine, await facts_of(engine, Keys(pools={"a"}))) == [2, 4, 5, 7]
        await saved(engine, pool("a", 20))
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert await line_of(engine, facts) == [1, 2, 3, 4, 5, 6, 7]
        await saved(engine, pool("a", 2))
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert await line_of(engine, facts) == [1, 2, 3, 4, 7]

    asyncio.run(scenario())


def test_a_line_without_misfits(engine: Engine) -> None:
    """A misfit is loaded again once the inventory that refused it has changed or is used less."""

    async def scenario() -> None:
        uuid = ProviderId(str(lease_id(77)))
        held = encode({"VCPU": {"total": 4, "used": 3, "updated_at": 50, "offered": 4}})
        provider = ("host", 1, None, uuid, AT, AT, None, None, held, uuid)
        await write_row(engine, Write("provider_insert", [provider]))
        consumer = str(lease_id(79))
        await write_row(
            engine, Write("consumer_insert", [(1, "p", "u", None, AT, AT, "{}", consumer)])
        )
        await saved(engine, pool("a"), *(ticket(n, "a") for n in range(1, 14)))
        cases = [
            (uuid, "VCPU", 50, 3, 4),
            (uuid, "VCPU", 50, 2, 4),
            (uuid, "VCPU", 50, 4, 4),
            (uuid, "VCPU", 49, 3, 4),
            (uuid, "DISK_GB", 50, 0, -1),
            (str(lease_id(78)), "VCPU", 50, 0, -1),
            (None, "VCPU", 0, 0, -1),
            (uuid, "VCPU", None, 0, -1),
            (uuid, "DISK_GB", None, 0, -1),
            (str(lease_id(78)), "VCPU", None, 0, -1),
            (consumer, "", None, 0, -1),
            (str(lease_id(80)), "", None, 0, -1),
            (uuid, "VCPU", 50, 3, 2),
        ]
        stuck = encode([(*case, [lease_id(n)]) for n, case in enumerate(cases, start=1)])
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert await line_of(engine, facts, stuck) == [3, 4, 5, 6, 8, 12, 13]
        many = encode([(uuid, "VCPU", 50, 3, 4, [lease_id(n) for n in range(2, 13)])])
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert await line_of(engine, facts, many) == [1, 13]

    asyncio.run(scenario())


def test_changes_of_the_batch_are_kept(engine: Engine) -> None:
    """A line is as stored, but does not overwrite tickets that the batch has changed."""

    async def scenario() -> None:
        tickets = [ticket(n, "a") for n in range(4)]
        await saved(engine, pool("a"), *tickets)
        facts = await facts_of(engine, Keys(leases={lease_id(0), lease_id(2)}))
        withdrawn = ended(tickets[0])
        heard = Changes(heard={lease_id(2): Instant(AT + 9)})
        facts.apply(Changes(leases={withdrawn.id: withdrawn}))
        facts.apply(heard)
        for upto in (1, 3, 9):
            await load_lines(engine, facts, {"a": upto})
        assert facts.lines["a"] == Line([one.id for one in tickets], whole=True)
        assert facts.leases[lease_id(0)] == withdrawn
        assert facts.leases[lease_id(1)] == tickets[1]
        assert facts.leases[lease_id(2)].heard_until == AT + 9

    asyncio.run(scenario())


def test_tickets_have_their_newest_deadline(engine: Engine) -> None:
    """The `heard_until` of a ticket in a line is that of its last poll."""

    async def scenario() -> None:
        await saved(engine, pool("a"), ticket(1, "a"))
        heard = Changes(heard={lease_id(1): Instant(AT + 77)})
        await run(engine, Keys(leases={lease_id(1)}), lambda _: heard)
        facts = await facts_of(engine, Keys(pools={"a"}))
        await load_lines(engine, facts, {"a": 1})
        assert facts.leases[lease_id(1)].heard_until == AT + 77
        assert facts.asked == {("owner", "key-1"): lease_id(1)}

    asyncio.run(scenario())


def test_gangs_that_are_not_counted(engine: Engine) -> None:
    """A wrong sum costs a round trip: the ticket's rows are loaded, the batch's changes stay."""

    async def scenario() -> None:
        b, c = pool("b", gangs=1, quota=2), pool("c", gangs=1)
        holder = granted(ticket(3, "b"))
        await saved(engine, pool("a"), b, c, slot("b", "s"), holder, ticket(1, "a", "b"))
        facts = await facts_of(engine, Keys(pools={"a"}))
        assert facts.pools.keys() == {"a"}
        changed_meanwhile = pool("a", limit=9)
        facts.apply(Changes(pools={"a": changed_meanwhile}))
        await load_lines(engine, facts, {"a": 1})
        assert facts.pools == {"a": changed_meanwhile, "b": b, "c": c}
        assert facts.slots["b"].keys() == {"s"}
        assert facts.held == {("b", "owner"): 1}
        await load_lines(engine, facts, {"b": 1})
        assert facts.lines["b"] == Line([lease_id(1)], whole=True)

    asyncio.run(scenario())


def test_a_ticket_for_a_pool_that_does_not_exist(engine: Engine) -> None:
    """A ticket with incomplete rows is never decided; the message says what to do."""

    async def scenario() -> None:
        await saved(engine, pool("a", gangs=1), ticket(1, "a", "b"))
        facts = await facts_of(engine, Keys(pools={"a"}))
        damaged = "needs pool b, which does not exist; `moorage db check`"
        with pytest.raises(RuntimeError, match=damaged):
            await load_lines(engine, facts, {"a": 1})

    asyncio.run(scenario())


def test_absent_clients_are_not_loaded(engine: Engine) -> None:
    """A pull ticket for which no request waits now; those of Boskos are polled, so they are."""

    async def scenario() -> None:
        until = {"heard_until": Instant(AT + 30 * SECOND), "patience": 30 * SECOND, "pull": True}
        tickets = [
            ticket(1, "a", **until),
            ticket(2, "a", **until, owner="boskos:x"),
            ticket(3, "a", **until, forced=True),
            ticket(4, "a", **(until | {"heard_until": Instant(AT + 31 * SECOND)})),
            ticket(5, "a"),
        ]
        await saved(engine, pool("a"), *tickets)
        for alive, absent in ((AT, 0), (AT + 1, 1), (AT + SECOND, 1), (AT + SECOND + 1, 2)):
            facts = await facts_of(engine, Keys(pools={"a"}))
            async with engine.transaction() as transaction:
                plan = load.lines_load(facts, {"a": 9}, alive=Instant(alive))
                await transaction.run(plan)
            gone = {lease_id(n) for n in (1, 4)[:absent]}
            assert {*facts.lines["a"].tickets} == {one.id for one in tickets} - gone

    asyncio.run(scenario())


def test_the_line_for_positions(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass over a line that computes positions sees all of it, in windows of any size."""

    async def scenario() -> None:
        tickets = [
            *shuffled_tickets(3, 30),
            ticket(99, Need("a", 2, "x", "y"), Need("a", 3), pull=True),
        ]
        await saved(engine, pool("a"), pool("b"), *tickets, granted(ticket(100, "a")))
        expected = [
            (one.id, sum(need.units for need in one.needs if need.pool == "a"), one.owner)
            for one in in_order(tickets)
        ]
        for size in (1, 7, 31, 50):
            monkeypatch.setattr(line_pass, "PAGE", size)
            found = await engine.read_aside(line_pass.pass_load("a"))
            assert [(one.id, one.units, one.owner) for one in found.waiters] == expected
        assert (await engine.read_aside(line_pass.pass_load("none"))).waiters == []

    asyncio.run(scenario())


def test_lines_leave_and_enter(engine: Engine) -> None:
    """Granted, withdrawn and new tickets leave or enter the line with the next batch."""

    async def scenario() -> None:
        tickets = [ticket(n, "a") for n in range(3)]
        await saved(engine, pool("a"), *tickets)

        async def line() -> list[LeaseId]:
            return [one.id for one in (await engine.read_aside(line_pass.pass_load("a"))).waiters]

        assert await line() == [lease_id(0), lease_id(1), lease_id(2)]
        await saved(engine, granted(tickets[0]), ended(tickets[1]))
        assert await line() == [lease_id(2)]
        await saved(engine, ticket(3, "a", priority=1), ended(granted(tickets[0])))
        assert await line() == [lease_id(3), lease_id(2)]

    asyncio.run(scenario())
