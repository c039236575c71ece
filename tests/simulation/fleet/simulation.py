"""One seed: a fleet around the real service, in virtual time, with every kind of fault.

Machines boot, lack memory, fall silent and come back; messages and answers are lost, and old ones
arrive late; networks are cut; the service restarts or is killed; the wall clock jumps; consumers
claim, move, start and go; operators change what is desired, how machines are used, and what silence
closes. Others created the roots of some machines, and speak for a class there. All random choices
come from the seed, so a seed repeats. At the end the faults stop: then every machine in service
must offer what it has.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.fleet.desired import DesiredSpec
from moorage.core.fleet.model import Agent, Goal, MachineReport, Phase, Silence
from moorage.core.fleet.policy import Action
from moorage.core.ledger.allocations import ConsumerRequest
from moorage.core.ledger.inventory import InventorySpec
from moorage.service.fleet.service import Fleet
from moorage.service.ledger.allocation_cases import AllocationsDelete, AllocationsReplace
from moorage.service.ledger.provider_cases import InventoryUpdate
from tests.core.fleet.build import failure
from tests.service.fleet.machines import PAGES, agent_desired, agent_policy, agent_put, machine
from tests.service.running import TESTER, ManualClock, Running, consumer_id, running
from tests.simulation.fleet.auditor import OTHERS, OTHERS_TOTAL, Auditor, Violation, check
from tests.simulation.fleet.machine import ELIGIBLE, Machine, Message
from tests.simulation.fleet.requests import REFUSALS, never, request, request_of

STEPS = 260
HEALED = 45
"""Seconds without faults after which everything must be well: two TTLs and the work."""

LOST_BEFORE, LOST_AFTER = 0.05, 0.08
"""How often a message is lost before it is executed, and how often its answer is."""

JUMPS = (-3_600, -60, 60, 3_600)


class FleetSimulation:
    """The world of one seed. `run` raises `Violation`."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.folder = folder
        self.clock = ManualClock()
        self.auditor = Auditor()
        self.machines = {n: Machine(n) for n in range(1, self.random.randrange(4, 10))}
        self.consumers = 0
        self.faulty = True
        self.log: deque[str] = deque(maxlen=60)
        self.one: Running | None = None
        self.restart: int | None = None
        """The downtime of a restart that is due, in microseconds."""
        self.kill = False
        self.furthest = 0
        """The most that the wall clock was ever ahead."""
        self.actions: dict[Callable[[], Awaitable[None]], float] = {
            self.tick: 60,
            self.claim: 20,
            self.claim_others: 6,
            self.settle: 2,
            self.begin: 12,
            self.release: 6,
            self.swap: 3,
            self.desire: 5,
            self.overwrite: 3,
            self.operate: 3,
            self.old_message: 5,
            self.trouble: 5,
            self.cut_group: 0.7,
            self.end_process: 1.5,
            self.jump: 1,
        }

    async def run(self) -> "FleetSimulation":
        """Run it; return itself."""
        steps = 0
        try:
            while steps < STEPS + HEALED:
                async with running(self.folder / "m.sqlite", clock=self.clock) as self.one:
                    await self.fleet.liveness_loop.stop()
                    if not steps:
                        await self.create()
                    while self.restart is None and steps < STEPS + HEALED:
                        steps += 1
                        await self.step(steps)
                    if self.kill:
                        self.fleet.directory._agents.clear()  # so that the stop writes nothing
                self.clock.at += self.restart or 0
                self.restart, self.kill = None, False
            return self
        except (Violation, Error, AssertionError, LookupError) as error:
            error.add_note(self.story())
            raise

    @property
    def fleet(self) -> Fleet:
        """The agents of the running service."""
        assert self.one is not None
        return self.one.service.fleet

    def story(self) -> str:
        """Return the seed and what happened last."""
        return "\n".join([f"MOORAGE_SEED={self.seed}; the last events:", *self.log])

    def note(self, *words: object) -> None:
        """Write down an event."""
        self.log.append(" ".join([f"{self.clock.at / SECOND % 1e5:9.0f}", *map(str, words)]))

    async def create(self) -> None:
        """Create the agents, in two groups, and the roots of some of them."""
        assert self.one is not None
        for n, one in self.machines.items():
            group = "rack" if n % 3 == 0 else "default"
            if self.random.random() < 0.5:
                one.given = await self.one.provider(n, **{OTHERS: OTHERS_TOTAL})
            await agent_put(self.fleet, one.uuid, group, {}, None, TESTER, one.given)
            self.auditor.created(n, group, given=one.given is not None)

    async def step(self, number: int) -> None:
        """Let one thing happen, then check everything."""
        if number == STEPS:
            self.heal()
        if number >= STEPS:
            await self.tick()
        else:
            (action,) = self.random.choices([*self.actions], [*self.actions.values()])
            await action()
        self.audit()
        if number == STEPS + HEALED:
            self.check_well()

    def audit(self) -> None:
        """Compare everything that the service knows with the books."""
        assert self.one is not None
        for n, one in self.machines.items():
            agent = self.fleet.directory.get(one.uuid)
            assert agent is not None
            root, part = (
                {} if record is None else record.inventories
                for record in map(self.one.service.index.catalog.record, (one.root, one.part))
            )
            self.auditor.agent(n, agent, part.get(PAGES))
            self.auditor.tree(n, root, part)

    # Machines.

    async def tick(self) -> None:
        """Let a second pass: machines work and speak, and the service looks for silent ones."""
        self.clock.at += SECOND
        self.auditor.passed(SECOND)
        for one in self.machines.values():
            one.work()
            message = one.next_message(self.clock.at, self.random)
            if message is not None and not one.cut:
                await self.deliver(one, message)
        await self.look()

    async def deliver(self, one: Machine, message: Message) -> None:
        """Send a message of an agent; it or its answer may be lost."""
        one.past.append(message)
        if self.faulty and self.random.random() < LOST_BEFORE:
            one.outstanding = message
            return
        answer = await self.execute(one, message)
        if self.faulty and self.random.random() < LOST_AFTER:
            self.note("lost the answer to", message)
            one.outstanding = message
        elif isinstance(answer, Agent):
            one.answered(message, answer, self.clock.at)
        else:
            one.refused(answer)

    async def execute(self, one: Machine, message: Message) -> Agent | str:
        """Let the service execute a message, with the outcome that the books expect."""
        expected = self.auditor.message(one, message)
        answer = await self.send(one, message)
        outcome = "ok" if isinstance(answer, Agent) else answer
        self.note(f"machine {one.number}", message, "->", outcome)
        words = f"machine {one.number} {message}: {outcome}, expected {expected}"
        check(outcome == {"same": "ok"}.get(expected, expected), "F3", words)
        if outcome == "ok":
            self.auditor.heard(one.number, self.clock.at)
        return answer

    async def send(self, one: Machine, message: Message) -> Agent | str:
        """Send a message; return the agent, or the code of the refusal."""
        try:
            if message.kind == "register":
                spec = machine(one.number, message.boot, root=one.given)
                return await self.fleet.register(one.uuid, spec, TESTER)
            if message.kind == "alive":
                return await self.fleet.alive(one.uuid, message.boot, message.generation)
            report = MachineReport(
                message.boot,
                message.generation,
                message.seen,
                Phase.DONE if message.done else Phase.PREPARING,
                {one.part: {PAGES: message.pages}},
                message.consumers,
                failure() if message.failed else None,
            )
            return await self.fleet.report(one.uuid, report, TESTER)
        except Error as refused:
            return refused.code.value

    async def look(self) -> None:
        """Let the service look for silent agents and for drains that are over."""
        await self.fleet.liveness_loop.look()
        found: dict[int, str] = {}
        for n, one in self.machines.items():
            agent = self.fleet.directory.get(one.uuid)
            assert agent is not None
            found[n] = agent.liveness.value
            model = self.auditor.books[n].model
            if model.until is not None and model.until <= self.clock.now():
                model.operate("resume")
        groups = self.fleet.directory.groups()
        suspect = {group.name for group in groups if group.suspect_since is not None}
        self.auditor.silenced(found, suspect, self.clock.at)

    async def old_message(self) -> None:
        """A message from the past arrives once more, or one of a machine with the same id."""
        one = self.any()
        if one.past and not one.cut:
            message = self.random.choice(one.past[-12:])
            if message.kind != "register" and self.random.random() < 0.3:
                message = replace(message, boot=f"clone-{one.number}")
            await self.execute(one, message)

    # Consumers.

    async def claim(self) -> None:
        """Claim pages for a new consumer: it must get them exactly if they are there."""
        one, pages = self.any(), self.random.choice([50, 100, 200, 400])
        self.consumers += 1
        consumer = consumer_id(self.consumers)
        expected = self.auditor.fits(one.number, pages)
        got = await self.allocated([request(consumer, one.number, pages)])
        check(got == expected, "F13", f"{pages} pages of {one.number}: {got}, expected {expected}")
        if got:
            self.auditor.claimed(consumer, one.number, pages)
        self.note("claim", pages, "of machine", one.number, "->", got)

    async def claim_others(self) -> None:
        """Claim a unit that the agent does not speak for, or give one back."""
        assert self.one is not None
        if self.auditor.others and self.random.random() < 0.3:
            gone = self.random.choice([*self.auditor.others])
            await self.one.submit(AllocationsDelete(gone))
            del self.auditor.others[gone]
            return
        one = self.any()
        if one.given is None:
            return
        self.consumers += 1
        consumer = consumer_id(self.consumers)
        expected = self.auditor.fits_others(one.number)
        got = await self.allocated([request_of(consumer, one.given, OTHERS, 1)])
        words = f"{OTHERS} of machine {one.number}: {got}, expected {expected}"
        check(got == expected, "F21", words)
        if got:
            self.auditor.others[consumer] = one.number
        self.note("claim of", words)

    async def allocated(self, requests: list[ConsumerRequest]) -> bool:
        """Return whether the ledger accepts allocations."""
        assert self.one is not None
        try:
            await self.one.submit(AllocationsReplace(requests))
        except Error as refused:
            check(refused.code in REFUSALS, "F13", f"refused: {refused.code}")
            return False
        return True

    async def release(self) -> None:
        """A consumer goes."""
        assert self.one is not None
        if self.auditor.places:
            consumer = self.random.choice([*self.auditor.places])
            await self.one.submit(AllocationsDelete(consumer))
            place = self.auditor.places.pop(consumer)
            self.machines[place.machine].started.pop(consumer, None)
            self.note("release of", consumer)

    async def swap(self) -> None:
        """One consumer replaces another, as in a live migration: the sum stays, so it passes."""
        if not self.auditor.places:
            return
        old = self.random.choice([*self.auditor.places])
        place = self.auditor.places[old]
        self.consumers += 1
        new = consumer_id(self.consumers)
        gone = ConsumerRequest(old, {}, "project", "user", "INSTANCE", 1)
        got = await self.allocated([gone, request(new, place.machine, place.pages)])
        check(got, "F15", "a write that does not raise the sum was refused")
        del self.auditor.places[old]
        self.machines[place.machine].started.pop(old, None)
        self.auditor.claimed(new, place.machine, place.pages)
        self.note("swap of", old, "by", new)

    async def begin(self) -> None:
        """Consumers of a machine ask whether they may start."""
        one = self.any()
        model = self.auditor.books[one.number].model
        if model.boots[-1:] != [one.boot_id] or model.state != "active":
            return
        for consumer in [c for c, p in self.auditor.places.items() if p.machine == one.number]:
            start = await self.fleet.may_start(one.uuid, one.boot_id, consumer, 0.0, never)
            self.note(consumer, "may start:", start.may_start)
            self.auditor.started(one, consumer, start.may_start)

    # Operators.

    async def desire(self) -> None:
        """Change what a machine should have."""
        one = self.any()
        model = self.auditor.books[one.number].model
        if not model.held or model.state != "active":
            return
        amount = self.random.choice([0, 200, 500, 800, ELIGIBLE])
        model.set([*model.held], amount)
        spec = DesiredSpec(PAGES, goal=Goal(amount=amount))
        await agent_desired(self.fleet, one.uuid, spec, "", TESTER)
        self.note("desired of machine", one.number, amount)

    async def settle(self) -> None:
        """Say what the silence of a group's agents closes."""
        group, silence = self.random.choice(["default", "rack"]), self.random.choice([*Silence])
        await self.fleet.group_defaults.put(group, {}, TESTER, silence)
        self.auditor.settled(group, silence.value)
        self.note("silence of", group, "closes", silence.value)

    async def overwrite(self) -> None:
        """A client of the Placement API writes a total, which becomes desired."""
        assert self.one is not None
        one, total = self.any(), self.random.choice([100, 400, ELIGIBLE])
        model = self.auditor.books[one.number].model
        record = self.one.service.index.catalog.record(one.part)
        if record is None or PAGES not in record.inventories or model.state != "active":
            return
        spec = InventorySpec(total)
        await self.one.submit(InventoryUpdate(one.part, PAGES, record.provider.generation, spec))
        if total != record.inventories[PAGES].total:
            model.set([*model.held], total)
        self.note("total of machine", one.number, total)

    async def operate(self) -> None:
        """Drain, resume, or, more rarely, end a machine."""
        one = self.any()
        model, random = self.auditor.books[one.number].model, self.random
        ends = [1, 2, 1, 6] if model.policy == "expunged" else [6, 8, 2, 2]
        (action,) = random.choices([*Action], ends)
        until = None
        if action is Action.DRAIN and random.random() < 0.4:
            until = Instant(self.clock.now() + random.randrange(5, 40) * SECOND)
        expected = model.operate(action.value, until, self.is_used(one))
        try:
            await agent_policy(self.fleet, one.uuid, action, "", TESTER, until=until)
            outcome = "ok"
        except Error as refused:
            outcome = refused.code.value
        words = f"{action} of machine {one.number}: {outcome}, expected {expected}"
        self.note(words)
        check(outcome == {"same": "ok"}.get(expected, expected), "F18", words)

    def is_used(self, one: Machine) -> bool:
        """Return whether consumers hold anything of a machine's tree."""
        return bool(self.auditor.used(one.number) or self.auditor.others_of(one.number))

    # Faults.

    async def trouble(self) -> None:
        """Something happens to one machine."""
        one = self.any()
        what = self.random.choice(["reboot", "memory", "network", "agent"])
        self.note(what, "of machine", one.number)
        if what == "reboot":
            one.reboot()
        elif what == "memory":
            one.giving = not one.giving
        elif what == "network":
            one.cut = not one.cut
        else:
            one.stopped = not one.stopped

    async def cut_group(self) -> None:
        """The network of a whole group is cut, or mended."""
        group, cut = self.random.choice(["default", "rack"]), self.random.random() < 0.7
        for n, one in self.machines.items():
            if self.auditor.books[n].group == group:
                one.cut = cut
        self.note("network of", group, "cut:", cut)

    async def end_process(self) -> None:
        """The service restarts, or is killed."""
        self.kill = self.random.random() < 0.5
        self.restart = self.random.randrange(8) * SECOND
        if self.kill:
            self.auditor.killed(self.clock.at, set_back=self.clock.jump < self.furthest)
        else:
            self.auditor.stopped(self.clock.at)
        self.note("killed" if self.kill else "stopped", "for", self.restart / SECOND, "s")

    async def jump(self) -> None:
        """Somebody sets the wall clock."""
        seconds = self.random.choice(JUMPS)
        self.clock.jump += seconds * SECOND
        self.furthest = max(self.furthest, self.clock.jump)
        self.note("the wall clock jumps by", seconds, "s")

    def heal(self) -> None:
        """End all faults."""
        self.faulty = False
        for one in self.machines.values():
            one.giving, one.cut, one.stopped = True, False, False
        self.note("all faults end")

    def check_well(self) -> None:
        """Every machine in service must be heard of, ready, and offer what is desired."""
        for n, one in self.machines.items():
            model = self.auditor.books[n].model
            if model.state != "active":
                continue
            seen = (model.liveness, model.readiness)
            check(seen == ("fresh", "ready"), "end", f"machine {n} is {seen}")
            desired = next(map(model.desired, model.held))
            check(one.pages >= desired, "end", f"machine {n} has {one.pages} of {desired}")
        check(not self.auditor.suspect, "end", f"{self.auditor.suspect} are still suspect")

    def any(self) -> Machine:
        """Choose a machine."""
        return self.random.choice([*self.machines.values()])
