"""Audits beside boots and migrations: all that is planted is found, and nothing else."""

import asyncio
from collections import Counter
from collections.abc import Collection

import pytest

from moorage.integrations.nova.asking import Nova
from moorage.integrations.nova.audit import Audit, Report, Wishes
from moorage.integrations.nova.pacing import NoAnswerError
from moorage.integrations.nova.state_file import StateFile
from tests.simulation.nova.faults import FAULTS, Faults
from tests.simulation.nova.world import World, roots
from tests.simulation.virtual.loop import VirtualLoop, passed
from tests.support import nova_double
from tests.support.nova_double import nova_manage
from tests.support.seeds import SOAK, is_share, seeds

AT_ONCE = 8
SMALL, MEDIUM, LARGE = (200, 1), (600, 5), (3_000, 30)
"""Hosts, and how often each fault is planted. A large fleet takes 15 seconds of a processor."""

CONTROLLED = 600
"""Providers that the control looks at."""


def size_of(seed: int) -> tuple[int, int]:
    """Return how large a fleet is; in a soak all are large."""
    if SOAK or (seed % 25 == 0 and not is_share()):
        return LARGE
    return MEDIUM if seed % 5 == 0 and not is_share() else SMALL


class Run:
    """One audit in the world of a seed, with the control beside."""

    def __init__(self, seed: int) -> None:
        hosts, times = size_of(seed)
        self.world = World(seed, hosts, metal=20)
        self.faults = Faults(self.world)
        self.faults.plant(times)
        self.outage = seed % 4 == 3
        self.report = Report()
        self.control: set[str] = set()
        """The live servers and moves that nova-manage would have deleted."""

    def play(self) -> None:
        """Play it in virtual time."""
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(self._scene())

    async def _scene(self) -> None:
        world = self.world
        beside = [asyncio.create_task(world.users())]
        if self.outage:
            beside.append(asyncio.create_task(world.outage()))
        nova = Nova(world.send, AT_ONCE, world.random)
        audit = Audit(world.ledger, nova, world, Wishes(), lambda *_: None)
        control = asyncio.create_task(self._control())
        self.report = await audit.run(StateFile(None, ""))
        await control
        self.touched = self.heal()
        for one in beside:
            one.cancel()
        await asyncio.gather(*beside, return_exceptions=True)

    async def _control(self) -> None:
        world = self.world
        found = await nova_manage.audit(
            world.database,
            roots([*world.ledger.provided.values()][:CONTROLLED]),
            world.ledger.classes_on,
            lambda: passed(world.random.uniform(0.01, 0.1)),
        )
        self.control = {uuid for uuid, _ in found if self.is_alive(uuid)}

    def is_alive(self, uuid: str) -> bool:
        """Return whether a consumer is a server, or a move of one that is not over."""
        database = self.world.database
        if database.instance(uuid) is not None:
            return True
        move = database.migration(uuid)
        if move is None or move.status in nova_manage.OVER:
            return False
        return database.instance(move.instance) is not None

    def subjects(self, key: tuple[str, str, str]) -> set[str]:
        """Return what a fault is about, with the root of its provider."""
        _, consumer, provider = key
        provided = self.world.ledger.provided.get(provider)
        return {consumer, provider, "" if provided is None else provided.root} - {""}

    def heal(self) -> list[str]:
        """Release what the audit would heal, with generations; return what was alive of it."""
        touched, ledger = [], self.world.ledger
        self.healed: set[str] = set()
        for one in self.report.findings:
            held = ledger.held.get(one.consumer)
            if not one.release or held is None or held.generation != one.generation:
                continue
            if one.code in ("orphan", "doubled_resized") and self.is_alive(one.consumer):
                touched.append(one.consumer)
            if one.code == "doubled_resized" and self._runs_on(one.consumer, one.release):
                touched.append(one.consumer)
            if one.code in ("doubled_evacuated", "offloaded", "failed_build"):
                instance = self.world.database.instance(one.consumer)
                if instance is None or instance.node in {*map(self._name, one.release)}:
                    touched.append(one.consumer)
            self.healed.add(one.consumer)
            rest = {
                provider: classes
                for provider, classes in held.holdings.items()
                if provider not in one.release
            }
            ledger.write({one.consumer: rest})
        return touched

    def _runs_on(self, migration: str, providers: Collection[str]) -> bool:
        """Return whether the server of a migration is on one of these providers."""
        move = self.world.database.migration(migration)
        instance = None if move is None else self.world.database.instance(move.instance)
        return instance is not None and instance.node in {*map(self._name, providers)}

    def _name(self, provider: str) -> str:
        return self.world.ledger.provided[provider].name


@seeds(100, 5)
def test_all_is_found_and_nothing_is_invented(seeds: range) -> None:
    """Every planted fault is found, no lure and nothing that passes, and no live one is healed.

    While a cell is away, what cannot be known is unclear. nova-manage's order of reading would have
    deleted servers that are being built.
    """
    for seed in seeds:
        run = Run(seed)
        run.play()
        found = {one.key for one in run.report.findings}
        invented = found - run.faults.wanted
        assert not invented, (seed, [one for one in run.report.findings if one.key in invented])
        doubts = {one.subject for one in run.report.unclear}
        unfound = run.faults.wanted - found
        if not run.outage:
            assert not unfound, (seed, unfound, run.report.unclear)
            assert run.faults.heals <= run.healed, (seed, run.faults.heals - run.healed)
            assert run.faults.doubts <= doubts, (seed, run.faults.doubts - doubts)
        assert not run.faults.keeps & run.healed, (seed, run.faults.keeps & run.healed)
        assert all(doubts & run.subjects(key) for key in unfound), (seed, unfound)
        assert not run.touched, (seed, run.touched)
        assert run.control, seed
        assert run.world.ended > 100, seed


def test_a_cell_that_stays_away() -> None:
    """Nova does not list its compute nodes then: the audit ends without a finding."""
    run = Run(0)
    run.world.faults = 0.0
    run.world.database.cells[1].is_down = True
    with pytest.raises(NoAnswerError, match="500 for /os-hypervisors/detail"):
        run.play()
    assert run.report == Report()


def test_every_code_is_planted() -> None:
    """The planted faults have all codes."""
    from moorage.integrations.nova.findings import CODES

    world = World(0, 3, metal=2)
    faults = Faults(world)
    faults.plant(1)
    assert {code for code, _, _ in faults.wanted} == {*CODES}
    assert Counter(one.__name__ for one in FAULTS).most_common(1)[0][1] == 1
    assert nova_double.__doc__
