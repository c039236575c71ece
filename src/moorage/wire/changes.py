"""Every committed change, in order, for clients that follow the ledger and admission.

The values here are after-images, in the form of the whole native API: times are RFC 3339 in
UTC, durations are seconds. A generation counts within its provider or consumer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from moorage.wire.dataclass import dataclass
from moorage.wire.enums import (
    AdaptiveMode,
    AgentState,
    Cause,
    Expire,
    Liveness,
    OnRetry,
    Order,
    PlanOutcome,
    Policy,
    Readiness,
    Result,
    Silence,
    State,
    Verdict,
)
from moorage.wire.reporter_values import ReporterGroupValue, ReporterValue


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldValue:
    """Why nothing of a provider is offered, and the provider from which it inherits that."""

    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderValue:
    """A provider, by its UUID. `root` is the provider at the top of its tree.

    `agent` manages classes of it. `withheld` null: its inventories are offered.
    """

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    created_at: datetime
    updated_at: datetime
    agent: str | None
    withheld: WithheldValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryValue:
    """What a provider offers of a resource class and how much is used, by PROVIDER/CLASS.

    `offered` is what the machine can give now, as its agent reports it; null: no agent manages this
    class. `withheld`: the provider is withheld, so nothing is offered.
    """

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    offered: int | None
    withheld: bool
    used: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedValue:
    """What the reports of a group have set on a provider.

    `traits` are those that its reports have set, and only they remove. `ghost`: the provider is
    gone by the last report, but still has allocations.
    """

    group: str
    traits: list[str]
    ghost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsValue:
    """The traits and aggregates of a provider, and what reports have set, by its UUID."""

    traits: list[str]
    aggregates: list[str]
    reported: list[ReportedValue]
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerValue:
    """A consumer and its allocations by provider and resource class, by its UUID."""

    uuid: str
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None
    allocations: dict[str, dict[str, int]]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NameValue:
    """An existing custom resource class or trait, by its name."""

    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingValue:
    """The least time between two granted units after a burst, in seconds."""

    interval: float
    burst: int
    jitter: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveValue:
    """How the limit of a pool follows the outcomes of starts."""

    floor: int
    ceiling: int
    mode: AdaptiveMode
    good: float
    bad: float
    throttled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCountsValue:
    """The outcomes that were the evidence of a step."""

    ok: int
    failed: int
    throttled: int
    correlated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveStepValue:
    """The last decision of an adaptive limit, with its evidence. `at` is service time."""

    at: datetime
    verdict: Verdict
    before: int
    after: int
    counts: AdaptiveCountsValue
    acted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptationValue:
    """The state of an adaptive limit: the limit that an operator has set, and the last step."""

    configured: int
    last: AdaptiveStepValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FairShareValue:
    """How a pool is divided among those who share it; `half_life` is in seconds."""

    by: str
    half_life: float
    weights: dict[str, int]
    default: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpecValue:
    """The settings of a pool; durations are in seconds."""

    limit: int | None
    ttl: float
    ttl_max: float
    hold: float | None
    cooldown: float
    lock_delay: float | None
    pacing: PacingValue | None
    quota: int | None
    queue_max: int
    labels: dict[str, str]
    on_retry: OnRetry
    expire: Expire
    proxy_ttl: float | None
    askers: list[str] | None
    priority_max: int | None
    hold_max: float | None
    queue_max_per_owner: int | None
    per_member: int | None
    member_group: str | None
    native_slots: bool | None
    order: Order | None
    adaptive: AdaptiveValue | None
    fair_share: FairShareValue | None
    cohort: str | None
    lending: int | None
    borrowing: int | None
    book_ahead: float | None
    book_hours: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTemplateValue:
    """A template of pools, by its name: their settings, and how long they stay when idle."""

    name: str
    spec: PoolSpecValue
    idle: float
    pools_max: int
    generation: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandValue:
    """The template of a pool that a request has made."""

    template: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolValue:
    """A pool, by its name: how many units are occupied and how many tickets wait."""

    name: str
    spec: PoolSpecValue
    paused: bool
    pause_reason: str | None
    paused_until: datetime | None
    paused_by: str | None
    generation: int
    occupied: int
    waiting: int
    created_at: datetime
    updated_at: datetime
    on_demand: OnDemandValue | None
    adaptation: AdaptationValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainValue:
    """Why a slot is not granted any more; `goes`: it is removed once it is free."""

    goes: bool
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotValue:
    """A named unit of a pool, by POOL/SLOT; a pool's name may have slashes, a slot's has none."""

    pool: str
    name: str
    state: str
    owner: str
    lease: str | None
    user_data: dict[str, str]
    updated_at: datetime
    expires_at: datetime | None
    dynamic: bool
    labels: dict[str, str] | None
    drain: DrainValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedValue:
    """Units of a pool; of one with slots: slots in `state`, which become `dest`."""

    pool: str
    units: int
    state: str
    dest: str
    wanted: str | None
    """Labels that the slots must have: a JSON object, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferValue:
    """An offer to hand a lease over: when it was made, and until when it can be accepted."""

    to: str
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValue:
    """Why a lease is kept for inspection after its job, and since when."""

    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseValue:
    """A ticket or lease, by its id, without its token.

    Its times are service time: the wall clock without its jumps. Renewals are not changes.
    """

    id: str
    owner: str
    key: str
    needs: list[NeedValue]
    state: State
    priority: int
    arrival: int
    place: int
    ttl: float | None
    hold: float | None
    labels: dict[str, str]
    forced: bool
    asked_at: datetime
    granted_at: datetime | None
    hold_until: datetime | None
    slots: dict[str, list[str]]
    ended_at: datetime | None
    cause: Cause | None
    detail: str
    outcome: Result | None
    group: str | None
    superseded_by: str | None
    stop_until: datetime | None
    preemptible: float | None
    preempted_by: str | None
    alternatives: list[list[NeedValue]] | None
    """What was asked any of; `needs` are its lines until one is granted. Empty or null: none."""
    offer: OfferValue | None
    """The last one, which may be over."""
    taken_from: str | None
    """The lease of the owner who has handed it over."""
    kept: KeptValue | None
    booking: str | None
    yields_to: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeValue:
    """The outcome of a start, by the id of its lease, with the pool's limit and occupied units."""

    lease: str
    pool: str
    at: datetime
    result: Result
    detail: str
    limit: int
    occupied: int
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedNeedValue:
    """Units of a pool that are kept; 0: all that it has."""

    pool: str
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingValue:
    """A booking, by its id. Its windows are pairs of times, by the wall clock.

    `given_back` are the starts of windows in which nobody came, `taken_at` that of the last window
    in which a lease got units.
    """

    id: str
    owner: str
    key: str
    needs: list[BookedNeedValue]
    windows: list[list[datetime]]
    closure: bool
    lead: float
    no_show: float | None
    note: str
    forced: bool
    generation: int
    created_at: datetime
    updated_at: datetime
    taken_at: datetime | None
    given_back: list[datetime] | None
    cancelled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalValue:
    """How much a part should have of a class: an amount, or a share of what is eligible."""

    amount: int | None
    percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValue:
    """A group of agents, by its name, with its defaults by resource class."""

    name: str
    desired: dict[str, GoalValue]
    silence: Silence
    suspect_since: datetime | None
    waits_until: datetime | None
    generation: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedClassValue:
    """A resource class of a part of a machine; `goal` null: the default of the group applies.

    `present`: the agent registers it.
    """

    eligible: int
    volatile: bool
    max_unit: int | None
    step_size: int
    goal: GoalValue | None
    source: str
    desired: int
    actual: int
    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartValue:
    """A part of a machine, with its classes; `present`: the agent registers it."""

    name: str
    parent: str | None
    present: bool
    classes: dict[str, ManagedClassValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureValue:
    """Why a machine does not have what is desired."""

    code: str
    message: str
    attempts: int
    since: datetime
    next_retry_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """The last plan of an agent, and what became of it in the boot `boot_id`.

    `digest` is of the plan. `reshape` is the reshape that has carried it out, in this boot or in an
    earlier one; null: others have made the shape.
    """

    digest: str
    boot_id: str
    outcome: PlanOutcome
    at: datetime
    reshape: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentValue:
    """An agent, by its UUID. Its parts are by the UUIDs of their providers.

    `plan` is the last one that it has sent and that was not refused.
    """

    uuid: str
    group: str
    labels: dict[str, str]
    root: str | None
    policy: Policy
    policy_reason: str
    policy_by: str
    policy_until: datetime | None
    state: AgentState
    readiness: Readiness
    liveness: Liveness
    boot_id: str | None
    parts: dict[str, PartValue]
    report_generation: int
    desired_generation: int
    desired_generation_seen: int
    failure: FailureValue | None
    generation: int
    created_at: datetime
    updated_at: datetime
    registered_at: datetime | None
    reported_at: datetime | None
    plan: AgentPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportValue:
    """The import of another ledger that is under way; nothing else changes the ledger."""

    source: str
    since: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeValue:
    """A committed reshape, by its id.

    `providers` and `consumers` are how many it has changed. `undoes` is the reshape that it has
    undone, `undone_by` the one that has undone it.
    """

    id: str
    at: datetime
    who: str
    role: str
    reason: str
    digest: str
    providers: int
    consumers: int
    undoes: str | None
    undone_by: str | None


VALUES: dict[str, type[Any]] = {
    "renamed_class": str,
    "resource_class": NameValue,
    "trait": NameValue,
    "provider": ProviderValue,
    "inventory": InventoryValue,
    "tags": TagsValue,
    "consumer": ConsumerValue,
    "pool_template": PoolTemplateValue,
    "pool": PoolValue,
    "slot": SlotValue,
    "lease": LeaseValue,
    "outcome": OutcomeValue,
    "booking": BookingValue,
    "group": GroupValue,
    "agent": AgentValue,
    "reporter_group": ReporterGroupValue,
    "reporter": ReporterValue,
    "pin": str,
    "import": ImportValue,
    "reshape": ReshapeValue,
}
"""The kinds of changes in their order within a revision, and the types of their values.

The value of `import` is the import that is under way; its key is `ledger`.

The value of `pin` is the member that owns the node, also if it is not live; its key is GROUP/NODE.
The value of `renamed_class` is the new name: every inventory and allocation of the class named by
the key belongs to the new class from then on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The n-th change of a revision: `key` now has this `value`; null: it was deleted."""

    revision: int
    n: int
    kind: str
    key: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes in order, and the cursor to continue from, so that none is missed."""

    changes: list[Change]
    next: str
