"""Questions where something fits, claims, and bulk changes of providers."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from moorage.wire.dataclass import dataclass
from moorage.wire.defaults import MAX_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAsked:
    """What one provider or, in the group without a suffix, one tree must offer.

    `resources` are amounts by resource class. Every entry of `required` and `member_of` must be
    met; an entry that is a list is met by any one of its names. No entry of `forbidden` and
    `not_member_of` may be met. `in_tree` is a provider of the only tree that may serve it.
    """

    suffix: str = ""
    resources: dict[str, int] = field(default_factory=dict)
    required: list[str | list[str]] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    member_of: list[str | list[str]] = field(default_factory=list)
    not_member_of: list[str] = field(default_factory=list)
    in_tree: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Groups that must be served together.

    The terms are those of Placement's allocation candidates. `group_policy` isolate requires a
    separate provider for every suffixed group. Each entry of `same_subtree` names suffixes that
    must be served below a provider that serves one of them. `root_required` and `root_forbidden`
    are traits of the root of the tree.
    """

    groups: list[GroupAsked]
    group_policy: Literal["none", "isolate"] = "none"
    same_subtree: list[list[str]] = field(default_factory=list)
    root_required: list[str] = field(default_factory=list)
    root_forbidden: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWanted(Question):
    """A request for allocations, wherever they fit, for a consumer that does not exist yet.

    Without `consumer` the server generates its UUID. `choose` says which trees are tried first: in
    random order, the fullest (pack), or the emptiest (spread). A claim with a `reason`, which only
    operators may give, is written to the audit log.
    """

    project_id: str
    user_id: str
    consumer_type: str | None = None
    consumer: str | None = None
    choose: Literal["random", "pack", "spread"] = "random"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The allocations of a consumer by provider and class, and the providers of each group."""

    consumer: str
    generation: int
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAsked:
    """What to explain: `query` is a question as JSON, `candidates` one as a query string.

    `candidates` has the parameters of Placement's `GET /allocation_candidates` at its latest
    microversion. An address or a line of a log that contains them will do.
    """

    query: str = ""
    candidates: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedStep:
    """A condition, and how many meet it and all conditions before it.

    For a caller that is bound to a project, `left` is null instead of a number above 0.
    """

    condition: str
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPart:
    """What one provider must serve: a suffixed group, or one class of the unsuffixed group.

    `steps` count providers. `nearest` says what the closest providers lack; null: some providers
    lack nothing, or the caller is bound to a project.
    """

    suffix: str
    resource_class: str | None
    steps: list[ExplainedStep]
    nearest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedAgent:
    """An agent whose machine would serve a part, if all that is desired were offered.

    `reason` says why it is not, `detail` what an operator or the machine said about it; `provider`
    is the first one that would serve a part, and `resource_class` the class of which it offers too
    little.
    """

    agent: str
    hostname: str
    group: str
    provider: str
    resource_class: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedShare:
    """What would be taken of one provider, and what would be left of it, by resource class."""

    provider: str
    name: str
    takes: dict[str, int]
    left: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPlace:
    """A tree where the question fits: its root, and what its first candidate would take."""

    root: str
    name: str
    shares: list[ExplainedShare]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedMiss:
    """A place that comes nearest to a question that fits nowhere.

    `part` is the suffix or the class that the provider nearly serves; empty: the provider is the
    root of a tree that nearly serves all parts. `lacks` says what is missing there, for people.
    """

    part: str
    provider: str
    name: str
    root: str
    lacks: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Where a question fits, or why nothing is found.

    `trees` counts the trees that may serve all parts. `without` names conditions; if any one of
    them were dropped, something would be found. `exhausted` false: the search stopped early.
    `nearest` says what to change, for people; null: something is found. `not_offered` counts
    agents whose machines would serve a part, by the reason why they offer too little; `agents` are
    the first 20. Both are empty if something is found, or the caller is bound to a project.

    `places` are the first 20 trees by name where it fits; `more_places` counts the others. With
    `places_exact` false, some of the others may be unable to serve all parts together. If nothing
    is found, `misses` are the 20 places that lack the least, and `more_misses` counts those that
    miss as few conditions. For a caller that is bound to a project all of these are empty.
    """

    found: bool
    exhausted: bool
    parts: list[ExplainedPart]
    trees: list[ExplainedStep]
    without: list[str]
    nearest: str | None
    not_offered: dict[str, int] = field(default_factory=dict)
    agents: list[ExplainedAgent] = field(default_factory=list)
    places: list[ExplainedPlace] = field(default_factory=list)
    more_places: int = 0
    places_exact: bool = True
    misses: list[ExplainedMiss] = field(default_factory=list)
    more_misses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryWanted:
    """The wanted inventory of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_UNIT
    step_size: int = 1
    allocation_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderWanted:
    """The wanted state of one provider. A null field stays unchanged; a new provider needs a name.

    An empty `parent` stays unchanged; null makes the provider the root of a tree. `inventories`,
    `traits` and `aggregates` replace all existing ones, unless they are null.
    """

    uuid: str
    name: str | None = None
    parent: str | None = ""
    inventories: dict[str, InventoryWanted] | None = None
    traits: list[str] | None = None
    aggregates: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidersWanted:
    """At most 5,000 providers, in any order; each tree is changed completely or not at all.

    `create_vocabulary` creates missing custom resource classes and traits.
    """

    providers: list[ProviderWanted]
    create_vocabulary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOutcome:
    """The outcome for one provider: created, updated, unchanged, or refused with code and message.

    `generation` is its generation afterwards; null: the provider does not exist, or it is unknown.
    """

    uuid: str
    outcome: str
    generation: int | None
    code: str | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOutcomes:
    """One outcome for each provider, in the order of the request, and how many of each kind."""

    results: list[ProviderOutcome]
    created: int
    updated: int
    unchanged: int
    refused: int
