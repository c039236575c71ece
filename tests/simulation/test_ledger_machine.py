"""Sends random commands through the real service, on a real file, and to a naive model.

After every step the answers, the rows, the index and the change rows must agree. `MOORAGE_SOAK=1`
runs far more of them.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import DataObject

from moorage.core.errors import Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger.inventory import InventorySpec, InventoryState
from moorage.core.ledger.model import CustomName, Inventory, Provider
from moorage.core.ledger.traits_aggregates import TagState
from moorage.service.app import Service
from moorage.service.ledger import provider_cases
from moorage.store.api import Engine
from moorage.store.open import open_engine
from tests.service.running import ManualClock, fatal
from tests.simulation.commands import CLASSES, CONSUMERS, FOCUSES, PROVIDERS, TRAITS, Source
from tests.simulation.follower import Follower
from tests.simulation.model import Model
from tests.support import cluster
from tests.support.seeds import SOAK, portion

pytestmark = pytest.mark.played_in_part

GROUP_MAX = 12


def spec_of(held: Inventory) -> InventorySpec:
    """Return the part of an inventory that a caller chooses."""
    return InventorySpec(
        held.total,
        held.reserved,
        held.min_unit,
        held.max_unit,
        held.step_size,
        held.allocation_ratio,
    )


def plain(answer: Any) -> Any:
    """Return an answer of the service in the model's words."""
    match answer:
        case Provider():
            return (answer.name, answer.generation, answer.parent, answer.root)
        case InventoryState():
            offers = {n: (spec_of(held), held.used) for n, held in answer.inventories.items()}
            return {"generation": answer.generation, "inventories": offers}
        case TagState():
            return {
                "generation": answer.generation,
                "traits": answer.tags.traits,
                "aggregates": answer.tags.aggregates,
            }
        case CustomName():
            return answer.name
        case (CustomName(), bool()):
            return (answer[0].name, answer[1])
    return answer


