"""The language of queries: what may be asked of the ledger. A face parses its dialect into this.

Source: Placement API reference, "Allocation candidates" and "Resource providers".
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.model import ProviderRecord

Policy = str
"""`none` or `isolate`."""


class TraitFilter(Struct, frozen=True):
    """All of `required` must hold (each one an any-of set), none of `forbidden` may."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


class AggregateFilter(Struct, frozen=True):
    """In at least one aggregate of every set of `member_of`, in none of `forbidden`."""

    member_of: tuple[frozenset[AggregateId], ...] = ()
    forbidden: frozenset[AggregateId] = frozenset()


class Group(Struct, frozen=True):
    """One request group. The unsuffixed group (`suffix` "") may be spread over a tree.

    A suffixed group is served by exactly one provider. Without `resources` it only names a
    provider that `CandidateQuery.same_subtree` relates to others.
    """

    suffix: str
    resources: dict[str, int]
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
    in_tree: ProviderId | None = None


class CandidateQuery(Struct, frozen=True):
    """Where could all of these groups be served together?

    `nested` False shows only candidates with at most one provider per tree (before 1.29).
    `limit` None means all of them.
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
"""A candidate in few words: who serves each term of the query (`terms` in `search/groups.py`).

Different picks are different candidates: mappings tell who serves a suffixed group, and what is
left of the amounts tells who gives each class of the unsuffixed one.
"""

Preference = Literal["random", "pack", "spread"]
"""Which trees first: by chance, those that are fullest, or those that are emptiest."""


class Order(Struct, frozen=True):
    """In which order the candidates of a claim are tried.

    Fullness is the part of the capacity that is used, of the classes asked for, in the whole tree.
    `seed` stands for chance: the same seed on the same fleet gives the same order.
    """

    preference: Preference = "random"
    seed: int = 0


class Start(Struct, frozen=True):
    """Where a search begins, as it may not come to the end: a block and a row of the fleet.

    `block` is counted round and round. In it the first anchor is the one at `row` or after it, or
    as many after that one as `skip` says, counted round and round as well.

    With `skip` it is a start by chance: then `block` counts rows that may serve, not blocks, and
    says the block that such a row is in. So hosts that fit are as likely wherever they stand.
    """

    block: int = 0
    row: int = 0
    skip: int = 0


class CandidateAnswer(Struct, frozen=True):
    """All candidates found, and every provider a reader needs to judge them.

    `summaries`: with a nested query every provider of every tree that has a provider in some
    candidate, otherwise only the providers in candidates. `exhausted` is False when the search
    was cut by its own bound rather than by `limit`, `capped` True when it found as many as an
    answer may have. `then` is where to start the next time, so that every tree gets its turn.
    `picks` are the candidates as they were found; a choice for a claim has none.
    """

    candidates: Sequence[Candidate]
    summaries: list[ProviderRecord]
    exhausted: bool = True
    capped: bool = False
    then: Start = Start()
    picks: Sequence[Pick] = ()


class ProviderQuery(Struct, frozen=True):
    """Which providers are these? All conditions must hold; None and empty mean no condition."""

    name: str | None = None
    uuid: ProviderId | None = None
    in_tree: ProviderId | None = None
    resources: dict[str, int] = {}
    traits: TraitFilter = TraitFilter()
    aggregates: AggregateFilter = AggregateFilter()
