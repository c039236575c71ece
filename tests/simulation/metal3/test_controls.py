"""Controls: what the naive ways of holding hosts back do in the same world. They are seen to fail.

Each takes the place of one part of the real one. The real one plays the same seed, and holds.
"""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from moorage.core.admission.requests import Proof
from moorage.service.admission.lease_cases import LeaseRelease
from tests.simulation.metal3.cluster import NAMESPACE, Operating, VirtualKubernetes
from tests.simulation.metal3.processes import Governing
from tests.simulation.metal3.simulation import Metal3Simulation
from tests.simulation.metal3.users import ALL
from tests.simulation.provisioning.auditor import Violation
from tests.simulation.provisioning.moorage import OWNER
from tests.simulation.virtual.loop import passed
from tests.support.bmo_double import hosts
from tests.support.bmo_double.hosts import PAUSED
from tests.support.bmo_double.operator import Settings
from tests.support.kubernetes_client import Answered, Object, host

SEEDS = 30
"""How many seeds a control may take until it overshoots."""
HOSTS = 6
END = 6_000.0


pytestmark = pytest.mark.usefixtures("quiet")


class Deployments(Metal3Simulation):
    """Six available hosts get an image at once, and one in three first deployments fails.

    The auditor does not interrupt; what counts is the book of the nodes: how many were ever
    busy at once after that.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.storm = self.deadly = 0.0
        self.faulty, self.interval, self.limit = False, 2.0, 2
        self.overshoots = False

    def _watched(self, look: Any) -> None:
        try:
            look()
        except Violation as error:
            self.tell(error)

    def _cast(self) -> None:
        self.nodes.broken.clear()  # no host fails for ever
        self.nodes.failures = {
            f"{NAMESPACE}~host-{number}": 1
            for number in range(HOSTS)
            if self.random.random() < 0.33 or number == 0
        }
        self.programs = [Operating(self, Settings(seed=self.seed)), Governing(self, "governor")]
        for program in self.programs:
            program.start()

    async def course(self) -> None:
        await self._begin()
        names = [f"host-{number}" for number in range(HOSTS)]
        for name in names:
            await self.users.api.create(ALL, host(name))
        await self._reached(names, "available")
        self.nodes.book.most_busy = 0
        self.prepare()
        await asyncio.gather(*map(self._image, names))
        await self._reached(names, "provisioned")
        self.overshoots = self.nodes.book.most_busy > self.limit

    def prepare(self) -> None:
        """All hosts are available, and none has an image."""

    async def _image(self, name: str) -> None:
        await self.users.api.merge(f"{ALL}/{name}", {"spec": {"image": {"url": "http://image"}}})

    async def _reached(self, names: list[str], state: str) -> None:
        while {hosts.state(self.cluster.host(name) or {}) for name in names} != {state}:
            assert self.now() < END, "it never ends"
            await passed(1.0)


class Afterwards(Deployments):
    """A watcher adds the pause after it has seen the image.

    It is as fast as the operator, and takes one host after the other, as controllers do by default.
    """

    def prepare(self) -> None:
        self.cluster.double.admission.engine = None
        self._go(self._watch())

    async def _watch(self) -> None:
        api = VirtualKubernetes(self, "watcher")
        async for event in api.watch(ALL):
            found, marks = event["object"], hosts.annotations(event["object"])
            idle = hosts.state(found) == "available" and PAUSED not in marks
            if not (idle and hosts.needs_provisioning(found)):
                continue
            if found["metadata"]["name"] not in self.granted():
                await self._pause(api, found["metadata"])

    async def _pause(self, api: VirtualKubernetes, metadata: Object) -> None:
        await passed(self.random.uniform(*Settings().lag))
        version = {"resourceVersion": metadata["resourceVersion"]}
        pause = {**version, "annotations": {PAUSED: "moorage"}}
        with suppress(Answered):  # the operator was faster
            await api.merge(f"{ALL}/{metadata['name']}", {"metadata": pause})

    def granted(self) -> set[str]:
        """Return the names of hosts that have a unit."""
        leases = self.moorage.memory.leases.values()
        return {one.labels["holder"].partition("/")[2] for one in leases if one.state == "granted"}


class AtFailure(Deployments):
    """A watcher releases the unit of a host whose deployment has failed."""

    def prepare(self) -> None:
        self._go(self._watch())

    async def _watch(self) -> None:
        async for event in VirtualKubernetes(self, "watcher").watch(ALL):
            found = event["object"]
            if found.get("status", {}).get("errorType") != "provisioning error":
                continue
            for lease in self.auditor.leases_of(found["metadata"]["uid"]):
                assert self.moorage.service is not None
                await self.moorage.service.change(LeaseRelease(lease.id, Proof(OWNER)))


def overshoots(kind: type[Deployments]) -> int | None:
    """Return the first seed with which a control exceeds the limit; None: it never does."""
    return next((seed for seed in range(SEEDS) if kind(seed).run().overshoots), None)


def test_the_real_one_holds() -> None:
    """Paused in the very write, and released by the walk: never more than the limit are busy."""
    assert [seed for seed in range(3) if Deployments(seed).run().overshoots] == []


def test_pausing_afterwards_overshoots() -> None:
    """A pause that a watcher adds comes too late: the operator has stored that it begins."""
    seed = overshoots(Afterwards)
    assert seed is not None
    assert not Deployments(seed).run().overshoots


def test_releasing_at_the_first_failure_overshoots() -> None:
    """The operator starts again by itself, with a unit that another host has meanwhile."""
    seed = overshoots(AtFailure)
    assert seed is not None
    assert not Deployments(seed).run().overshoots
