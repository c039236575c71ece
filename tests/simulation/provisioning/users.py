"""Who wants something of the hosts: clients of the gates, wishes, foreign clients, and trouble."""

import asyncio
from typing import Any

from moorage.integrations.ironic.clients import ClientPolicy
from moorage.integrations.ironic.states import BUSY, Requirement, requirement_of
from moorage.integrations.ironic.wishes import WANT
from moorage.wire.admission import PoolWanted
from tests.simulation.provisioning.auditor import Origin
from tests.simulation.provisioning.processes import Gate
from tests.simulation.virtual.loop import passed
from tests.support.ironic_double.fleet import Node

FOREIGN = Origin("foreign")

VERBS = {
    "enroll": ("manage",),
    "manageable": ("provide", "inspect"),
    "available": ("active", "active", "active", "manage"),
    "active": ("deleted", "deleted", "rebuild"),
    "error": ("deleted",),
    "deploy failed": ("active", "deleted"),
    "clean failed": ("manage",),
    "inspect failed": ("manage", "inspect"),
}
"""What somebody may want of a node in a state."""


class Users:
    """All of one world."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.random = world.random
        self.served: dict[str, int] = {}
        """How often each user has got what it wanted since the faults have stopped; one whose node
        was deleted wants nothing."""

    def _there(self, node: Node) -> bool:
        return node.uuid in self.world.ironic.fleet.nodes

    def _got(self, user: str) -> None:
        self.served[user] = self.served.get(user, 0) + (not self.world.faulty)

    async def client(self, node: Node, user: str) -> None:
        """Ask for one state after the other through gates, until it went well without faults."""
        self.served[user] = 0
        hold = self.random.choice([0.5, 5.0, 20.0, 55.0])
        policy = ClientPolicy(user, hold=hold, retry_after=self.random.choice(["none", 3]))
        while not self.served[user] and self._there(node):
            await passed(self.random.uniform(0.0, 8.0))
            verbs = VERBS.get(node.state)
            if verbs is None or node.members.get("maintenance"):
                continue
            if await self._asks(node, self.random.choice(verbs), policy):
                await self._idle(node)
                self._got(user)
        self.served[user] = 1

    async def _asks(self, node: Node, verb: str, policy: ClientPolicy) -> bool:
        """Ask until it is accepted; give up if something else was refused."""
        for _ in range(30):
            gates = [gate for gate in self.world.gates if not gate.process.dead]
            if gates:
                left = asyncio.Event()
                if self.world.chance(0.15):
                    self.world.later(self.random.uniform(0.0, policy.hold), left.set)
                ident = self.random.choice([node.uuid, node.name])
                gate: Gate = self.random.choice(gates)
                status = await gate.ask(str(ident), verb, policy, left)
                if status == 202:
                    return True
                if status not in (None, 409, 500, 502, 503, 504) or not self._there(node):
                    return False
            await passed(self.random.uniform(0.1, 5.0))
        return False

    async def _idle(self, node: Node) -> None:
        while node.state in BUSY and self._there(node):
            await passed(1.0)

    async def wisher(self, node: Node, user: str) -> None:
        """Write one wish after the other onto a node."""
        self.served[user] = 0
        while not self.served[user] and self._there(node):
            await passed(self.random.uniform(0.0, 8.0))
            verbs = VERBS.get(node.state)
            if verbs is None or node.members.get("maintenance"):
                continue
            well = not self.world.faulty
            wish = f"wish-{self.world.number()}"
            target = self.random.choice(verbs)
            if requirement_of(target, node.state) is Requirement.NOTHING:
                self.world.ironic.provision(node, target, FOREIGN)
                continue
            self._extra(node)[WANT] = {"target": target, "configdrive": wish}
            while WANT in self._extra(node) and self._there(node):
                await passed(1.0)
                possible = target in VERBS.get(node.state, ())
                if not possible and node.state not in BUSY and not node.reservation:
                    self._extra(node).pop(WANT, None)  # somebody else has changed the state
            await self._idle(node)
            if well:
                self._got(user)
        self.served[user] = 1

    def _extra(self, node: Node) -> dict[str, Any]:
        extra: dict[str, Any] = node.members.setdefault("extra", {})
        return extra

    async def foreigner(self) -> None:
        """Start work past every gate."""
        while self.world.faulty:
            await passed(self.random.uniform(1.0, 40.0))
            if self.world.faulty and (node := self._any()) is not None:
                verb = self.random.choice(VERBS.get(node.state, ("abort",)))
                status = self.world.ironic.provision(node, verb, FOREIGN)
                self.world.tell("foreign", verb, node.name, "->", status)

    async def meddler(self) -> None:
        """Trouble with single nodes."""
        while self.world.faulty:
            await passed(self.random.uniform(1.0, 30.0))
            node = self._any()
            if node is None or not self.world.faulty:
                continue
            seconds = self.random.uniform(0.5, 20.0)
            match self.random.randrange(6):
                case 0:
                    node.lock = "moorage"
                    self.world.later(seconds, lambda node=node: setattr(node, "lock", None))
                    self.world.tell("lock", node.name)
                case 1:
                    node.fails = True
                    self.world.tell("will fail", node.name)
                case 2:
                    node.members["maintenance"] = True
                    self.world.later(
                        seconds, lambda node=node: node.members.update(maintenance=False)
                    )
                case 3:
                    node.members["name"] = f"renamed-{self.world.number()}"
                case 4 if node.uuid not in self.world.ironic.fleet.busy and self.world.chance(0.3):
                    self.world.ironic.fleet.nodes.pop(node.uuid)
                    self.world.tell("deleted", node.name)
                case 5 if self.world.chance(0.3):
                    self.world.tell("Ironic is restarted")
                    self.world.ironic.fleet.restart()

    def _any(self) -> Node | None:
        nodes = list(self.world.ironic.fleet.nodes.values())
        return self.random.choice(nodes) if nodes else None

    async def operator(self) -> None:
        """Change limits, and let Ironic and Moorage be away."""
        world = self.world
        while world.faulty:
            await passed(self.random.uniform(5.0, 60.0))
            match self.random.randrange(4):
                case 0 | 1 if world.faulty:
                    await self.limit(self.random.randrange(0, 5))
                case 2 if world.chance(0.7):
                    world.tell("Moorage is away")
                    world.moorage_away(self.random.choice([2.0, 20.0, 100.0, 150.0]))
                case 3 if world.chance(0.7):
                    world.ironic.away = self.random.choice(["refused", "unavailable"])
                    world.tell("Ironic is", world.ironic.away)
                    world.later(self.random.choice([2.0, 10.0, 60.0]), world.ironic_back)

    async def limit(self, limit: int) -> None:
        """Change the limit."""
        self.world.tell("limit", limit)
        wanted = PoolWanted(limit=limit, expire="keep", ttl=60.0)
        await self.world.moorage.change(self.world.pool, wanted)

    async def reaper(self) -> None:
        """Kill programs, or end them, and start them again."""
        while self.world.faulty:
            await passed(self.random.uniform(2.0, 40.0))
            programs = [one for one in self.world.programs if not one.process.dead]
            if not programs or not self.world.faulty:
                continue
            program = self.random.choice(programs)
            self.world.tell("ends", program.name)
            if self.random.random() < 0.3:
                self.world.tell("SIGTERM", program.name)
                ending = asyncio.ensure_future(program.end())
                await asyncio.wait([ending], timeout=70.0)
            self.world.revive(program)
