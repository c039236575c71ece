"""Reshape plans: how trees of providers change their shape while consumers hold allocations there.

`class` and `from` are words of Python, so the fields of these members end with `_`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Literal

from moorage.wire.changes import ReshapeValue
from moorage.wire.dataclass import dataclass
from moorage.wire.enums import MovePolicy
from moorage.wire.pages import PageAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapePlace:
    """The inventory of one resource class of one provider."""

    provider: str
    class_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeProvider:
    """A provider to create; `parent` null: the root of a tree of its own."""

    uuid: str
    name: str
    parent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeMove:
    """Units that move from a place to a place, together with the allocations on them.

    `amount` "all": what other moves of the same source and the consumers that stay leave; 0: only
    consumers move. `assign`
    says how many units of each consumer go to which provider; units that it assigns to the source
    stay. `policy` is for the other consumers: explicit refuses them, only_if_unused lets them stay,
    fit finds a target for each of them, which the plan must allow with `fungible`.
    """

    from_: ReshapePlace
    to: ReshapePlace
    amount: int | Literal["all"] = "all"
    assign: dict[str, dict[str, int]] = field(default_factory=dict)
    policy: MovePolicy = "explicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeFigures:
    """The figures of an inventory that a plan sets; null: as they are, or as they are derived."""

    total: int | None = None
    reserved: int | None = None
    min_unit: int | None = None
    max_unit: int | None = None
    step_size: int | None = None
    allocation_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeGenerations:
    """Generations by UUID; that of a consumer which does not exist is null."""

    providers: dict[str, int] = field(default_factory=dict)
    consumers: dict[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapePlan:
    """How providers change their shape: all of it in one transaction, or nothing.

    `parents`, `rename`, `inventories`, `traits`, `aggregates` and `drain` are by provider; traits
    and aggregates are complete, an inventory that is null is deleted. What is in `drain` is drained
    with that reason, unless it is drained already. Consumers in `stay` keep their
    units on the source of each move; those in `release` may lose units. `vacate` names, for each of
    these, providers of which it loses all that it holds. For consumers in `accept_drift` the
    evidence in `assign` counts, whatever the ledger says. `fungible` are classes of which any unit
    is as good as any other. `expect` refuses the plan if a generation is another one.
    `cross_tree` permits that the named providers are of several trees.
    """

    create: list[ReshapeProvider] = field(default_factory=list)
    parents: dict[str, str | None] = field(default_factory=dict)
    rename: dict[str, str] = field(default_factory=dict)
    moves: list[ReshapeMove] = field(default_factory=list)
    inventories: dict[str, dict[str, ReshapeFigures | None]] = field(default_factory=dict)
    traits: dict[str, list[str]] = field(default_factory=dict)
    aggregates: dict[str, list[str]] = field(default_factory=dict)
    drain: dict[str, str] = field(default_factory=dict)
    delete: list[str] = field(default_factory=list)
    stay: list[str] = field(default_factory=list)
    release: list[str] = field(default_factory=list)
    vacate: dict[str, list[str]] = field(default_factory=dict)
    accept_drift: list[str] = field(default_factory=list)
    fungible: list[str] = field(default_factory=list)
    expect: ReshapeGenerations = field(default_factory=ReshapeGenerations)
    cross_tree: bool = False


def releasing(consumer: str, generation: int, providers: Iterable[str]) -> ReshapePlan:
    """Return the plan that releases all that a consumer holds, unless it changes meanwhile."""
    return ReshapePlan(
        release=[consumer],
        vacate={consumer: [*providers]},
        expect=ReshapeGenerations(consumers={consumer: generation}),
        cross_tree=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeAsked:
    """A plan to preview: nothing is written, and nothing is locked."""

    plan: ReshapePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeEffect:
    """One change that a plan makes.

    `kind` is provider_created, provider_renamed, provider_moved, inventory_set, traits_set,
    aggregates_set, provider_drained, allocations_set or provider_deleted. `before` and `after` are:
    for created and deleted providers their name and parent; a name; a parent; the figures of an
    inventory; traits; aggregates; the reason of a drain; the amounts of a consumer by provider and
    class, only at the places that change.
    """

    kind: str
    provider: str | None = None
    class_: str | None = None
    consumer: str | None = None
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeNode:
    """The name and the parent of a provider."""

    name: str
    parent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeProviderChange:
    """A provider of the trees that a plan changes, before and after; null: it does not exist."""

    provider: str
    before: ReshapeNode | None
    after: ReshapeNode | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeLevel:
    """The amounts of a place. `free` is below 0 where more is used than fits."""

    total: int
    reserved: int
    used: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapePlaceChange:
    """The amounts of a place before and after; null: there is no inventory."""

    provider: str
    class_: str
    before: ReshapeLevel | None
    after: ReshapeLevel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeDelta:
    """By how much the units of a consumer at one place change."""

    consumer: str
    provider: str
    class_: str
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeSummary:
    """What a plan changes, for people: two trees, the amounts of places, consumers."""

    providers: list[ReshapeProviderChange]
    places: list[ReshapePlaceChange]
    consumers: list[ReshapeDelta]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeViolation:
    """Why a plan cannot be committed. `code` is stable; what `amount` counts depends on it."""

    code: str
    message: str
    provider: str | None = None
    class_: str | None = None
    consumer: str | None = None
    amount: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeNote:
    """What an operator should think of; it stands in the way of nothing.

    `code` is stable: created_again, for consumers that would exist again and that no lease has;
    leases_lose, for consumers of granted leases that would lose units; tickets_stranded, for those
    of waiting tickets that ask for units which would be gone, at most 100. `consumers` are whom it
    is about, each with its lease or ticket, if that is known.
    """

    code: str
    message: str
    consumers: dict[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapePlanned:
    """What a plan would do as of `revision`; it can be committed if there are no violations.

    `revision` null: it was planned inside of a commit, which is refused.

    `digest` is of the effects: a commit with it does exactly these, or nothing. `generations` are
    those of all providers and consumers that were read.
    """

    digest: str
    effects: list[ReshapeEffect]
    summary: ReshapeSummary
    violations: list[ReshapeViolation]
    generations: ReshapeGenerations
    revision: str | None
    notes: list[ReshapeNote] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeWanted:
    """A plan to commit.

    `id` is a UUID that the caller chooses: the same request with it may be repeated, and is carried
    out once. `digest` is that of a preview: other effects are refused. With the `effects` of the
    preview, the refusal also says what differs. `reason` is for the audit log.
    """

    plan: ReshapePlan
    id: str | None = None
    digest: str | None = None
    effects: list[ReshapeEffect] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoWanted:
    """A reshape to undo; the members are those of a commit. `dry_run`: only show the plan.

    `leave_out`: consumers that the reshape removed and that are not to be created again, because
    their owners are gone.
    """

    dry_run: bool = False
    leave_out: list[str] = field(default_factory=list)
    id: str | None = None
    digest: str | None = None
    effects: list[ReshapeEffect] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeEntry(ReshapeValue):
    """A committed reshape, in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape(ReshapeEntry):
    """A committed reshape with all that it has done.

    `generations` are those that providers and consumers have got; a consumer's is null if it is
    gone.
    """

    effects: list[ReshapeEffect]
    summary: ReshapeSummary
    generations: ReshapeGenerations


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeUndone:
    """The reshape that has undone another one; or, for `dry_run`, the plan of it."""

    reshape: Reshape | None
    plan: ReshapePlanned | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapesAsked(PageAsked):
    """Which reshapes: `tree` is a provider; those that have changed it, or others of its tree.

    With `tree` a page may have fewer reshapes than asked for, or none, and still a `next`.
    """

    tree: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapePage:
    """A page of reshapes, newest first; `next` null: the last page."""

    reshapes: list[ReshapeEntry]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeDifferences:
    """Effects that the plan no longer has, and those that it has now instead."""

    gone: list[ReshapeEffect]
    new: list[ReshapeEffect]
