"""Two Ironics share a pool: the limit holds over both, and none releases the units of the other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from moorage.integrations.ironic.reconcile import NODES, Picture, Reconciler
from moorage.integrations.ironic.wishes import WANT
from moorage.integrations.provisioning.known_hosts import KnownHosts
from moorage.integrations.provisioning.pass_metrics import PassMetrics
from tests.integrations.ironic.world import DEPLOY_SECONDS, World, played, until
from tests.support.ironic_double.server import IronicDouble


@asynccontextmanager
async def other_ironic(nodes: int) -> AsyncIterator[IronicDouble]:
    """Yield another Ironic, with nodes of its own that wish to be deployed."""
    async with IronicDouble() as double:
        for number in range(1, nodes + 1):
            members = {
                "uuid": f"11111111-0000-4000-8000-{number:012}",
                "name": f"other-{number}",
                "driver": "fake-hardware",
                "extra": {WANT: {"target": "active"}},
            }
            double.fleet.add(members, "available")
        yield double


class Both:
    """Two Ironics, and how many of their nodes work at once."""

    def __init__(self, *doubles: IronicDouble) -> None:
        self._doubles = doubles

    def has_started(self, count: int) -> bool:
        """Return whether this many deployments have begun."""
        history = [change for double in self._doubles for change in double.busy_history]
        return sum(state == "deploying" for _, _, state in history) == count

    @property
    def working(self) -> int:
        """How many nodes work now."""
        return sum(len(double.fleet.busy) for double in self._doubles)

    async def advance(self) -> None:
        """Let time pass until each deployment that has begun is over."""
        for double in self._doubles:
            await double.advance(DEPLOY_SECONDS)


@pytest.mark.parametrize("names", [(None, None), ("one", "two"), ("one", None), (None, "two")])
def test_one_limit(names: tuple[str | None, str | None], tmp_path: Path) -> None:
    """Whether they have names or not: each node is deployed, and three at most work at once."""

    @played(4, 3)
    async def play(it: World) -> None:
        it.wish(1, 2, 3, 4)
        async with (
            other_ironic(4) as double,
            it.governor(name=names[0]) as one,
            it.governor(double=double, name=names[1]) as two,
        ):
            both = Both(it.double, double)

            async def passes() -> None:
                await one.tick()
                await two.tick()
                assert both.working <= 3

            for wave in (3, 6, 8):
                await until(partial(both.has_started, wave), passes)
                for _ in range(3):
                    await passes()
                    assert len(it.leases()) == both.working
                await both.advance()
            await until(lambda: not it.leases(), passes)
            assert both.has_started(8)

    play(tmp_path)


async def passed(
    it: World, name: str | None, double: IronicDouble | None = None
) -> tuple[int, dict[str, float]]:
    """Make one pass of a new process; return how many leases it releases, and its metrics."""
    async with it.host_leases(double, name) as (host_leases, nodes):
        picture = await Reconciler(host_leases, nodes, it.rules).run_once()
    metrics = PassMetrics(NODES, Picture())
    metrics.passed(picture)
    samples = [sample for metric in metrics.collect() for sample in metric.samples]
    foreign = [one for one in samples if one.name == "moorage_ironic_foreign_units"]
    return picture.released, {one.labels["ironic"]: one.value for one in foreign}


async def busy_then_deleted(it: World, name: str | None) -> None:
    """Let a pass count a busy node, which is deleted while no process looks."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    await passed(it, name)
    await it.double.advance(DEPLOY_SECONDS)
    del it.double.fleet.nodes[it.node(1).uuid]


@played(2, 1)
async def test_a_deleted_node_of_a_named_ironic(it: World) -> None:
    """Its next process releases the unit; those of other Ironics show it, and leave it."""
    await busy_then_deleted(it, "one")
    for name in (None, "two"):
        assert await passed(it, name) == (0, {"one": 1})
    assert await passed(it, "one") == (1, {})


def test_a_deleted_node_of_an_ironic_without_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody can tell whose it was: the unit stays, and metrics and the log show it."""

    @played(2, 1)
    async def play(it: World) -> None:
        await busy_then_deleted(it, None)
        for name in (None, "one"):
            caplog.clear()
            assert await passed(it, name) == (0, {"": 1})
            assert f"moorage lease revoke {it.leases()[0].id}" in caplog.text

    play(tmp_path)


@played(2, 1)
async def test_a_node_that_is_deleted_while_a_process_looks(it: World) -> None:
    """It has seen the node, so it needs no name to believe that it was deleted."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    async with it.host_leases() as (host_leases, nodes):
        reconciler = Reconciler(host_leases, nodes, it.rules)
        assert len((await reconciler.run_once()).adopted) == 1
        del it.double.fleet.nodes[it.node(1).uuid]
        assert (await reconciler.run_once()).released == 1


@played(2, 1)
async def test_tickets_stay(it: World) -> None:
    """The governor of one Ironic withdraws no tickets of the other, but those of its own nodes."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    it.wish(2)
    async with other_ironic(0) as double, it.governor() as one, it.governor(double=double) as two:
        await until(lambda: bool(it.leases("waiting")), one.tick)
        before = it.leases("waiting")[0].id
        await two.tick()
        assert [ticket.id for ticket in it.leases("waiting")] == [before]
        del it.extra(2)[WANT]
        await two.tick()
        assert it.leases("waiting")
        await one.tick()
        assert not it.leases("waiting")


@played(2, 1)
async def test_control(it: World) -> None:
    """A process that believes every 404 releases the unit of another Ironic's busy node."""
    it.double.fleet.ask(it.node(1), "deploy", [])
    async with other_ironic(1) as double:
        await passed(it, None)
        assert await passed(it, None, double) == (0, {"": 1})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(KnownHosts, "has", lambda *_: True)
            assert await passed(it, None, double) == (1, {})
        assert it.double.fleet.busy
