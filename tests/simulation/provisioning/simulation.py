"""One seed: hosts, Ironic, Moorage, gates, governors, clients and faults in virtual time.

The programs are the real ones of `integrations/`, the rules and the service of admission are the
real ones, and hosts are those of the double of Ironic. Only the net between them is made up. The
`Auditor` looks at the hosts. All random choices come from the seed, so a seed repeats. With odd
seeds the faults stop at some time: then everybody must get what it wants, and nothing may be left.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import aiohttp

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.core.clock import SECOND
from moorage.integrations.ironic.gate.upstream import AwayError
from moorage.integrations.ironic.nodes import IronicError
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.ironic.states import EVENTS, Requirement, requirement_of
from tests.simulation.provisioning.auditor import Auditor, Origin, Violation
from tests.simulation.provisioning.ironic import Ironic
from tests.simulation.provisioning.moorage import START, Moorage
from tests.simulation.provisioning.net import (
    IRONIC_LATE,
    Net,
    NotSentError,
)
from tests.simulation.provisioning.processes import (
    DECIDED,
    Gate,
    Governing,
    RollingOut,
)
from tests.simulation.provisioning.users import FOREIGN, Users
from tests.simulation.provisioning.world import MoorageWorld
from tests.simulation.virtual.loop import Process, passed
from tests.simulation.virtual.world import Program
from tests.support.ironic_double.fleet import Node

POOL = "deploy"
LIVENESS_MAX = 2_000.0
"""After the faults, everybody is served within this time: far more than the work needs."""

QUIET_SECONDS = 420.0
"""... and then everything is free within this time: of a request that Ironic has taken and never
answers, the gate hears nothing for 300 seconds, and then believes it under way for 90."""


class ProvisioningSimulation(MoorageWorld):
    """The world of one seed. `run` raises `Violation`."""

    away = (IronicError, UnreachableError, RefusedError, UndecodableError, AwayError)
    away += (aiohttp.ClientError, TimeoutError)
    pool = POOL
    variable = "MOORAGE_SEED"
    pauses = (0.1, 2.0, 20.0)

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Random(seed))
        self.liveness = seed % 2 == 1
        self.until = self.random.uniform(40.0, 180.0)
        self.storm = self.random.choice([0.0, 0.01, 0.05, 0.1])
        self.deadly = self.random.choice([0.0, 0.002, 0.01])
        self.interval = self.random.choice([2.0, 5.0])
        self.limit = self.random.randrange(1, 4)
        self.rules = Rules.of_pool(POOL)
        self.numbers = count(1)
        self.gates: list[Gate] = []
        self.rollouts: list[RollingOut] = []

    # What the parts of the world use.

    def number(self) -> int:
        """Return a new number."""
        return next(self.numbers)

    def ironic_back(self) -> None:
        """Let Ironic answer again."""
        self.ironic.away = None

    def may_start(self, program: Program) -> bool:
        """Return whether a program has anything left to do."""
        return not getattr(program, "over", False)

    async def to_ironic(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> tuple[int, bytes]:
        """Send a request to Ironic."""
        process = self.sender()
        if self.ironic.away == "refused":
            await passed(0.01)
            raise NotSentError
        origin = self._origin(process, body) if method == "PUT" else FOREIGN

        def work() -> tuple[int, bytes]:
            status, content = self.ironic.answer(method, path, headers, body, origin)
            if method != "GET":
                self.tell(process.name, method, path, body.decode(), "->", status)
            return status, content

        weather = self.net.weather(IRONIC_LATE, True)
        if weather.error is not None:
            if weather.arrives:
                self.later(weather.late, work)
            await passed(0.01)
            return weather.error, b"{}"

        async def carry(_gone: asyncio.Event) -> tuple[int, bytes]:
            answer = work()
            if weather.again is not None:
                work()
            return answer

        return await self.net.exchange(replace(weather, again=None), seconds, carry)

    def _origin(self, process: Process, body: bytes) -> Origin:
        sent, noted = json.loads(body), DECIDED.get()
        target = sent["target"]
        needless = False
        if noted is not None:
            needless = requirement_of(target, noted["state"]) is Requirement.NOTHING
        return Origin(
            process.name,
            governed=True,
            forced=noted is not None and EVENTS[target] == "delete",
            needless=needless,
            wish=sent.get("configdrive"),
        )

    # Its course.

    async def _begin(self) -> None:
        self.net = Net(self)
        self.ironic = Ironic()
        self.ironic.agenda.catch_up()
        self.moorage = Moorage(self, lambda changes: self._watched(lambda: self._decided(changes)))
        self.auditor = Auditor(self.moorage.memory, self.now)
        self.auditor.memory_began = START / SECOND
        fleet = self.ironic.fleet
        fleet.began = lambda node, origin: self._watched(lambda: self._busy(node, origin))
        fleet.over = self._idle
        self.ironic.last(self.random)
        self.moorage.start()
        self.users = Users(self)
        await self.users.limit(self.limit)
        self._cast()

    def _cast(self) -> None:
        """Make nodes, who wants something of them, and the programs."""
        states = ("available", "available", "active", "manageable")
        add = self.ironic.fleet.add
        users: list[Any] = []
        for number in range(self.random.randrange(3, 9)):
            name = f"node-{number}"
            members = {"name": name, "driver": "fake-hardware"}
            node = add(members, self.random.choice(states))
            if self.random.random() < 0.2:
                self.ironic.provision(
                    node, {"manageable": "provide"}.get(node.state, "active"), FOREIGN
                )
            kind = self.random.choice(["client", "client", "wisher", "nobody"])
            if kind != "nobody":
                users.append(getattr(self.users, kind)(node, f"{kind}-{number}"))
        self._programs()
        for work in users:
            self._go(work)
        trouble = self.users
        for work in (trouble.foreigner, trouble.meddler, trouble.operator, trouble.reaper):
            if self.random.random() < 0.7:
                self._go(work())

    def _programs(self) -> None:
        self.gates = [Gate(self, f"gate-{n}") for n in range(self.random.randrange(1, 3))]
        governing = Governing(self, "governor")
        self.programs = [*self.gates, governing]
        if self.random.random() < 0.3:
            add = self.ironic.fleet.add
            rolled = [
                add({"name": f"roll-{n}", "driver": "fake-hardware"}, "available") for n in range(3)
            ]
            self.rollouts = [RollingOut(self, "rollout", [n.uuid for n in rolled], "active", 2)]
            self.programs += self.rollouts
        for gate in self.gates:
            gate.passes = self.random.random() < 0.5
        for program in self.programs:
            self.later(self.random.uniform(0.0, 2.0), program.start)

    def _busy(self, node: Node, origin: Origin) -> None:
        self.tell("busy", node.name, origin)
        self.auditor.began(node, origin)

    def _idle(self, node: Node) -> None:
        self.tell("idle", node.name, node.state)
        self.auditor.ended(node.uuid)

    async def course(self) -> None:
        await self._begin()
        await passed(self.until)
        if not self.liveness:
            return
        await self._heal()
        since, end = self.now(), self.now() + LIVENESS_MAX
        while not self._all_served():
            await passed(5.0)
            self._check(since)
            if self.now() > end:
                raise Violation(f"P7 not served: {self.users.served}")
        calm = self.now() + QUIET_SECONDS
        while self.now() < calm and any(one.state == "granted" for one in self._leases()):
            await passed(5.0)
            self._check(since)
        left = [one.key for one in self._leases() if one.state == "granted"]
        if left:
            raise Violation(f"P6 left over: {left}")

    def _leases(self) -> Any:
        return self.moorage.memory.leases.values()

    def _check(self, since: float) -> None:
        if self.now() - since > 60.0:
            self.auditor.calm(since + 60.0)

    def _all_served(self) -> bool:
        served = all(self.users.served.values())
        return served and all(one.over for one in self.rollouts)

    async def _heal(self) -> None:
        self.tell("faults stop")
        self.faulty = False
        self.ironic.away = None
        self.moorage_back()
        await self.users.limit(self.limit)
        for node in self.ironic.fleet.nodes.values():
            node.members["maintenance"], node.lock, node.fails = False, None, False
        for program in self.programs:
            self.again(program)
