"""Asking where something fits, claiming it, and describing many providers at once."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAsked:
    """What is asked of one provider or, in the group without suffix, of one tree.

    `resources` are amounts by resource class. Of `required` and `member_of` every entry must hold;
    an entry that is a list holds when one of its names does. None of `forbidden` and
    `not_member_of` may. `in_tree` is a provider of the tree that must serve it.
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
    """Where could all of these groups be served together?

    The words are those of Placement's allocation candidates. `group_policy` isolate gives every
    suffixed group a provider of its own. Each entry of `same_subtree` names suffixes that must be
    served below a provider that serves one of them. `root_required` and `root_forbidden` are about
    the traits of the root of the tree.
    """

    groups: list[GroupAsked]
    group_policy: Literal["none", "isolate"] = "none"
    same_subtree: list[list[str]] = field(default_factory=list)
    root_required: list[str] = field(default_factory=list)
    root_forbidden: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWanted(Question):
    """A wish to hold what is asked for, wherever it fits, for a consumer that does not exist yet.

    Without `consumer` the server makes its UUID. `choose` says which trees are tried first: by
    chance, those that are fullest (pack), or those that are emptiest (spread).
    """

    project_id: str
    user_id: str
    consumer_type: str | None = None
    consumer: str | None = None
    choose: Literal["random", "pack", "spread"] = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a consumer was given, by provider and class, and which providers serve which group."""

    consumer: str
    generation: int
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAsked:
    """What to explain: `query` is a question as JSON."""

    query: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedStep:
    """A condition, and how many meet it and all conditions before it.

    Callers that are bound to a project are not told how large the fleet is: `left` null is some.
    """

    condition: str
    left: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPart:
    """What one provider must serve: a group with a suffix, or one class of the one without.

    `steps` count providers. `nearest` says what those are lacking that meet most of it; null: some
    meet all of it, or the caller is bound to a project.
    """

    suffix: str
    resource_class: str | None
    steps: list[ExplainedStep]
    nearest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why nothing is found, if nothing is.

    `trees` counts the trees that may serve all parts. `without` names conditions such that
    something would be found without any single one of them. `exhausted` false: the search was given
    up. `nearest` says what to change, for people; null: something is found.
    """

    found: bool
    exhausted: bool
    parts: list[ExplainedPart]
    trees: list[ExplainedStep]
    without: list[str]
    nearest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryWanted:
    """What a provider shall offer of one resource class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    allocation_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderWanted:
    """What one provider shall be. What is null stays as it is; a new one needs a name.

    `parent` stays as it is when it is empty; null makes the provider the root of a tree.
    `inventories`, `traits` and `aggregates` are all of them, or null.
    """

    uuid: str
    name: str | None = None
    parent: str | None = ""
    inventories: dict[str, InventoryWanted] | None = None
    traits: list[str] | None = None
    aggregates: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidersWanted:
    """Providers, at most 5,000, in any order; each tree is changed whole or not at all.

    `create_vocabulary` makes custom resource classes and traits that nobody has made.
    """

    providers: list[ProviderWanted]
    create_vocabulary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOutcome:
    """What became of one provider: created, updated, unchanged, or refused with code and message.

    `generation` is the provider's afterwards; null: there is no such provider, or it is not known.
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
