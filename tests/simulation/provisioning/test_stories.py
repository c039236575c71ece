"""Single stories, of which the simulator has found the first ones by chance."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from moorage.integrations.ironic.clients import ClientPolicy
from moorage.integrations.ironic.wishes import WANT
from tests.simulation.provisioning.processes import Gate, Governing
from tests.simulation.provisioning.simulation import ProvisioningSimulation
from tests.simulation.virtual.loop import passed

STOPPED_SECONDS = 120.0
"""Longer than a unit stays without an answer."""


pytestmark = pytest.mark.usefixtures("quiet")


class Stopped(ProvisioningSimulation):
    """A program is stopped just when its first request is stored, and goes on much later."""

    def __init__(self, kind: str) -> None:
        super().__init__(0)
        self.kind = kind
        self.storm = self.deadly = 0.0
        self.faulty = False
        self.until = 400.0
        self.stopped = False

    def _cast(self) -> None:
        self.ironic.fleet.add({"name": "node-1", "driver": "fake-hardware"}, "available")
        self.gates = [Gate(self, "gate-1"), Gate(self, "gate-2")]
        self.programs = list(self.gates)
        if self.kind == "governor":
            self.programs = [Governing(self, "governor"), self.gates[1]]
            (node,) = self.ironic.fleet.nodes.values()
            node.members["extra"] = {WANT: {"target": "active"}}
        else:
            self._go(self._client())
        for program in self.programs:
            program.start()

    async def _client(self) -> None:
        while (
            await self.gates[0].ask("node-1", "active", ClientPolicy("*"), asyncio.Event()) != 202
        ):
            await passed(5.0)

    async def to_moorage(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, seconds: float
    ) -> tuple[int, Any]:
        answer = await super().to_moorage(method, path, query, body, seconds)
        if path.endswith("/record") and not self.stopped:
            self.stopped = True
            await passed(STOPPED_SECONDS)
        return answer


@pytest.mark.parametrize("kind", ["gate", "governor"])
def test_who_was_stopped_sends_nothing_that_was_stored_long_ago(kind: str) -> None:
    """Its unit was released meanwhile: it gets another one, and the host works once."""
    story = Stopped(kind).run()
    assert story.auditor.governed == 1
    (node,) = story.ironic.fleet.nodes.values()
    assert node.state in ("active", "deploying")
