"""A cloud in virtual time: Nova, Ironic and the ledger, with boots and migrations all the time."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from moorage.integrations.ironic.nodes import IronicError
from moorage.integrations.nova.pacing import Answer, NoAnswerError
from tests.simulation.nova.ledger import NaiveLedger, Provider
from tests.simulation.virtual.loop import passed
from tests.support.nova_double.api import Api
from tests.support.nova_double.database import FLAVOR, Cell, Database, Node
from tests.support.nova_double.operations import Operations, Steps, play

CELLS = 3
A_SECOND = 20.0
"""Operations that users begin."""

LARGE = {**FLAVOR, "vcpus": 4, "ram": 8192}
METAL: dict[str, Any] = {
    **FLAVOR,
    "extra_specs": {
        **dict.fromkeys(("resources:VCPU", "resources:MEMORY_MB", "resources:DISK_GB"), "0"),
        "resources:CUSTOM_BAREMETAL": "1",
    },
}
TOTALS = {"VCPU": 96, "MEMORY_MB": 1 << 20, "DISK_GB": 10_000}
FULL = 80
"""Processors in use from which nothing more is started on a host."""


class World:
    """The cloud of one seed."""

    def __init__(self, seed: int, hosts: int, metal: int) -> None:
        """Build the cloud: `hosts` with two servers each, and `metal` nodes of Ironic's."""
        self.random = Random(seed)
        self.database = Database([Cell(f"cell{number}") for number in range(CELLS)])
        self.ledger = NaiveLedger(self.now, self._pause)
        self.operations = Operations(self.database, self.ledger)
        self.api = Api(self.database, limit=self.random.choice((50, 1_000)))
        self.ironic: dict[str, dict[str, Any]] = {}
        self.faults = self.random.choice((0.0, 0.01))
        """How likely a request to Nova fails."""
        self.began = self.ended = 0
        """Operations of users, and those of them that are over."""
        self.hosts = [self._host(number) for number in range(hosts)]
        self.nodes = [self._metal(number) for number in range(metal)]
        self.idle: list[str] = []
        """The servers that users may do something with."""
        for node in self.hosts:
            for _ in range(2):
                self.idle.append(self.server(node))
        for node in self.nodes[::2]:
            self.server(node, METAL)

    def now(self) -> float:
        """Return the virtual time; before the loop runs, it is 0."""
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return 0.0

    async def _pause(self) -> None:
        await passed(self.random.uniform(0.001, 0.02))

    def _host(self, number: int) -> Node:
        cell = self.database.cells[number % CELLS]
        node = self.database.add_host(cell, f"host-{number}", name=f"host-{number}.example.org")
        self.provide(node)
        return node

    def _metal(self, number: int) -> Node:
        """Add a node of Ironic's; all are of one service."""
        node = self.database.add_host(self.database.cells[0], "metal", "ironic")
        self.provide(node)
        self.ironic[node.uuid] = ironic_node(node.uuid, f"metal-{number}")
        return node

    def provide(self, node: Node) -> Provider:
        """Add the provider of a compute node."""
        metal = node.kind == "ironic"
        totals = {"CUSTOM_BAREMETAL": 1} if metal else dict(TOTALS)
        traits = ["COMPUTE_NODE"]
        new = Provider(node.uuid, node.name, node.uuid, totals=totals, traits=traits)
        return self.ledger.add(new)

    def server(self, node: Node, flavor: Mapping[str, Any] = FLAVOR) -> str:
        """Return a new server that runs on a node."""
        uuid = self.database.new_uuid()
        play(self.operations.boot(uuid, node, flavor, f"p{self.random.randrange(4)}"))
        if node.uuid in self.ironic:
            self.ironic[node.uuid]["instance_uuid"] = uuid
            self.ironic[node.uuid]["provision_state"] = "active"
        return uuid

    # What an audit asks.

    async def send(self, path: str) -> Answer:
        """Answer a request to Nova, some time after it was sent."""
        await passed(self.random.uniform(0.01, 0.3))
        lot = self.random.random()
        if lot < self.faults:
            kind = self.random.choice((429, 503, 500, None))
            if kind is None:
                await passed(60.0)
                raise NoAnswerError("it takes too long")
            return Answer(kind, None, 2.0 if kind == 429 else None)
        status, content = self.api.answer(path)
        await passed(self.random.uniform(0.01, 0.1))
        return Answer(status, content)

    async def all(self, fields: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return Ironic's nodes."""
        await self._pause()
        return [dict(one) for one in self.ironic.values()]

    async def node(self, ident: str, fields: Sequence[str]) -> Mapping[str, Any] | None:
        """Return one of Ironic's nodes."""
        await self._pause()
        if self.random.random() < self.faults:
            raise IronicError("no answer")
        found = self.ironic.get(ident)
        return None if found is None else dict(found)

    # What users do.

    async def users(self) -> None:
        """Begin operations, until cancelled."""
        under_way: set[asyncio.Task[None]] = set()
        try:
            while True:
                await passed(self.random.expovariate(A_SECOND))
                task = asyncio.create_task(self._operation())
                under_way.add(task)
                task.add_done_callback(under_way.discard)
        finally:
            for task in [*under_way]:
                task.cancel()

    async def _operation(self) -> None:
        self.began += 1
        lot = self.random.random()
        if lot < 0.4 or not self.idle:
            await self._boot()
        else:
            uuid = self.idle.pop(self.random.randrange(len(self.idle)))
            if lot < 0.65:
                await self._step(self.operations.delete(uuid))
            elif lot < 0.8:
                await self._step(self.operations.live_migrate(uuid, self._target(uuid)))
                self.idle.append(uuid)
            elif lot < 0.95:
                await self._resize(uuid)
            else:
                await self._step(self.operations.shelve(uuid))
        self.ended += 1

    async def _boot(self) -> None:
        uuid = self.database.new_uuid()
        steps = self.operations.boot(uuid, self._target(), FLAVOR, f"p{self.random.randrange(4)}")
        if self.random.random() < 0.1:  # the user thinks better of it
            cut = self.random.choice(("requested", "claimed", "created", "mapped"))
            rest = await self._step(steps, until=cut)
            play(self.operations.delete(uuid))
            await self._step(rest)
            return
        await self._step(steps)
        self.idle.append(uuid)

    async def _resize(self, uuid: str) -> None:
        instance = self.database.instance(uuid)
        assert instance is not None
        before, source = instance.flavor, self._node_of(instance.host or "")
        await self._step(self.operations.resize(uuid, self._target(uuid), LARGE))
        await passed(self.random.uniform(0.0, 60.0))
        if self.random.random() < 0.5:
            await self._step(self.operations.confirm(uuid))
        else:
            await self._step(self.operations.revert(uuid, source, before))
        self.idle.append(uuid)

    async def _step(self, steps: Steps, until: str = "") -> Steps:
        """Play an operation with time between its steps, sometimes a long one."""
        for name in steps:
            if name == until:
                return steps
            await passed(self.random.choice((0.01, 0.1, 0.5, 5.0)) * self.random.random())
        return steps

    def _target(self, server: str = "") -> Node:
        """Return a host with room, among those that are as they should be, in the same cell."""
        mapping = self.database.mappings.get(server)
        hosts = self.hosts
        if mapping is not None and mapping.cell is not None:
            hosts = hosts[self.database.cells.index(mapping.cell) :: CELLS]
        while True:
            node = self.random.choice(hosts)
            if self.ledger.used.get(node.uuid, {}).get("VCPU", 0) < FULL:
                return node

    def _node_of(self, host: str) -> Node:
        cell = self.database.hosts[host]
        return next(one for one in cell.nodes.values() if one.host == host)

    async def outage(self) -> None:
        """Let a cell be away for a while."""
        await passed(self.random.uniform(0.0, 60.0))
        cell = self.random.choice(self.database.cells)
        cell.is_down = True
        await passed(self.random.uniform(1.0, 40.0))
        cell.is_down = False


def ironic_node(uuid: str, name: str) -> dict[str, Any]:
    """Return a node of Ironic's that is free."""
    return {
        "uuid": uuid,
        "name": name,
        "resource_class": "baremetal",
        "maintenance": False,
        "power_state": "power off",
        "provision_state": "available",
        "instance_uuid": None,
        "traits": [],
    }


def roots(providers: Iterable[Provider]) -> list[tuple[str, str]]:
    """Return providers with their roots."""
    return [(one.uuid, one.root) for one in providers]
