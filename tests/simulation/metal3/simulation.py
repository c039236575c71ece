"""One seed: hosts, metal3's operator, Moorage, governors, people and faults in virtual time.

The governors are the real ones of `integrations/metal3/`, the rules and the service of admission
are the real ones; the API server and the operator are the doubles, of which only the sockets are
replaced. All random choices come from the seed, so a seed repeats. With odd seeds the faults stop
at some time: then every host must become what is wanted of it, and nothing may be left.
"""

import random
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from moorage.core.clock import SECOND
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.rules import Condition, Rule
from moorage.wire.admission import PoolWanted
from tests.simulation.metal3.auditor import IMAGES, POOL, HostAuditor
from tests.simulation.metal3.cluster import GOVERNOR, NAMESPACE, Cluster, Operating, nodes_of
from tests.simulation.metal3.processes import Governing
from tests.simulation.metal3.users import Users
from tests.simulation.provisioning.auditor import Violation
from tests.simulation.provisioning.moorage import START, Moorage
from tests.simulation.provisioning.net import CutError, Net
from tests.simulation.provisioning.world import MoorageWorld
from tests.simulation.virtual.loop import passed
from tests.support.bmo_double.operator import Settings

URGENT = Condition(patterns={"labels.urgent": ("true",)})

KUBERNETES_LATE = 55.0
"""How late the API server may begin what it has got: its `--request-timeout` is a minute."""

LIVENESS_MAX = 20_000.0
"""After the faults, everybody is served within this time: far more than the work needs."""

QUIET_SECONDS = 300.0
"""... and then everything is free within this time."""


IMAGE_RULE = Rule(pool=IMAGES, verbs=frozenset({"provision"}))
"""In two of three worlds: images have a pool of their own, whose limit is `images`. In half of the
others, an image takes one more unit of the pool of all."""


