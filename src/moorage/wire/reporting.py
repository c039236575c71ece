"""Groups of reporters: their members, who owns which node, and reports."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Literal

from moorage.wire.dataclass import dataclass
from moorage.wire.ledger import InventoryWanted


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTold:
    """A reporter's last pass over its nodes, which ended `age` seconds ago.

    `nodes` is how many it reported, `refused` the number of refused ones by code.
    """

    age: float
    nodes: int
    refused: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberWanted:
    """A reporter that joins its group, or stays in it.

    `instance` is a UUID that it has chosen at its start: another one replaces and fences it. It is
    live for `ttl` seconds, from 5 to 3600, without being heard of. `last_pass` is for operators;
    null: as it was. `renew` asks for a new token: a report with the present one that still arrives
    is refused. Send it after a report without an answer.
    """

    instance: str
    ttl: float = 30.0
    renew: bool = False
    last_pass: PassTold | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A member of a group.

    Reports must have the `token`. `members` are the live ones: they own the nodes that are not
    pinned. If `pins_generation` has risen, read the pins again.
    """

    token: str
    ttl: float
    members: list[str]
    pins_generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveAsked:
    """Which instance leaves; without it, whichever it is."""

    instance: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedWanted:
    """All members that an observer has seen at a time, by its clock, and what was wrong then."""

    members: list[str]
    seen_at: datetime
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinsWanted:
    """Nodes that shall belong to a member, live or not; null: to whom they belong without a pin."""

    nodes: list[str]
    member: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A node that belongs to a member, live or not."""

    node: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinPage:
    """Pins by node, and the cursor of the next page; null: this is the last."""

    pins: list[Pin]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """A member of a group. Its token is not shown.

    It is `live` if it was heard of within its `ttl`, in seconds; `silent` is for how many seconds
    it has not been heard of, without outages of the service. `pinned` is the number of its pins.
    `last_pass` is what it says of its last pass, with its age now; null: nothing yet.
    """

    name: str
    instance: str
    live: bool
    ttl: float
    silent: float
    joined_at: datetime
    pinned: int
    last_pass: PassTold | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterGroup:
    """A group of reporters, with all its members.

    `observed` are members that somebody else reports, as of `seen_at`; null: nobody has yet.
    `pinned_elsewhere` is the number of nodes that are pinned to members that are not live: nobody
    reports them.
    """

    name: str
    members: list[Reporter]
    observed: list[str]
    seen_at: datetime | None
    observer_error: str
    pins_generation: int
    pinned_elsewhere: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterGroupPage:
    """Names of groups of reporters, and the cursor of the next page; null: this is the last."""

    groups: list[str]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GhostPage:
    """Providers that are gone by the last report but still have allocations, by UUID."""

    ghosts: list[str]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOwned:
    """A provider that reports of the group say everything about. `ghost`: it is gone, see above."""

    uuid: str
    ghost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """Providers that a group of reporters owns, by UUID, and the cursor of the next page."""

    nodes: list[NodeOwned]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReported:
    """What a source of nodes says of one.

    `absent`: the source has no such node. Otherwise a null field stays unchanged, and a new
    provider needs a name. `traits` replaces those that earlier reports of the group have set.
    """

    uuid: str
    name: str | None = None
    seen: Literal["present", "absent"] = "present"
    inventories: dict[str, InventoryWanted] | None = None
    traits: list[str] | None = None
    aggregates: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWanted:
    """A report of at most 5,000 nodes by a member of a group, with its present token.

    A node has at most 500 classes, traits and aggregates, all nodes 500,000, of which 50,000 may be
    new. Beside nova (`beside_nova`), only `reserved` and `total` of classes that exist are written;
    the trait `OWNER_NOVA` of a provider forces this mode. No report sets it.
    """

    group: str
    member: str
    token: str
    mode: Literal["owner", "beside_nova"] = "owner"
    nodes: list[NodeReported]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """The outcome for one node: created, updated, unchanged, removed, or refused.

    A refusal has `code` and `message`. `generation` is that of its provider afterwards; null: there
    is none, or it is unknown. `ghost`: it is gone, but still has allocations.
    """

    uuid: str
    outcome: str
    generation: int | None
    ghost: bool
    code: str | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcomes:
    """One outcome for each node, in the order of the report, and how many of each kind."""

    results: list[NodeOutcome]
    created: int
    updated: int
    unchanged: int
    removed: int
    refused: int
    ghosts: int
    codes: dict[str, int] = field(default_factory=dict)
    """The refused ones by code."""
