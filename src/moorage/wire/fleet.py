"""Agents, which report what a machine really has, and their groups. All durations are in seconds.

A *pair* is a provider and a resource class. `desired` and `actual` are amounts by provider and
resource class.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.changes import AgentPlan, FailureValue
from moorage.wire.dataclass import dataclass
from moorage.wire.enums import (
    AgentState,
    Directive,
    Liveness,
    Phase,
    Policy,
    Readiness,
    Silence,
)
from moorage.wire.pages import PageAsked
from moorage.wire.reshapes import ReshapePlan

Amounts = dict[str, dict[str, int]]
"""Amounts by provider and resource class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleClass:
    """How much of a resource class a part of the machine could have at most.

    `volatile`: the amount is 0 after a boot, until the agent has prepared it again. `max_unit` and
    `step_size` become those of the inventory; without them clients of the Placement API set these.
    """

    eligible: int
    volatile: bool = True
    max_unit: int | None = None
    step_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPart:
    """A provider whose classes an agent manages: a child of the root, or the root itself.

    The UUID of a child is the version 5 UUID of `name` in the namespace of the agent's UUID; the
    name of its provider is that of the root, an underscore, and `name`. The server creates missing
    children. `parent` null: the root.
    """

    provider: str
    name: str
    parent: str | None = None
    classes: dict[str, EligibleClass]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What runs on the machine, for people."""

    hostname: str
    kernel: str = ""
    version: str = ""
    """The version of the agent's program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRequest:
    """What an agent sends when it starts, and whenever the server or its parts have changed.

    `root` is an existing provider, such as a compute node of Nova: one with the agent's UUID, or
    one that an operator has given to the agent. Null: the server creates a provider with the
    agent's UUID, called `facts.hostname`, once the agent is accepted. It cannot change later.
    """

    boot_id: str
    facts: MachineFacts
    root: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    parts: list[AgentPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFailure:
    """Why the machine does not have what is desired, after `attempts` tries since `since`."""

    code: str
    message: str
    attempts: int
    next_retry_in: float | None = None
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The full state of a machine: every part and class that was registered, and no others.

    `report_generation` is one more than the last that the server has. A report is repeated with
    the same generation until it is answered. `consumers` are the consumers that run on the machine;
    null: unknown. `plan` changes the shape of the machine's tree, once for each boot and content;
    if it is refused, so is the report, with the violations.
    """

    boot_id: str
    report_generation: int
    desired_generation_seen: int
    phase: Phase
    actual: Amounts
    consumers: list[str] | None = None
    failure: AgentFailure | None = None
    plan: ReshapePlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AliveRequest:
    """A sign of life. Its fields must be those that the server has."""

    boot_id: str
    report_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOrders:
    """The answer to a register and to a report: what the machine should have.

    Without a sign of life for `ttl` the agent is late. The next one is due in `next_in`. `plan` is
    what became of the plan in the report; null: there was none.
    """

    report_generation: int
    desired_generation: int
    desired: Amounts
    ttl: float
    next_in: float
    directive: Directive
    plan: AgentPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AliveAnswer:
    """The answer to a sign of life. With the directive `report`, send the present state."""

    desired_generation: int
    ttl: float
    next_in: float
    directive: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAsked:
    """Whether a consumer may start in this boot of the machine; wait up to `wait` until it may.

    `boot_id` is required.
    """

    boot_id: str | None = None
    wait: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAnswer:
    """Whether a consumer may start now on the machine of an agent.

    Consumers start in the order in which they got their place. `needed` is what this one holds, and
    `ahead` what those before it hold; all must be covered by `actual`.
    """

    may_start: bool
    reason: str
    needed: Amounts
    ahead: Amounts
    actual: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWanted:
    """An agent as an operator wants it.

    `policy` null: unchanged; of a new agent in_service. `root` is a provider that the agent may
    have as root although its UUID is another one; null: unchanged.
    """

    group: str = "default"
    labels: dict[str, str] = field(default_factory=dict)
    policy: Policy | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRootRequest:
    """The existing provider that an agent may have as the root of its machine."""

    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrollRequest:
    """A new agent that no operator has accepted yet: its policy is no_provision."""

    group: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """An enrolled agent and its token, which cannot be shown again."""

    agent: Agent
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredRequest:
    """How much a machine should have of a class: an amount, or a share of what is eligible.

    Exactly one of `amount` and `percent` (above 0, at most 100), or neither: the default of the
    group applies again. `provider` null: every part that has the class; an amount is then meant for
    each of them.
    """

    resource_class: str
    provider: str | None = None
    amount: int | None = None
    percent: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """Why an operator changes the policy or the state of an agent.

    `until`: when a drain ends by itself; `lasts` is the same as a duration, by the server's clock.
    `force`: decommission although there are allocations.
    """

    reason: str = ""
    until: datetime | None = None
    lasts: float | None = None
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedClass:
    """A resource class of a part of a machine, as desired, reported and offered.

    `source` says where `desired` comes from. `why` is the reason why less than `desired` is
    offered; null: all of it is.
    """

    eligible: int
    volatile: bool
    desired: int
    source: Literal["agent", "group", "placement", "none"]
    percent: float | None
    actual: int
    offered: int
    used: int
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShown:
    """A part of a machine; its classes are by name. `present` false: no longer registered."""

    provider: str
    name: str
    parent: str | None
    present: bool
    classes: dict[str, ManagedClass]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as it is.

    `root` is that of its last register; `given_root` is one that an operator has given it.
    `accepted` false: it has enrolled, and no operator has accepted it.
    `withheld` is the reason why nothing at all is offered of its tree; null: it is open.
    `unconfirmed` are consumers that got their places before this boot and were not reported since.
    `over`: more is used than offered. `owns_root`: the server created the root for this agent, so
    its silence closes the whole tree. `plan` is the last one that it has sent and that was not
    refused.
    """

    id: str
    group: str
    labels: dict[str, str]
    root: str | None
    given_root: str | None = None
    owns_root: bool = False
    accepted: bool = True
    policy: Policy
    policy_reason: str
    policy_by: str
    policy_until: datetime | None
    state: AgentState
    readiness: Readiness
    liveness: Liveness
    heard_at: datetime | None
    boot_id: str | None
    facts: MachineFacts | None
    report_generation: int
    desired_generation: int
    desired_generation_seen: int
    phase: Phase
    failure: FailureValue | None
    withheld: str | None
    offered: bool
    over: bool
    unconfirmed: list[str]
    parts: list[PartShown]
    generation: int
    created_at: datetime
    updated_at: datetime
    registered_at: datetime | None
    reported_at: datetime | None
    plan: AgentPlan | None = None

    @property
    def name(self) -> str:
        """What people call it: its host name, or its id before its first register."""
        return self.id if self.facts is None else self.facts.hostname


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsAsked(PageAsked):
    """Which agents; a filter that is null matches all. `label` is KEY or KEY=VALUE.

    `id_prefix`: only those whose UUID begins with it; at least 8 characters.
    """

    group: str | None = None
    policy: Policy | None = None
    state: AgentState | None = None
    readiness: Readiness | None = None
    liveness: Liveness | None = None
    label: str | None = None
    offered: bool | None = None
    id_prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPage:
    """Agents by UUID, and the cursor of the next page; null: this is the last."""

    agents: list[Agent]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDesired:
    """The default of a group for a resource class: an amount for each part, or a percentage."""

    amount: int | None = None
    percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWanted:
    """The defaults of a group of agents, by resource class; an omitted class has none.

    `silence` is what is closed while one of its agents is silent; null: unchanged.
    """

    desired: dict[str, GroupDesired] = field(default_factory=dict)
    silence: Silence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGroup:
    """A group of agents.

    `suspect_network`: many of its agents fell silent together, so none of them is declared lost,
    see `docs/concepts/fleet.md`. `late` and `lost` count the members in service.
    """

    name: str
    desired: dict[str, GroupDesired]
    members: int
    late: int
    lost: int
    suspect_network: bool
    suspect_since: datetime | None
    waits_until: datetime | None
    silence: Silence = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Groups by name, and the cursor of the next page; null: this is the last."""

    groups: list[AgentGroup]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWaitRequest:
    """How long the members of a suspect group are not declared lost, whatever happens."""

    seconds: float
