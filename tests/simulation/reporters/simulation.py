"""One seed: nodes, Ironic, Moorage, reporters, operators and faults in virtual time.

The reporters, the service and its rules are the real ones, Ironic is the double. Only the net
between them is made up. All random choices come from the seed, so a seed repeats. Each change of a
node gives it a version, which a trait carries into the ledger. At the end the faults stop: then the
ledger must say what Ironic has.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from moorage.core.clock import SECOND
from moorage.core.errors import Error
from moorage.core.ids import ProviderId
from moorage.core.ledger.model import NO_TAGS
from moorage.integrations.ironic.report.reporter import FULL_SECONDS, LATELY_TTLS
from moorage.service.fleet.reporter_cases import PinNodes
from tests.simulation.provisioning.ironic import NOBODY, Ironic
from tests.simulation.provisioning.net import SERVER_LATE, CutError, Net, NotSentError
from tests.simulation.reporters.auditor import FOREIGN, VERSION, Auditor, Violation, version_in
from tests.simulation.reporters.moorage import GROUP, OPERATOR, Moorage, answered
from tests.simulation.reporters.processes import Reporting
from tests.simulation.virtual.loop import passed
from tests.simulation.virtual.world import Program, VirtualWorld
from tests.support.ironic_double.fleet import Node

HEALED = FULL_SECONDS + 150.0
"""Without faults the ledger is right within a full reading, with all that may come before it."""

JUMPS = (-3_600, -60, 60, 3_600)
CLASS = "baremetal"
HIDDEN_MAX = 3.0
"""Less than the time that every reading of changes goes back."""


class ReporterSimulation(VirtualWorld):
    """The world of one seed. `run` raises `Violation`."""

    variable = "MOORAGE_SEED"
    pauses = (0.1, 2.0, 20.0, 60.0)

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Random(f"reporters-{seed}"))
        self.until = self.random.uniform(60.0, 240.0)
        self.storm = self.random.choice([0.0, 0.02, 0.05, 0.15])
        self.deadly = self.random.choice([0.0, 0.002, 0.01])
        self.interval = self.random.choice([1.0, 5.0])
        self.ttl = self.random.choice([5.0, 10.0, 15.0])
        self.jump = 0
        self.versions = count(1)
        self.names = count(1)
        lately = LATELY_TTLS * self.ttl + SERVER_LATE + 30.0
        self.auditor = Auditor(self.now, self.version_of, lately)

    # What the parts of the world use.

    def version_of(self, uuid: str) -> int | None:
        """Return the version that a node has now; None: there is no such node."""
        node = self.ironic.fleet.nodes.get(uuid)
        return None if node is None else version_in(node.members["traits"])

    def fenced(self, program: Program) -> None:
        """A reporter was replaced: somebody starts it again later, which replaces the other."""
        self.revive(program)

    def may_start(self, program: Program) -> bool:
        """Return whether a reporter may be started: after the faults only one of each member."""
        members = {getattr(one, "member", None) for one in self.alive.values()}
        return self.faulty or getattr(program, "member", None) not in members

    async def to_moorage(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, seconds: float
    ) -> tuple[int, Any]:
        """Send a request to Moorage."""
        process = self.sender()
        if self.moorage.service is None:
            await passed(0.01)
            raise CutError("there is no connection")

        async def carry(gone: asyncio.Event) -> tuple[int, Any]:
            if self.moorage.service is None:
                raise CutError("there is no connection")
            made = answered(self.moorage.service, method, path, dict(query), body)
            status, content = await self.moorage.process.start(made)
            said = content.get("code") if isinstance(content, dict) else ""
            self.tell(process.name, method, path, _short(body), "->", status, said)
            self.auditor.fenced += said == "fenced"
            return status, content

        # Nothing between a reporter and the server sends a request twice.
        weather = replace(self.net.weather(SERVER_LATE, False), again=None)
        try:
            return await self.net.exchange(weather, seconds, carry)
        except asyncio.CancelledError:
            if (method, process.dead) == ("PUT", False) and "/members/" in path:
                self.broken(Violation(f"R11 {process.name} gives up a sign of life"))
            raise

    async def to_ironic(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> tuple[int, bytes]:
        """Send a request to Ironic."""
        self.sender()
        if self.ironic.away == "refused":
            await passed(0.01)
            raise NotSentError

        async def carry(gone: asyncio.Event) -> tuple[int, bytes]:
            return self.ironic.answer(method, path, headers, body, NOBODY)

        weather = self.net.weather(SERVER_LATE, True)
        if weather.error is not None:
            await passed(0.01)
            return weather.error, b"{}"
        return await self.net.exchange(weather, seconds, carry)

    # Its course.

    async def course(self) -> None:
        self.net = Net(self)
        self.ironic = Ironic()
        self.ironic.agenda.catch_up()
        self.moorage = Moorage(self, self._committed)
        self.moorage.start()
        for _ in range(self.random.randrange(3, 12)):
            self.enrol()
        names = ["a", "b", "c"][: self.random.randrange(1, 4)]
        self.programs = [Reporting(self, f"reporter-{name}", name) for name in names]
        if self.random.random() < 0.3:
            self.programs.append(Reporting(self, "another-a", "a"))
        for program in self.programs:
            self.later(self.random.uniform(0.0, 5.0), program.start)
        while self.now() < self.until:
            await passed(self.random.uniform(0.0, 4.0))
            await self._happens()
        await self._heal()
        await passed(HEALED)
        self._check_well()

    async def _happens(self) -> None:
        kinds: dict[Callable[[], Awaitable[None] | object], float] = {
            self.change: 30,
            self.enrol: 3,
            self.delete: 3,
            self.hide: 3,
            self.trait: 2,
            self.pin: 4,
            self.away: 1,
            self.ironic_away: 1,
            self.stop: 1.5,
            self.set_clock: 0.7,
        }
        (what,) = self.random.choices([*kinds], [*kinds.values()])
        if isinstance(made := what(), Awaitable):
            await made

    def any(self) -> Node | None:
        """Choose a node; None: there is none."""
        nodes = [*self.ironic.fleet.nodes.values()]
        return self.random.choice(nodes) if nodes else None

    def _versioned(self) -> list[str]:
        return [f"{VERSION}{next(self.versions)}"]

    def enrol(self) -> None:
        """Somebody enrols a node; perhaps it has the UUID of a deleted one."""
        self.ironic.agenda.catch_up()
        gone = sorted(self.auditor.missing.keys() - self.ironic.fleet.nodes.keys())
        members = {"name": f"node-{next(self.names)}", "driver": "fake-hardware"}
        if gone and self.random.random() < 0.3:
            members["uuid"] = self.random.choice(gone)
        given = {**members, "traits": self._versioned(), "resource_class": CLASS}
        node = self.ironic.fleet.add(given, "available")
        node.power = "power off"
        self.tell("enrolled", node.uuid, node.members["traits"])

    def change(self) -> None:
        """A node changes."""
        self.ironic.agenda.catch_up()
        if (node := self.any()) is not None:
            maintenance = self.random.random() < 0.3
            traits = self._versioned()
            self.ironic.fleet.touch(node, traits=traits, maintenance=maintenance)
            self.tell("changed", node.uuid, traits)

    def delete(self) -> None:
        """Somebody deletes a node."""
        self.ironic.agenda.catch_up()
        if (node := self.any()) is not None:
            node.members["maintenance"] = True
            self.ironic.fleet.remove(node)
            self.auditor.deleted(node.uuid)
            self.tell("deleted", node.uuid)

    def hide(self) -> None:
        """Lists omit a node for a moment, as those of a database do that is written to."""
        if (node := self.any()) is not None:
            hidden = self.ironic.fleet.hidden
            hidden.add(node.uuid)
            self.later(self.random.uniform(0.1, HIDDEN_MAX), lambda: hidden.discard(node.uuid))

    def trait(self) -> None:
        """Somebody sets a trait by the Placement API."""
        ledger = self.moorage.memory.ledger
        if ledger.providers:
            uuid = self.random.choice(sorted(ledger.providers))
            tags = ledger.tags_of(uuid)
            after = type(tags)(
                tags.traits | {FOREIGN}, tags.aggregates, tags.updated_at, tags.reported
            )
            ledger.tags = {**ledger.tags, uuid: after}
            self.tell("trait of", uuid)

    async def pin(self) -> None:
        """An operator pins nodes, or removes pins."""
        service = self.moorage.service
        if service is None:
            return
        uuids = sorted(self.ironic.fleet.nodes)
        chosen = self.random.sample(uuids, self.random.randrange(len(uuids) + 1))
        member = self.random.choice([None, None, "a", "b"])
        self.tell("pin", member, chosen)
        nodes = [ProviderId(uuid) for uuid in chosen]
        with suppress(Error, asyncio.CancelledError):
            case = PinNodes(GROUP, nodes, member, OPERATOR)
            pinning = self.moorage.process.start(service.submit(case))
            await asyncio.wait([pinning])
            pinning.result()

    def away(self) -> None:
        """Moorage restarts, or is killed."""
        if self.moorage.service is not None:
            seconds = self.random.choice([0.5, 3.0, 30.0, 100.0])
            self.tell("Moorage is away for", seconds)
            self.moorage_away(seconds)

    def ironic_away(self) -> None:
        """Ironic does not answer for a time."""
        self.ironic.away = self.random.choice(["refused", "unavailable"])
        self.tell("Ironic is away")
        self.later(self.random.choice([1.0, 20.0]), lambda: setattr(self.ironic, "away", None))

    async def stop(self) -> None:
        """A reporter is stopped by SIGTERM, and started again later."""
        program = self.random.choice(self.programs)
        if program.process in self.alive:
            self.tell("SIGTERM", program.name)
            await program.end()
            self.revive(program)

    def set_clock(self) -> None:
        """Somebody sets the wall clock."""
        seconds = self.random.choice(JUMPS)
        self.jump += seconds * SECOND
        self.tell("the wall clock jumps by", seconds, "s")

    def _committed(self, before: Any, cases: Any, outcomes: Any) -> None:
        try:
            self.auditor.committed(before, self.moorage.memory.ledger, cases, outcomes)
        except Violation as error:
            self.broken(error)

    async def _heal(self) -> None:
        self.tell("faults stop")
        self.faulty = False
        self.ironic.away = None
        self.moorage_back()
        service = self.moorage.service
        assert service is not None
        with suppress(Error):
            pinned = [node for _, node in self.moorage.memory.fleet.pins]
            case = PinNodes(GROUP, pinned, None, OPERATOR)
            await self.moorage.process.start(service.submit(case))
        for program in self.programs:
            self.again(program)

    def _check_well(self) -> None:
        """The ledger has exactly Ironic's nodes, as they are."""
        ledger, nodes = self.moorage.memory.ledger, self.ironic.fleet.nodes
        said = {
            uuid: (
                version_in(ledger.tags.get(uuid, NO_TAGS).traits),
                {name: one.reserved for name, one in ledger.inventories_of(uuid).items()},
            )
            for uuid in ledger.providers
        }
        had = {
            uuid: (
                version_in(node.members["traits"]),
                {"CUSTOM_BAREMETAL": int(bool(node.members.get("maintenance")))},
            )
            for uuid, node in nodes.items()
        }
        if said != had:
            different = {
                u: (said.get(u), had.get(u)) for u in said | had if said.get(u) != had.get(u)
            }
            raise Violation(f"R10 ledger and Ironic differ: {different}")


def _short(body: Any) -> Any:
    """Return a body for the story, without what is random anyway."""
    nodes = getattr(body, "nodes", None)
    if nodes is None:
        return "renew" if getattr(body, "renew", False) else ""
    return [body.token, *((node.uuid[-3:], node.seen, node.traits) for node in nodes)]
