"""New RAID volumes of available hosts wait for their turn; root device hints need none."""

import asyncio
from typing import Any

import pytest

from moorage.integrations.metal3.rules import Rules
from tests.simulation.metal3.auditor import POOL
from tests.simulation.metal3.test_controls import HOSTS, Deployments
from tests.simulation.metal3.users import ALL
from tests.simulation.virtual.loop import passed
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import PAUSED
from tests.support.kubernetes_client import host

pytestmark = pytest.mark.usefixtures("quiet")

RAID = {"raid": {"softwareRAIDVolumes": [{"level": "1"}]}}
HINTS = {"rootDeviceHints": {"deviceName": "/dev/sdb"}}


class Settings(Deployments):
    """All hosts get other settings at once; `held`: the policy pauses them."""

    def __init__(self, seed: int, spec: dict[str, Any], *, held: bool = True) -> None:
        super().__init__(seed)
        self.rules, self.images, self.is_double = Rules.of_pool(POOL), 0, False
        self.spec, self.held = spec, held

    async def course(self) -> None:
        await self._begin()
        names = [f"host-{number}" for number in range(HOSTS)]
        for name in names:
            await self.users.api.create(ALL, host(name))
        await self._reached(names, "available")
        self.nodes.book.most_busy = 0
        if not self.held:
            self.cluster.double.admission.engine = None
        await asyncio.gather(
            *(self.users.api.merge(f"{ALL}/{name}", {"spec": self.spec}) for name in names)
        )
        while not all(self._is_applied(name) for name in names):
            assert self.now() < 6_000.0, "it never ends"
            await passed(1.0)
        self.overshoots = self.nodes.book.most_busy > self.limit

    @property
    def times_paused(self) -> int:
        """How often a host with these settings was paused."""
        changes = self.cluster.double.storage.after(0)
        return sum(
            self.spec.items() <= change.object.get("spec", {}).items()
            and PAUSED in hosts.annotations(change.object)
            for change in changes
            if change.key[1] == "baremetalhosts"
        )

    def _is_applied(self, name: str) -> bool:
        found = self.cluster.host(name)
        assert found is not None
        new = hosts.has_new_settings(found) or hosts.has_new_hints(found)
        return (
            hosts.state(found) == "available" and not new and PAUSED not in hosts.annotations(found)
        )


def test_new_settings_wait() -> None:
    """Never more hosts than the limit are prepared at once, all are, and none keeps our pause."""
    for seed in range(3):
        assert not Settings(seed, RAID).run().overshoots


def test_hints_need_no_turn() -> None:
    """Root device hints are taken over at once, by all hosts; none works for them, or is paused."""
    world = Settings(0, HINTS).run()
    assert world.nodes.book.most_busy == 0
    assert world.times_paused == 0


def test_without_the_pause_all_are_prepared_at_once() -> None:
    """The control: the same without the policy, which only counts them."""
    assert Settings(0, RAID, held=False).run().overshoots