class Metal3Simulation(MoorageWorld):
    """The world of one seed. `run` raises `Violation`."""

    pool = POOL
    variable = "MOORAGE_SEED"
    pauses = (0.1, 2.0, 20.0)

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Random(seed))
        self.liveness = seed % 2 == 1
        self.until = self.random.uniform(100.0, 600.0)
        self.storm = self.random.choice([0.0, 0.01, 0.05, 0.1])
        self.deadly = self.random.choice([0.0, 0.002, 0.01])
        self.interval = self.random.choice([2.0, 5.0])
        self.haste = self.random.choice([20.0, 100.0])
        self.limit = self.random.randrange(1, 4)
        self.images = self.random.randrange(0, 3)
        self.is_double = not self.images and seed % 4 >= 2
        self.limit += self.is_double
        rules = (Rule(pool=POOL),)
        if self.images or self.is_double:
            rules = (*rules, replace(IMAGE_RULE, pool=POOL) if self.is_double else IMAGE_RULE)
        self.rules = Rules(rules=rules, exempt=(URGENT,))
        self.numbers = count(1)

    # What the parts of the world use.

    def cluster_back(self) -> None:
        """Let the API server answer again."""
        self.cluster.away = False

    async def to_kubernetes(
        self, method: str, path: str, kind: str, body: bytes, seconds: float
    ) -> tuple[int, Any]:
        """Send a request of a governor to Kubernetes."""
        process = self.sender()
        if self.cluster.away:
            await passed(0.01)
            raise CutError("there is no connection")

        async def work() -> tuple[int, Any]:
            status, found = await self.cluster.answer(GOVERNOR, method, path, kind, body)
            if method != "GET":
                self.tell(process.name, method, path[-30:], body.decode()[:90], "->", status)
            return status, found

        weather = self.net.weather(KUBERNETES_LATE, True)
        if weather.error is not None:
            if weather.arrives:
                self.later(weather.late, lambda: self._go(work()))
            await passed(0.01)
            return weather.error, {}
        return await self.net.exchange(weather, seconds, lambda _: work())

    # Its course.

    async def _begin(self) -> None:
        self.net = Net(self)
        self.moorage = Moorage(self, lambda changes: self._watched(lambda: self._decided(changes)))
        self.cluster = Cluster(
            lambda user, change: self._watched(lambda: self._stored(user, change))
        )
        self.auditor = HostAuditor(self.moorage.memory, self.now, named=self.cluster.host)
        self.auditor.images, self.auditor.is_double = self.images, self.is_double
        self.auditor.memory_began = START / SECOND
        self.nodes = nodes_of(self, self.random.choice([0.02, 0.2, 1.0]))
        self._break_some()
        self.nodes.began = lambda node: self._watched(lambda: self._busy(node))
        self.nodes.deploys = lambda node: self._watched(lambda: self.auditor.image_began(node))
        self.nodes.over = lambda node: self._watched(lambda: self._idle(node))
        self.moorage.start()
        self.users = Users(self)
        faulty, self.faulty = self.faulty, False  # without a pool nothing would ever happen
        await self.users.limit(self.limit)
        wanted = PoolWanted(limit=self.images, expire="keep", ttl=60.0)
        await self.moorage.change(IMAGES, wanted)
        self.faulty = faulty
        self._cast()

    def _break_some(self) -> None:
        """In every fourth world the work of some hosts always fails, until the faults stop."""
        if self.seed % 8 not in (3, 6):
            return
        for number in range(8):
            if self.random.random() < 0.4:
                state = self.random.choice(["verifying", "inspecting", "deploying", "deleting"])
                self.nodes.broken[f"{NAMESPACE}~host-{number}"] = {state}

    def _cast(self) -> None:
        """Make the programs, and those who want something of hosts."""
        settings = Settings(seed=self.seed, lag=(0.005, self.random.choice([0.05, 0.5, 5.0])))
        random.seed(self.seed)  # delays of the mirror
        governors = [self._governor(number) for number in range(self.random.randrange(1, 4))]
        self.programs = [Operating(self, settings), *governors]
        for program in self.programs:
            self.later(self.random.uniform(0.0, 20.0), program.start)
        for number in range(self.random.randrange(2, 8)):
            self._go(self.users.life(f"host-{number}"))
        if self.is_double:
            self._go(self.users.images_while_inspected())
        trouble = self.users
        for work in (trouble.meddler, trouble.operator, trouble.reaper):
            if self.random.random() < 0.7:
                self._go(work())

    def _governor(self, number: int) -> Governing:
        mirrored = self.random.random() < 0.7
        skew = self.random.choice([0.0, 0.0, 0.0, -7_200.0, 120.0, -1e8])
        return Governing(self, f"governor-{number}", mirrored=mirrored, skew=skew)

    def _busy(self, node: str) -> None:
        self.tell("busy", node, self.nodes.book.states[node])
        self.auditor.node_began(node)

    def _idle(self, node: str) -> None:
        self.tell("idle", node, self.nodes.book.states[node])
        self.auditor.node_over(node)

    def _stored(self, user: str, change: Any) -> None:
        found = change.object
        metadata, status = found["metadata"], found.get("status", {})
        state = status.get("provisioning", {}).get("state", "")
        marks = metadata.get("annotations") or ""
        self.tell("  ", change.type[:3], user, metadata["name"], metadata["uid"], state, marks)
        self.auditor.stored(user, change)

    async def course(self) -> None:
        await self._begin()
        await passed(self.until)
        if not self.liveness:
            return
        await self._heal()
        since, end = self.now(), self.now() + LIVENESS_MAX
        while not all(self.users.served.values()):
            await passed(5.0)
            self._check(since)
            if self.now() > end:
                raise Violation(f"P7 not served: {self.users.served}")
        calm = self.now() + QUIET_SECONDS
        while self.now() < calm and self._left():
            await passed(5.0)
            self._check(since)
        if left := self._left():
            raise Violation(f"P6 left over: {left}")
        if left := self.auditor.our_pauses():
            raise Violation(f"H4 left over: {left}")

    def _left(self) -> list[str]:
        return [one.key for one in self.moorage.memory.leases.values() if one.state == "granted"]

    def _check(self, since: float) -> None:
        if self.now() - since > 60.0:
            self.auditor.calm(since + 60.0)

    async def _heal(self) -> None:
        self.tell("faults stop")
        self.faulty = False
        self.cluster.away = False
        self.nodes.failures.clear()
        self.nodes.broken.clear()
        self.moorage_back()
        await self.users.limit(self.limit)
        for program in self.programs:
            self.again(program)
