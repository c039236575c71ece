"""Random reports, takeovers and writes of the Placement API at the same time, at two services.

Nobody can foretell who comes first. But nothing fails for another reason than a rule, both services
end with the same ledger, their checks find nothing, and a report that is accepted is met.
"""

import asyncio
from typing import Any

import pytest

from moorage.core.errors import Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.reported import Mode, Node, NodeAnswer
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import Join, Sender
from moorage.service.ledger import allocation_cases as allocations
from moorage.service.ledger import provider_cases as providers
from moorage.service.ledger import vocabulary_cases as vocabulary
from tests.service.fleet.reporters.node_model import NOVA
from tests.service.fleet.reporters.reporting import TTL, instance
from tests.service.fleet.reporters.test_explore import (
    AGGREGATES,
    CUSTOM_TRAITS,
    GROUPS,
    NAMES,
    NODES,
    Explorer,
    NovaPair,
)
from tests.service.running import TESTER, claim, consumer_id, provider_id

ROUNDS = 25
AT_ONCE = 8
SEEDS = 3
FAULTS = frozenset({"unavailable", "overloaded"})
"""What no rule says."""


class Together(Explorer):
    """Plays rounds of steps at the same time."""

    async def run(self) -> None:
        """Play all rounds."""
        await self.prepare()
        for number in range(ROUNDS):
            await asyncio.gather(*(self.step() for _ in range(AT_ONCE)))
            if number % 5 == 0:
                await self.is_met()
            if number == ROUNDS // 2:
                await self.pair.check()
                await self.pair.end()
                await self.pair.start()
        await self.pair.check()

    async def step(self) -> None:
        """Report, join or write; what a rule refuses is no matter."""
        try:
            kind = self.random.random()
            if kind < 0.4:
                picked = self.random.sample(range(NODES), self.random.randrange(1, NODES + 1))
                mode = Mode.OWNER if self.random.random() < 0.75 else Mode.BESIDE_NOVA
                await self.sends(
                    self.random.choice(GROUPS), mode, [self.node(number) for number in picked]
                )
            elif kind < 0.45:
                await self.joins(self.random.choice(GROUPS), renew=self.random.random() < 0.3)
            else:
                await self.service().transactor.submit(self.write())
        except Error as error:
            assert error.code not in FAULTS, error

    async def joins(self, group: str, *, renew: bool) -> None:
        """Stay in a group, perhaps with a new token."""
        reporters = self.service().reporters
        found = await reporters._transactor.submit(
            Join(group, "m", instance(1), 60 * TTL, renew=renew)
        )
        self.tokens[group] = found.member.token

    async def sends(self, group: str, mode: Mode, sent: list[Node]) -> list[NodeAnswer]:
        """Send a report to some service."""
        service = self.service()
        sender = Sender(group, "m", self.tokens[group], mode)
        answers = await service.reporters.report(
            sender, ReportedNodes(sent), Pieces(service.turns), TESTER
        )
        codes = {answer.refusal.code for answer in answers if answer.refusal is not None}
        assert not codes & FAULTS
        return answers

    async def is_met(self) -> None:
        """While nothing else happens, what is accepted is unchanged when it is sent again."""
        for group in GROUPS:
            await self.joins(group, renew=False)
            sent = [self.node(number) for number in range(NODES)]
            first = await self.sends(group, Mode.OWNER, sent)
            again = await self.sends(group, Mode.OWNER, sent)
            for one, other in zip(first, again, strict=True):
                assert one.refusal or other.outcome == "unchanged"
                assert one.refusal or other.generation == one.generation

    def write(self) -> Any:
        """Return some write of the Placement API."""
        number = self.random.randrange(NODES)
        uuid, below = provider_id(number), provider_id(100 + number)
        generation = self._known_generation(uuid)
        some, name = self.some, self.random.choice(NAMES)
        offer = {name: self.spec() for name in sorted(some(("VCPU", "DISK_GB")))}
        traits = some((*CUSTOM_TRAITS, "STORAGE_DISK_SSD", NOVA))
        return self.random.choice(
            (
                providers.InventoriesReplace(uuid, generation, offer),
                providers.TraitsReplace(uuid, generation, traits),
                providers.AggregatesReplace(uuid, some(AGGREGATES), generation),
                claim(number, uuid, VCPU=1),
                allocations.AllocationsDelete(consumer_id(number)),
                providers.ProviderDelete(uuid),
                providers.ProviderCreate(uuid, name),
                providers.ProviderUpdate(uuid, name),
                providers.ProviderCreate(below, f"child-{number}", uuid),
                providers.ProviderDelete(below),
                vocabulary.TraitDelete(self.random.choice(CUSTOM_TRAITS)),
            )
        )

    def _known_generation(self, uuid: ProviderId) -> int:
        record = self.service().index.catalog.record(uuid)
        return 0 if record is None else record.provider.generation


@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_at_the_same_time(url: str, seed: int) -> None:
    """Two services end with the same ledger, in which nothing is wrong."""

    async def run() -> None:
        pair = NovaPair(url)
        await pair.start()
        try:
            await Together(pair, seed).run()
        finally:
            await pair.end()

    asyncio.run(run())
