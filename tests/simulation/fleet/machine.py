"""One simulated machine: what it really has, and the agent that speaks for it.

The agent keeps the protocol of docs/reference/agents.md: one request at a time; after an error it
registers again. A message may be lost before it is executed, or its answer may be.
"""

from dataclasses import dataclass, field, replace
from random import Random

from moorage.core.clock import SECOND
from moorage.core.fleet.model import Agent
from moorage.core.ids import AgentId, ConsumerId, ProviderId
from tests.service.fleet.machines import PAGES, agent_id, part_id

ELIGIBLE = 1_000
STEP = 300
"""Pages that the kernel gives at once."""

BEAT = 5 * SECOND


@dataclass(frozen=True)
class Message:
    """What an agent sends: `kind` is register, report or alive."""

    kind: str
    boot: str
    generation: int = 0
    pages: int = 0
    done: bool = False
    failed: bool = False
    seen: int = 0
    consumers: frozenset[ConsumerId] | None = None


@dataclass
class Machine:
    """The truth about a machine, and what its agent knows."""

    number: int
    boot: int = 1
    given: ProviderId | None = None
    """Its root, if others created it."""
    pages: int = 0
    giving: bool = True
    """Whether the kernel gives pages now."""
    cut: bool = False
    """Whether the network between it and the service is cut."""
    stopped: bool = False
    """Whether its agent does not run."""
    inert: bool = False
    """Whether the agent has ended, because it was decommissioned."""
    registered: bool = False
    done: bool = False
    generation: int = 0
    desired: int = 0
    desired_generation: int = 0
    sent: Message | None = None
    """The report that was accepted last in this boot."""
    outstanding: Message | None = None
    """A message whose answer was lost."""
    beat_at: int = 0
    started: dict[ConsumerId, int] = field(default_factory=dict)
    past: list[Message] = field(default_factory=list)
    """Messages that were sent, for delayed duplicates."""

    @property
    def uuid(self) -> AgentId:
        """Its agent."""
        return agent_id(self.number)

    @property
    def root(self) -> ProviderId:
        """The top of its tree: unless others created it, it has the agent's UUID."""
        return self.given or ProviderId(self.uuid)

    @property
    def part(self) -> ProviderId:
        """Its only part."""
        return part_id(self.number)

    @property
    def boot_id(self) -> str:
        """Its boot."""
        return f"boot-{self.number}-{self.boot}"

    def reboot(self) -> None:
        """Lose all memory, and begin again."""
        self.boot += 1
        self.pages, self.done, self.registered = 0, False, False
        self.sent = self.outstanding = None
        self.started.clear()

    def work(self) -> None:
        """Prepare pages for what is desired; pages of started guests stay."""
        if not self.registered:
            return
        if self.pages < self.desired and self.giving:
            self.pages = min(self.desired, self.pages + STEP)
        elif self.pages > self.desired:
            self.pages = max(self.desired, sum(self.started.values()))
        if self.pages >= self.desired or not self.giving:
            self.done = True

    def next_message(self, now: int, random: Random) -> Message | None:
        """Return what the agent sends now; None: nothing."""
        if self.inert or self.stopped:
            return None
        if self.outstanding is not None and random.random() < 0.5:
            return self.outstanding
        if not self.registered:
            return Message("register", self.boot_id)
        if self._changed():
            return self._report(random)
        if now - self.beat_at < BEAT:
            return None
        return Message("alive", self.boot_id, self.generation)

    def answered(self, message: Message, agent: Agent, now: int) -> None:
        """Take the answer to a message."""
        self.outstanding, self.beat_at = None, now
        if message.boot != self.boot_id:
            return
        if message.kind == "register":
            self.registered = True
            self.generation = agent.report_generation
            self.sent = None
        elif message.kind == "report":
            self.generation, self.sent = message.generation, message
        self.desired_generation = agent.desired_generation
        self.desired = agent.parts[self.part].classes[PAGES].desired

    def refused(self, code: str) -> None:
        """Take a refusal: begin again, or end."""
        self.outstanding = None
        if code == "decommissioned":
            self.inert = True
        self.registered = False

    def _changed(self) -> bool:
        """Return whether anything is so that the last report has not said."""
        if self.sent is None:
            return True
        seen = replace(self.sent, generation=0, consumers=None)
        return seen != replace(self._report(), generation=0, consumers=None)

    def _report(self, random: Random | None = None) -> Message:
        failed = not self.giving and self.pages < self.desired
        listed = random is not None and random.random() < 0.7
        return Message(
            "report",
            self.boot_id,
            self.generation + 1,
            self.pages,
            self.done,
            failed,
            self.desired_generation,
            frozenset(self.started) if listed else None,
        )
