"""Never more nodes are busy than the limit allows, and nobody waits for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from moorage.wire.admission import PoolWanted
from tests.integrations.ironic.gate.world import (
    COMMAND,
    OPERATOR,
    SDK,
    UNKNOWN,
    VERSION,
    Between,
    World,
)
from tests.support.ironic_double.faults import Fault
from tests.support.ironic_double.server import IronicDouble

BUSY = ["deploying", "wait call-back"]


def play(
    folder: Path, double: IronicDouble, limit: int, act: Callable[[World], Awaitable[None]]
) -> None:
    """Run an act in a world."""

    async def run() -> None:
        async with asyncio.timeout(100.0), World(folder, double, limit) as world:
            await act(world)

    asyncio.run(run())


def test_the_limit_holds(tmp_path: Path) -> None:
    """Twelve requests at once: all are accepted, three nodes are busy at the most."""

    async def act(world: World) -> None:
        gate = await world.gate()
        asked = [world.ask(gate.url, f"node-{number}", "active") for number in range(1, 13)]
        assert [got.status for got in await asyncio.gather(*asked)] == [202] * 12
        await world.occupied(0)
        assert world.double.fleet.busiest == 3

    play(tmp_path, IronicDouble(12, scale=1_000), 3, act)


def test_counting_is_not_enough(tmp_path: Path) -> None:
    """Clients that count busy nodes before they start one exceed the limit."""

    async def act(world: World) -> None:
        async def start(number: int) -> None:
            url = world.double.url
            headers = {VERSION: "1.80"}
            async with world.session.get(
                f"{url}/v1/nodes?fields=provision_state", headers=headers
            ) as got:
                nodes = (await got.json())["nodes"]
            if sum(node["provision_state"] in BUSY for node in nodes) < 3:
                await world.ask(url, f"node-{number}", "active")

        await asyncio.gather(*(start(number) for number in range(1, 13)))
        assert world.double.fleet.busiest > 3

    play(tmp_path, IronicDouble(12), 3, act)


def test_what_is_busy_already_counts(tmp_path: Path) -> None:
    """A node that somebody has started past the gate takes its unit."""

    async def act(world: World) -> None:
        await world.ask(world.double.url, "node-1", "active")
        gate = await world.gate()
        assert [lease.labels["holder"] for lease in await world.leases()] == ["node-1"]
        got = await world.ask(gate.url, "node-2", "active", OPERATOR)
        assert got.status == 409
        await world.double.advance(400)
        await world.occupied(0)
        assert (await world.ask(gate.url, "node-2", "active", OPERATOR)).status == 202

    play(tmp_path, IronicDouble(2), 1, act)


def test_what_was_counted_over_the_limit_is_no_unit_for_new_work(tmp_path: Path) -> None:
    """A node that was adopted works no more, but has its unit still: its next work must wait."""

    async def act(world: World) -> None:
        gate, double = await world.gate(), world.double
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        double.fleet.find("node-2").state = "manageable"
        await world.ask(double.url, "node-2", "inspect")
        await world.occupied(2)
        double.faults.pending.append(Fault("list", wait=1e9))
        while double.faults.pending:
            await world.tick()
        await double.advance(100)
        assert (await world.ask(gate.url, "node-2", "provide", OPERATOR)).status == 409
        assert double.fleet.find("node-2").state == "manageable"

    play(tmp_path, IronicDouble(2), 1, act)


def test_clients_wait_each_in_its_way(tmp_path: Path) -> None:
    """What is held back is refused as each client needs it, in the form of Ironic's errors."""
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\npool = "deploy"\n[[client]]\nuser_agent = "*openstacksdk*"\n'
        'hold = 0.2\nretry_after = "fitting"\n'
        '[[client]]\nuser_agent = "*ironicclient"\nhold = 0.2\n'
    )

    async def act(world: World) -> None:
        gate = await world.gate("--rules", str(rules))
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        for agent, pause in ((SDK, "300"), (COMMAND, None), (OPERATOR, None)):
            got = await world.ask(gate.url, "node-2", "active", agent)
            assert (got.status, got.headers.get("Retry-After")) == (409, pause)
            assert got.headers["X-OpenStack-Ironic-API-Version"] == "1.80"
            assert got.headers["X-OpenStack-Ironic-API-Maximum-Version"] == "1.115"
            assert got.headers["Openstack-Request-Id"].startswith("req-")
            assert "node-2 waits for its turn: place 1 of deploy" in got.fault

    play(tmp_path, IronicDouble(2), 1, act)


def test_verbs(tmp_path: Path) -> None:
    """A tear-down and what starts nothing are never held back; the rest is."""

    async def act(world: World) -> None:
        gate = await world.gate()
        double = world.double
        double.fleet.find("node-2").state = "active"
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        for verb in ("rebuild", "rescue", "service"):
            assert (await world.ask(gate.url, "node-2", verb, OPERATOR)).status == 409, verb
        for verb in ("active", "provide", "abort", "nonsense"):
            assert (await world.ask(gate.url, "node-3", verb, OPERATOR)).status in (400, 409), verb
        assert (await world.ask(gate.url, "node-3", "manage")).status == 202
        assert (await world.ask(gate.url, "node-2", "deleted")).status == 202
        assert {lease.labels["holder"] for lease in await world.leases()} == {"node-1", "node-2"}
        assert (await world.ask(gate.url, "no-node", "active")).status == 404
        assert (await world.ask(gate.url, "node-3", "active", version="9.99")).status == 406

    play(tmp_path, IronicDouble(3), 1, act)