class LedgerMachine(RuleBasedStateMachine):
    """The service and the model, side by side."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Hypothesis does not type it
        self.loop = asyncio.new_event_loop()
        self.engine = self._database()
        self.clock = ManualClock(1_000_000)
        self.model = Model(CLASSES, TRAITS)
        self.follower = Follower(CLASSES, TRAITS)
        self.seen: dict[tuple[str, int], int] = {}
        self.service = self.loop.run_until_complete(self._open())

    def _database(self) -> Callable[[], Engine]:
        """Create an empty ledger; return a function that opens it."""
        directory = tempfile.mkdtemp(prefix="moorage-machine-")
        self.remove = lambda: shutil.rmtree(directory)
        # Without syncs: this tests decisions, not power cuts.
        return lambda: open_engine(f"sqlite:///{directory}/ledger", synchronous="OFF")

    async def _open(self) -> Service:
        return await Service.start(self.engine(), self.clock, CLASSES, TRAITS, on_fatal=fatal)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.service.stop())
        self.loop.close()
        self.remove()

    @initialize(data=st.data())
    def some_providers(self, data: DataObject) -> None:
        """Start with something to allocate, so that few steps come far."""
        for n, uuid in enumerate(PROVIDERS[: data.draw(st.integers(0, 4))]):
            self._compare(
                [provider_cases.ProviderCreate(uuid, f"name-{n}", PROVIDERS[0] if n == 1 else None)]
            )
            self._compare([provider_cases.InventoryCreate(uuid, "VCPU", InventorySpec(4))])

    @rule(data=st.data(), focus=st.sampled_from(FOCUSES))
    def one(self, data: DataObject, focus: str) -> None:
        """A single command."""
        self._compare([Source(data, self.model, focus).command()])

    @rule(data=st.data(), focus=st.sampled_from(FOCUSES), count=st.integers(2, GROUP_MAX))
    def many(self, data: DataObject, focus: str, count: int) -> None:
        """Commands at the same time: they share batches and are decided in the order they came."""
        source = Source(data, self.model, focus)
        commands, expected = [], []
        for _ in range(count):
            commands.append(source.command())
            expected.append(self.model.run(commands[-1]))
        self._check(commands, expected)

    @rule(microseconds=st.integers(-5_000, 5_000), restart=st.sampled_from([False] * 5 + [True]))
    def time_passes(self, microseconds: int, restart: bool) -> None:
        """The clock moves, or jumps back; after a restart the index is loaded from the rows."""
        self.clock.at += microseconds
        if restart:
            self.loop.run_until_complete(self.service.stop())
            self.service = self.loop.run_until_complete(self._open())

    def _compare(self, commands: list[Any]) -> None:
        self._check(commands, [self.model.run(command) for command in commands])

    def _check(self, commands: list[Any], expected: list[tuple[str, Any]]) -> None:
        outcomes = self.loop.run_until_complete(self._submit(commands))
        for command, (said, answer), (say, wanted) in zip(
            commands, outcomes, expected, strict=True
        ):
            if isinstance(wanted, dict) and isinstance(answer, dict):
                # An answer shows a part of the provider's state.
                assert (said, answer) == (say, {key: wanted[key] for key in answer}), command
            else:
                assert (said, answer) == (say, wanted), command

    async def _submit(self, commands: list[Any]) -> list[tuple[str, Any]]:
        answers = await asyncio.gather(
            *(self.service.transactor.submit(command) for command in commands),
            return_exceptions=True,
        )
        outcomes: list[tuple[str, Any]] = []
        for answer in answers:
            if isinstance(answer, Error):
                outcomes.append(("refused", answer.code))
            elif isinstance(answer, BaseException):
                raise answer
            else:
                outcomes.append(("done", plain(answer)))
        return outcomes

    @invariant()
    def all_is_well(self) -> None:
        """The service's own check finds nothing; index, rows, change rows and model agree."""
        assert self.loop.run_until_complete(self.service.operations.check()) == []
        self.loop.run_until_complete(self.follower.catch_up(self.service.engine))
        assert self.follower.revision == self.service.index.revision
        assert self.follower.catalog.differences(self.service.index.catalog) == []
        self._index_is_the_model()
        self.loop.run_until_complete(self._consumers_are_the_model())

    def _index_is_the_model(self) -> None:
        catalog = self.service.index.catalog
        assert set(catalog.places) == set(self.model.machines)
        assert set(catalog.classes) == self.model.classes
        assert set(catalog.traits) == self.model.traits
        for uuid, machine in self.model.machines.items():
            record = catalog.record(ProviderId(uuid))
            assert record is not None
            assert plain(record.provider) == (
                machine.name,
                machine.generation,
                machine.parent,
                self.model.root(uuid),
            )
            shown = {
                "generation": record.provider.generation,
                "inventories": {n: (spec_of(i), i.used) for n, i in record.inventories.items()},
                "traits": record.tags.traits,
                "aggregates": record.tags.aggregates,
            }
            assert shown == self.model.state(uuid)
            self._generation_rises(uuid, machine.life, record.provider.generation)

    async def _consumers_are_the_model(self) -> None:
        for uuid in CONSUMERS:
            stored = await self.service.reads.consumer(ConsumerId(uuid))
            assert stored == self.follower.consumers.get(uuid)
            holder = self.model.holders.get(uuid)
            if stored is None or holder is None:
                assert stored is None and holder is None
                continue
            assert (
                stored.generation,
                stored.project_id,
                stored.user_id,
                stored.consumer_type,
                stored.allocations,
            ) == (holder.generation, holder.project, holder.user, holder.kind, holder.holds)
            self._generation_rises(uuid, holder.life, stored.generation)

    def _generation_rises(self, uuid: str, life: int, generation: int) -> None:
        assert generation >= self.seen.get((uuid, life), 0)
        self.seen[uuid, life] = generation


class PostgresLedgerMachine(LedgerMachine):
    """The same on PostgreSQL, with two services that take turns."""

    def __init__(self) -> None:
        super().__init__()
        self.other = self.loop.run_until_complete(self._open())

    def teardown(self) -> None:
        self.loop.run_until_complete(self.other.stop())
        super().teardown()

    async def _submit(self, commands: list[Any]) -> list[tuple[str, Any]]:
        self.service, self.other = self.other, self.service
        return await super()._submit(commands)

    def _database(self) -> Callable[[], Engine]:
        url = cluster.fresh()
        self.remove = lambda: cluster.shared().drop(cluster.database_of(url))
        return lambda: open_engine(url)


def bounds(examples: int) -> settings:
    """Return how far to go: ten times as far when soaking. Hypothesis remembers all of it."""
    return settings(
        max_examples=portion(5 * examples if SOAK else examples),
        stateful_step_count=60 if SOAK else 30,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


LedgerMachine.TestCase.settings = bounds(240)
PostgresLedgerMachine.TestCase.settings = bounds(40)
TestLedger = LedgerMachine.TestCase
TestLedger.__doc__ = """No sequence of commands makes the service and the naive model differ."""
TestLedgerOnPostgres = PostgresLedgerMachine.TestCase
TestLedgerOnPostgres.__doc__ = """Nor does any on PostgreSQL."""
