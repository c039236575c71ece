"""Hosts that can never finish: the operator tries again for ever, and they must not keep units."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from moorage.core.admission.requests import Proof
from moorage.integrations.metal3.resting import STILL_SECONDS
from moorage.integrations.metal3.rules import Rules
from moorage.service.admission.lease_cases import LeaseRelease
from tests.simulation.metal3.auditor import POOL
from tests.simulation.metal3.cluster import NAMESPACE, Operating
from tests.simulation.metal3.processes import Governing
from tests.simulation.metal3.simulation import Metal3Simulation
from tests.simulation.metal3.users import ALL
from tests.simulation.provisioning.moorage import OWNER
from tests.simulation.virtual.loop import passed
from tests.support.bmo_double import hosts
from tests.support.bmo_double.book import BUSY
from tests.support.bmo_double.hosts import PAUSED
from tests.support.bmo_double.operator import Settings
from tests.support.kubernetes_client import Object, host

pytestmark = pytest.mark.usefixtures("quiet")

LIMIT = 3
DEAD, GOOD = [f"dead-{number}" for number in range(3)], [f"good-{number}" for number in range(5)]
IMAGE = "http://image"
QUARTER = 900.0
HALF_HOUR = 1_800.0


class DeadHosts(Metal3Simulation):
    """Three hosts whose work always fails in some state, and five good ones that come later.

    `settings`: of the operator. `skew`: by which the governor's clock differs from its clock.
    """

    def __init__(self, state: str, *, seed: int = 1, retries: int = 5, skew: float = 0.0) -> None:
        super().__init__(seed)
        self.storm = self.deadly = 0.0
        self.faulty, self.interval, self.limit, self.images = False, 2.0, LIMIT, 0
        self.is_double, self.rules = False, Rules.of_pool(POOL)
        self.state, self.retries, self.skew = state, retries, skew
        self.idle_looks = self.looks = 0

    def _cast(self) -> None:
        self.nodes.broken = {f"{NAMESPACE}~{name}": {self.state} for name in DEAD}
        operating = Operating(self, Settings(seed=self.seed, retries=self.retries))
        self.programs = [operating, Governing(self, "governor", mirrored=True, skew=self.skew)]
        for program in self.programs:
            program.start()

    async def course(self) -> None:
        await self._begin()
        await self._dead()
        for name in GOOD:
            await self.users.api.create(ALL, host(name, image=IMAGE))
        began = self.now()
        while not all(self._is_provisioned(name) for name in GOOD):
            assert self.now() - began < QUARTER, f"good hosts do not start: {self._left()}"
            await passed(1.0)
            self._look()

    async def _dead(self) -> None:
        """Let hosts fail in the state of this world, each at least once."""
        for name in DEAD:
            wanted = host(name, image=IMAGE)
            if self.state == "cleaning":
                wanted["spec"]["raid"] = {"softwareRAIDVolumes": [{"level": "1"}]}
            await self.users.api.create(ALL, wanted)
        if self.state == "deleting":
            await self.reached(lambda: all(map(self._is_provisioned, DEAD)))
            for name in DEAD:
                await self.users.api.merge(f"{ALL}/{name}", {"spec": {"image": None}})
        failed: set[str] = set()

        def have_failed() -> bool:
            failed.update(name for name in DEAD if self._status(name).get("errorType"))
            return len(failed) == len(DEAD)

        await self.reached(have_failed)

    async def reached(self, holds: Callable[[], bool], seconds: float = 3_600.0) -> None:
        """Return when something holds."""
        end = self.now() + seconds
        while not holds():
            assert self.now() < end, "it never holds"
            await passed(1.0)
            self._look()

    def _look(self) -> None:
        """Count how often no dead host works, and has a unit nevertheless."""
        for name in DEAD:
            found = self.cluster.host(name)
            if found is None or not self.auditor.leases_of(str(found["metadata"]["uid"])):
                continue
            self.looks += 1
            self.idle_looks += self.nodes.book.states.get(f"{NAMESPACE}~{name}") not in BUSY

    def _status(self, name: str) -> Mapping[str, Any]:
        found: Object = self.cluster.host(name) or {}
        return found.get("status") or {}

    def _is_provisioned(self, name: str) -> bool:
        found = self.cluster.host(name) or {"metadata": {}}
        return hosts.state(found) == "provisioned" and PAUSED not in hosts.annotations(found)


@pytest.mark.parametrize("state", ["verifying", "inspecting", "cleaning", "deploying", "deleting"])
@pytest.mark.parametrize("retries", [0, 5])
def test_good_hosts_start_while_others_back_off(state: str, retries: int) -> None:
    """As many hosts as the limit fail for ever, in whatever they do, also with an operator that
    never gives up: those that can start are provisioned within a quarter of an hour, and never more
    than the limit work.
    """
    for seed in range(2):
        world = DeadHosts(state, seed=seed, retries=retries).run()
        tears_down = state == "deleting"  # nothing holds a removal back
        assert world.nodes.book.most_busy <= LIMIT + len(DEAD) * tears_down


class Mended(DeadHosts):
    """... they fail for half an hour, in which the governor is restarted, and then are mended."""

    async def course(self) -> None:
        await super().course()
        tries = len(self.nodes.book.lines)
        self.idle_looks = self.looks = 0
        self.interval = 10.0
        for _ in range(4):
            await self._a_while(HALF_HOUR / 4)
            self.killed(self.programs[1].process)
        self.tries = len(self.nodes.book.lines) - tries
        self.looked = self.looks
        self.nodes.broken.clear()
        await self.reached(lambda: all(map(self._is_provisioned, DEAD)), 3 * 3_600.0)
        await self.reached(lambda: not self._left() and not any(map(self._marks, DEAD)))

    def _marks(self, name: str) -> Mapping[str, str]:
        return hosts.annotations(self.cluster.host(name) or {"metadata": {}})

    async def _a_while(self, seconds: float) -> None:
        end = self.now() + seconds
        while self.now() < end:
            await passed(5.0)
            self._look()


@pytest.mark.parametrize("state", ["inspecting", "deploying"])
def test_half_an_hour_of_failures(state: str) -> None:
    """A host that fails again and again asks again, and has a unit only as long as its
    try takes, and until its failure is known; once it is mended, it is provisioned, and nothing of
    its failures is left.
    """
    world = Mended(state, retries=0).run()
    assert world.tries >= len(DEAD) * 4
    assert world.looked < HALF_HOUR / 5.0 * len(DEAD) / 5, "they have units most of the time"
    assert world.nodes.book.most_busy <= LIMIT


class Revoked(DeadHosts):
    """People revoke the lease of a host that has failed, before it gives its units back."""

    async def course(self) -> None:
        await self._begin()
        await self._dead()
        revoked: set[str] = set()
        while len(revoked) < len(DEAD):
            await passed(1.0)
            for uid, failed in [*self.auditor.backs_off.items()]:
                if self.now() - failed < STILL_SECONDS + 3.0 or uid in self.auditor.works:
                    continue
                for lease in self.auditor.leases_of(uid):
                    assert self.moorage.service is not None
                    await self.moorage.service.change(LeaseRelease(lease.id, Proof(OWNER)))
                    revoked.add(uid)
        adopted = self.auditor.adopted
        await passed(600.0)
        assert self.auditor.adopted == adopted, "a revoked host was counted again"


@pytest.mark.parametrize("state", ["inspecting", "deploying"])
def test_a_revoked_host_is_not_counted_again(state: str) -> None:
    """If people revoke the lease of a dead host, its unit is free until its next try."""
    for seed in range(2):
        Revoked(state, seed=seed).run()
