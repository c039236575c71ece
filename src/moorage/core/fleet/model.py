"""The values of the fleet. All are immutable.

An agent has four independent axes: its policy is set by operators, its state only ever ends, its
readiness follows from its reports, and its liveness from the clock of the server.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from moorage.core.clock import Instant
from moorage.core.ids import AgentId, ConsumerId, ProviderId

DEFAULT_GROUP = "default"


class Policy(StrEnum):
    """The policy of operators."""

    IN_SERVICE = "in_service"
    NO_PROVISION = "no_provision"
    """Nothing new is placed on it."""
    EXPUNGED = "expunged"
    """It is never used again. Final."""


class State(StrEnum):
    """Whether the agent may ever speak again."""

    ACTIVE = "active"
    DECOMMISSIONED = "decommissioned"
    """Final; its UUID is used up."""


class Readiness(StrEnum):
    """The state of the machine by its reports since it booted."""

    UNREGISTERED = "unregistered"
    PREPARING = "preparing"
    READY = "ready"
    DEGRADED = "degraded"
    """The machine is prepared, but has less than is desired."""
    FAILED = "failed"
    """The machine is prepared, or reports a failure, and has nothing of what is desired."""


class Liveness(StrEnum):
    """Whether the agent has been heard of in time, by the clock of the server."""

    FRESH = "fresh"
    LATE = "late"
    LOST = "lost"


class Silence(StrEnum):
    """What is closed while an agent is silent."""

    OWN = "own"
    """The classes that the agent manages; and all of the machine if the server made its root."""
    ALL = "all"
    """Every class of the machine's tree."""


class Phase(StrEnum):
    """Whether the agent has finished its first full pass since it registered."""

    PREPARING = "preparing"
    DONE = "done"


class Source(StrEnum):
    """Where a desired amount comes from."""

    AGENT = "agent"
    """Set for this agent."""
    GROUP = "group"
    """The default of its group."""
    PLACEMENT = "placement"
    """A client of the Placement API wrote `total`."""
    NONE = "none"


class Goal(Struct, frozen=True):
    """How much a part should have of a class: exactly one of an amount and a share in percent."""

    amount: int | None = None
    percent: float | None = None


class ManagedClass(Struct, frozen=True):
    """A resource class of a part.

    `goal` was set for this pair; None: the default of the group applies. `desired` is the goal as
    an amount. `actual` is from the last accepted report of this boot. `volatile`: it is 0 after a
    boot. `present`: the last register lists it; of a class that is not, nothing is there.
    """

    eligible: int
    volatile: bool = True
    max_unit: int | None = None
    step_size: int = 1
    goal: Goal | None = None
    source: Source = Source.NONE
    desired: int = 0
    actual: int = 0
    present: bool = True


class Part(Struct, frozen=True):
    """A provider whose classes the agent manages.

    `name` is the last part of the provider's name. `parent` None: it is the root of the machine.
    `present`: it is part of the last register. Of a
    part that is not, nothing is there. `born`: the generation of the provider at the register of
    this boot; consumers that got their place before are unconfirmed until they are reported.
    """

    name: str
    parent: ProviderId | None
    classes: Mapping[str, ManagedClass]
    present: bool = True
    born: int = 0


class Failure(Struct, frozen=True):
    """Why a machine does not have what is desired, as reported."""

    code: str
    message: str
    attempts: int
    since: Instant
    next_retry_at: Instant | None = None


class MachineFacts(Struct, frozen=True):
    """The hostname and software of the machine, for people."""

    hostname: str
    kernel: str = ""
    version: str = ""


Amounts = dict[ProviderId, dict[str, int]]
"""Amounts by provider and resource class."""


class MachineReport(Struct, frozen=True):
    """The full state of a machine, as the agent sent it; equal reports are repeats."""

    boot_id: str
    report_generation: int
    desired_generation_seen: int
    phase: Phase
    actual: Amounts
    consumers: frozenset[ConsumerId] | None = None
    failure: Failure | None = None


class PlanOutcome(StrEnum):
    """What became of the plan that an agent has sent."""

    DONE = "done"
    """It was carried out in this boot."""
    SATISFIED = "satisfied"
    """The shape was there already."""
    UNDONE = "undone"
    """It was carried out in this boot, and an operator has undone it since."""


class AgentPlan(Struct, frozen=True):
    """The last plan of an agent, and what became of it in a boot.

    `digest` is of the document. `reshape` is the id of the reshape that has carried it out, in this
    boot or in an earlier one; None: others have made the shape.
    """

    digest: str
    boot_id: str
    outcome: PlanOutcome
    at: Instant
    reshape: str | None = None


class Agent(Struct, frozen=True):
    """The agent of one machine.

    `number` is small and unique; liveness is kept by it. `root` is the provider at the top of the
    machine; None until it has registered. `owns_root`: the server created the root for this agent.
    `given_root` is the existing provider that an operator has given it as root; None: it may only
    have one with its own UUID. `accepted`: an operator has created it, or used it once.
    `operator_labels` are those of `labels` that no machine changes.
    `past_boots` are superseded, the latest last. `report` is the last accepted one of this boot,
    unless a class of it has vanished since, and is back.
    `confirmed` are the consumers that reports of this boot have listed; of very many only the last.
    `generation` rises with every change that operators see.
    """

    uuid: AgentId
    number: int
    group: str
    created_at: Instant
    updated_at: Instant
    labels: Mapping[str, str] = field(default_factory=dict)
    operator_labels: Mapping[str, str] = field(default_factory=dict)
    root: ProviderId | None = None
    owns_root: bool = False
    given_root: ProviderId | None = None
    accepted: bool = True
    policy: Policy = Policy.IN_SERVICE
    policy_reason: str = ""
    policy_by: str = ""
    policy_until: Instant | None = None
    state: State = State.ACTIVE
    readiness: Readiness = Readiness.UNREGISTERED
    liveness: Liveness = Liveness.FRESH
    boot_id: str | None = None
    past_boots: tuple[str, ...] = ()
    facts: MachineFacts | None = None
    parts: Mapping[ProviderId, Part] = field(default_factory=dict)
    report_generation: int = 0
    report: MachineReport | None = None
    confirmed: frozenset[ConsumerId] = frozenset()
    desired_generation: int = 0
    desired_generation_seen: int = 0
    phase: Phase = Phase.PREPARING
    failure: Failure | None = None
    generation: int = 0
    registered_at: Instant | None = None
    reported_at: Instant | None = None
    returned_at: Instant | None = None
    """When it was heard of again after a silence."""
    silence: Silence = Silence.OWN
    """As its group has it."""
    plan: AgentPlan | None = None
    """The last plan that it has sent and that was not refused."""


class Group(Struct, frozen=True):
    """A group of agents: defaults, and the brake that stops mass losses.

    `suspect_since`: many members fell silent together, so none of them is declared lost; None: no.
    `waits_until`: an operator wants it to stay so at least until then.
    """

    name: str
    created_at: Instant
    updated_at: Instant
    desired: Mapping[str, Goal] = field(default_factory=dict)
    suspect_since: Instant | None = None
    waits_until: Instant | None = None
    generation: int = 0
    silence: Silence = Silence.OWN
