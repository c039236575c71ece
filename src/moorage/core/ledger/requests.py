"""Queries to the ledger. A face parses its dialect into these types.

Source: Placement API reference, "Allocation candidates" and "Resource providers".
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord
from moorage.core.limits import SUFFIX_LENGTH_MAX

SUFFIX_PATTERN = f"[a-zA-Z0-9_-]{{1,{SUFFIX_LENGTH_MAX}}}"
"""The pattern of the suffix of a request group."""

Policy = str
"""`none` or `isolate`."""


class TraitFilter(Struct, frozen=True):
    """At least one trait of every set of `required`, and none of `forbidden`."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


class AggregateFilter(Struct, frozen=True):
    """In at least one aggregate of every set of `member_of`, in none of `forbidden`."""

    member_of: tuple[frozenset[AggregateId], ...] = ()
    forbidden: frozenset[AggregateId] = frozenset()


class Group(Struct, frozen=True):
    """One request group. The unsuffixed group (`suffix` "") may be spread over a tree.

    A suffixed group is served by exactly one provider. Without `resources` it only identifies a
    provider for `CandidateQuery.same_subtree`.
    """

    suffix: str
    resources: dict[str, int]
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
    in_tree: ProviderId | None = None


class CandidateQuery(Struct, frozen=True):
    """A query for the places where all of these groups can be served together.

    With `nested` False, a candidate has at most one provider per tree (before 1.29). `limit` None
    means no limit.
    """

    groups: tuple[Group, ...]
    group_policy: Policy = "none"
    same_subtree: tuple[frozenset[str], ...] = ()
    root_traits: TraitFilter = TraitFilter()
    limit: int | None = None
    nested: bool = True


class Candidate(Struct, frozen=True):
    """One way to serve a query: the amounts per provider, and which provider serves which group."""

    allocations: dict[ProviderId, dict[str, int]]
    mappings: dict[str, tuple[ProviderId, ...]]


Pick = tuple[ProviderId, ...]
"""A compact candidate: the provider for each term of the query (`terms` in `search/groups.py`).

Different picks are different candidates: the mappings show which provider serves a suffixed group,
and the remaining amounts show which one gives each class of the unsuffixed group.
"""

Preference = Literal["random", "pack", "spread"]
"""Which trees come first: random ones, the fullest, or the emptiest."""


class CandidateOrder(Struct, frozen=True):
    """The order in which the candidates of a claim are tried.

    Fullness is the used part of the capacity of the requested classes in the whole tree. The order
    depends on `seed`: the same seed on the same catalog gives the same order.
    """

    preference: Preference = "random"
    seed: int = 0


class Start(Struct, frozen=True):
    """Where a search starts, since it may be cut: a chunk and a row of the catalog.

    `chunk` is taken modulo the number of chunks. The first anchor is the first one at or after
    `row`, plus `skip` further ones, modulo the anchors of the chunk.

    With `skip` it is a random start: `chunk` then counts rows that may serve, not chunks, and
    selects the chunk of that row. So all hosts that fit are equally likely.

    `turn` numbers the orders in which the providers of a tree are tried: a search that found
    nothing in time is followed by one that begins with another order.
    """

    chunk: int = 0
    row: int = 0
    skip: int = 0
    turn: int = 0


class CandidateAnswer(Struct, frozen=True):
    """The candidates found, and every provider that a reader needs to judge them.

    `summaries`: with a nested query all providers of all trees in candidates, otherwise only the
    providers in candidates. `exhausted` is False if the search was cut by its own bound instead of
    `limit`; `capped` is True if it found as many as an answer may have. `then` is where to start
    the next search, so that every tree gets its turn. `picks` are the candidates in compact form;
    a choice for a claim has none.
    """

    candidates: Sequence[Candidate]
    summaries: list[ProviderRecord]
    exhausted: bool = True
    capped: bool = False
    then: Start = Start()
    picks: Sequence[Pick] = ()


class ProviderQuery(Struct, frozen=True):
    """A query for providers. All conditions must be met; None and empty mean no condition."""

    name: str | None = None
    uuid: ProviderId | None = None
    in_tree: ProviderId | None = None
    resources: dict[str, int] = {}
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