def test_names_of_one_verb(tmp_path: Path) -> None:
    """`deploy` is `active`: a rule for one holds for the other."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\npool = "deploy"\nverbs = ["active"]\n')

    async def act(world: World) -> None:
        gate = await world.gate("--rules", str(rules))
        assert (await world.ask(gate.url, "node-1", "deploy")).status == 202
        assert [lease.key.rpartition("/")[2] for lease in await world.leases()] == ["active"]
        assert (await world.ask(gate.url, "node-2", "deploy", OPERATOR)).status == 409

    play(tmp_path, IronicDouble(2), 1, act)


def test_two_gates_and_one_node(tmp_path: Path) -> None:
    """Requests of one node share its unit, through whichever gate; Ironic refuses the second."""

    async def act(world: World) -> None:
        first, second = await world.gate(), await world.gate()
        got = await asyncio.gather(
            *(world.ask(gate.url, "node-1", "active") for gate in (first, second) * 2)
        )
        assert sorted(one.status for one in got) == [202, 409, 409, 409]
        assert len(await world.leases()) == 1
        await world.double.advance(400)
        await world.occupied(0)

    play(tmp_path, IronicDouble(2), 2, act)


@pytest.mark.parametrize("agent", [UNKNOWN, SDK])
def test_a_client_that_leaves_while_it_waits(tmp_path: Path, agent: str) -> None:
    """Its node is never started, and its turn goes to the next one."""

    async def act(world: World) -> None:
        gate = await world.gate()
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        leaving = asyncio.create_task(world.ask(gate.url, "node-2", "active", agent))
        await world.waiting(1)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        last = asyncio.create_task(world.ask(gate.url, "node-3", "active"))
        await world.waiting(2)
        await world.double.advance(400)
        assert (await last).status == 202
        assert world.double.fleet.find("node-2").state == "available"
        assert world.double.fleet.busiest == 1

    play(tmp_path, IronicDouble(3), 1, act)


def test_a_client_that_leaves_while_its_unit_is_being_granted(tmp_path: Path) -> None:
    """Moorage carries out the request after the client has left: its unit is free soon.

    Without this it would be free after ten seconds.
    """

    class Slow(Between):
        left = False

        async def _handle(self, request: web.Request) -> web.Response:
            if request.method != "POST" or request.path != "/v1/leases" or self.left:
                answer = await super()._handle(request)
                if self.left and len(request.query.get("key_prefix", "")) > len("ironic/"):
                    looked.set()  # the gate looks for this node alone
                return answer
            body = await request.read()
            entered.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.left = True
                await looked.wait()
                headers = {"X-Auth-Token": world_of[0].token, "Content-Type": "application/json"}
                url = world_of[0].moorage.url + request.raw_path
                async with world_of[0].session.post(url, data=body, headers=headers) as got:
                    assert got.status == 201
                granted.set()
                raise
            raise AssertionError

    entered, looked, granted = asyncio.Event(), asyncio.Event(), asyncio.Event()
    world_of: list[World] = []

    async def act(world: World) -> None:
        world_of.append(world)
        async with Slow(world.moorage.url) as slow:
            gate = await world.gate(moorage=slow.url)
            leaving = asyncio.create_task(world.ask(gate.url, "node-1", "active"))
            await entered.wait()
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            await granted.wait()
            async with asyncio.timeout(6.0):
                await world.occupied(0)

    play(tmp_path, IronicDouble(1), 1, act)


def test_a_client_that_leaves_after_its_request_was_forwarded(tmp_path: Path) -> None:
    """Its node works, and has its unit until the end."""

    async def act(world: World) -> None:
        gate = await world.gate()
        world.double.faults.pending.append(Fault("provision", wait=5.0))
        leaving = asyncio.create_task(world.ask(gate.url, "node-1", "active"))
        await world.double.received("provision")
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        assert (await world.ask(gate.url, "node-2", "active", OPERATOR)).status == 409
        await world.double.advance(10)
        await world.tick()
        assert (await world.ask(gate.url, "node-2", "active", OPERATOR)).status == 409
        await world.double.advance(400)
        await world.occupied(0)
        assert (await world.ask(gate.url, "node-2", "active", OPERATOR)).status == 202
        assert world.double.fleet.busiest == 1

    play(tmp_path, IronicDouble(2), 1, act)


def test_a_refusal_of_ironic_frees_the_unit(tmp_path: Path) -> None:
    """A locked node has no unit, but keeps its place in line."""

    async def act(world: World) -> None:
        gate = await world.gate()
        world.double.fleet.lock("node-1")
        got = await world.ask(gate.url, "node-1", "active")
        assert got.status == 409
        assert "is locked by host" in got.fault
        assert await world.leases() == []
        assert [ticket.labels["holder"] for ticket in await world.leases("waiting")] == ["node-1"]
        assert (await world.ask(gate.url, "node-2", "active")).status == 202

    play(tmp_path, IronicDouble(2), 1, act)


def test_moorage_away(tmp_path: Path) -> None:
    """Without Moorage starts are refused and everything else passes; later both work."""

    async def act(world: World) -> None:
        gate = await world.gate()
        world.moorage.process.terminate()
        await asyncio.to_thread(world.moorage.process.wait)
        got = await world.ask(gate.url, "node-1", "active")
        assert (got.status, got.fault) == (409, "Moorage cannot be reached")
        async with world.session.get(f"{gate.url}/v1/nodes") as answer:
            assert answer.status == 200
        assert world.double.fleet.busiest == 0

    play(tmp_path, IronicDouble(1), 1, act)


def test_ironic_away_for_ten_minutes(tmp_path: Path) -> None:
    """Nothing is started, nothing is freed, and afterwards everything goes on."""

    async def act(world: World) -> None:
        gate = await world.gate()
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        world.double.outage(600)
        assert (await world.ask(gate.url, "node-2", "active")).status == 503
        await world.double.advance(599)
        await world.tick()
        assert len(await world.leases()) == 1
        assert (await world.ask(gate.url, "node-2", "active")).status == 503
        await world.double.advance(2)
        await world.occupied(0)
        assert (await world.ask(gate.url, "node-2", "active")).status == 202

    play(tmp_path, IronicDouble(2), 1, act)


def test_tokens(tmp_path: Path) -> None:
    """The gate looks at nodes with its own token, and forwards requests with that of the client."""
    token = tmp_path / "token"
    token.write_text("secret\n")

    async def act(world: World) -> None:
        gate = await world.gate("--ironic-token-file", str(token))
        got = await world.ask(gate.url, "node-1", "active")
        assert got.status == 401
        assert await world.leases("waiting") == await world.leases() == []
        world.session.headers["X-Auth-Token"] = "secret"
        assert (await world.ask(gate.url, "node-1", "active")).status == 202

    play(tmp_path, IronicDouble(1, token="secret"), 1, act)


def test_units_of_another_verb_are_not_enough(tmp_path: Path) -> None:
    """A node that has a unit for one verb waits for that of another, if a rule names another pool.

    This also holds if its ticket has another patience than before.
    """
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\npool = "deploy/inspect"\nverbs = ["inspect"]\n'
        '[[rule]]\npool = "deploy"\nverbs = ["active"]\n'
        '[[client]]\nuser_agent = "patient"\nhold = 0.2\nretry_after = 300\n'
    )

    async def act(world: World) -> None:
        world.admission.pool_put("deploy/inspect", PoolWanted(limit=1, expire="keep"))
        gate = await world.gate("--rules", str(rules))
        assert (await world.ask(gate.url, "node-1", "active")).status == 202
        node = world.double.fleet.find("node-2")
        assert (await world.ask(gate.url, "node-2", "active", OPERATOR)).status == 409
        node.state = "manageable"
        assert (await world.ask(gate.url, "node-2", "inspect")).status == 202
        # Its work has just ended, and nobody can look.
        world.double.faults.pending.append(Fault("list", times=10_000, work="never", answer=503))
        node.state = "available"
        got = await world.ask(gate.url, "node-2", "active", "patient")
        assert (got.status, "its earlier work must end first" in got.fault) == (409, True)
        assert world.double.fleet.find("node-2").state == "available"

    play(tmp_path, IronicDouble(2), 1, act)


def test_what_cannot_be_counted_blocks_its_pool(tmp_path: Path) -> None:
    """A busy node needs a pool that does not exist: it is counted in its other pool, from which
    others start. Once the pool is made, it is counted there, too, and has its only unit.
    """
    rules = tmp_path / "rules.toml"
    rules.write_text(
        '[[rule]]\npool = "deploy"\n[[rule]]\npool = "deploy/rack-{properties.rack}"\n'
    )

    async def act(world: World) -> None:
        world.admission.pool_put("deploy/rack-1", PoolWanted(limit=1, expire="keep"))
        for number, rack in ((1, 9), (2, 1), (3, 9)):
            members = world.double.fleet.find(f"node-{number}").members
            members["properties"] = {"rack": str(rack)}
        await world.ask(world.double.url, "node-1", "active")
        gate = await world.gate("--rules", str(rules))
        await world.occupied(1)
        assert (await world.ask(gate.url, "node-2", "active")).status == 202
        world.admission.pool_put("deploy/rack-9", PoolWanted(limit=1, expire="keep"))
        await world.occupied(3)
        got = await world.ask(gate.url, "node-3", "active", OPERATOR)
        assert got.status == 409
        assert "1 of 1 unit of deploy/rack-9 is held by node-1" in got.fault
        await world.double.advance(400)
        await world.occupied(0)
        assert (await world.ask(gate.url, "node-3", "active")).status == 202
        assert world.double.fleet.busiest == 2

    play(tmp_path, IronicDouble(3), 3, act)
