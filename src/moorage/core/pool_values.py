"""The values of fair shares and of adaptive limits: what operators choose, and its state."""

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.wire import enums


class FairShare(Struct, frozen=True):
    """How a pool is divided among those who share it, see `fair_share.py`."""

    by: str
    """Who they are: `owner`, `project`, or `label:NAME`."""
    half_life: int
    """Microseconds after which half of what a sharer has used no longer counts."""
    weights: dict[str, int] = {}
    """By sharer: one with weight 2 gets twice as much as one with weight 1."""
    default: int = 1
    """The weight of all others."""


class Sharer(Struct, frozen=True, array_like=True):
    """What one sharer of a pool has asked for and used, see `fair_share.py`."""

    finish: int
    """The tag at which the cost of all that it has asked for ends."""
    at: Instant
    """Service time since which its debt decays."""
    waiting: int = 0
    """Its tickets in the line."""
    held: int = 0
    """Units that its leases occupy."""


class Sharing(Struct, frozen=True):
    """The state of a pool's fair share. Tags are unit-milliseconds per weight."""

    now: int = 0
    """The virtual time: the tag of a ticket of a sharer without debt. It never falls while a ticket
    waits."""
    last: int = 0
    """The largest tag of a ticket so far."""
    usual: int = 0
    """Milliseconds that a lease usually lasts, a moving average; 0: none has ended yet."""
    sharers: dict[str, Sharer] = {}
    """Those with tickets, leases or a debt; at most `SHARERS_MAX`."""
    others: int = 0
    """Occupied units that none of them is known to have: of forgotten ones, and of before."""
    scale: int = 1
    """Unit-milliseconds of one step of a tag: more than one only in huge pools."""


class Adaptive(Struct, frozen=True):
    """How the limit of a pool follows the outcomes of starts, chosen by an operator."""

    floor: int
    """The limit is never cut below."""
    ceiling: int
    """The limit is never raised above."""
    mode: enums.AdaptiveMode = "advise"
    good: float = 0.02
    """The failure rate that is fine: the limit may rise."""
    bad: float = 0.08
    """The failure rate that is too high: the limit is cut."""
    throttled: int = 3
    """This many throttled starts within one hold cut the limit at once."""


class Minute(Struct, frozen=True):
    """The outcomes within one minute: failures with the same cause count once, see `rule.py`."""

    until: Instant
    ok: int = 0
    failed: int = 0
    """All failures."""
    counted: int = 0
    """Those of them that count."""
    causes: tuple[str, ...] = ()
    """Of the counted failures, without those that have no cause."""


class Counts(Struct, frozen=True):
    """How many outcomes the test has seen since it began."""

    ok: int = 0
    failed: int = 0
    throttled: int = 0
    correlated: int = 0
    """Those of `failed` and `throttled` that do not count: an equal one came just before."""


class Busy(Struct, frozen=True, array_like=True):
    """A time (service time) in which most of the limit was in use."""

    since: Instant
    until: Instant | None = None
    """None: it lasts."""


class Step(Struct, frozen=True):
    """What the test has decided, with its evidence. `after` == `before`: the limit stays."""

    at: Instant
    verdict: enums.Verdict
    before: int
    after: int
    counts: Counts
    acted: bool
    """The limit was changed; otherwise it was only advised, or stays at the floor or ceiling."""


class Adaptation(Struct, frozen=True):
    """The state of the test of one pool; bounded. Times are service time."""

    configured: int
    """The limit that an operator has set; `PoolSpec.limit` may have moved from there."""
    since: Instant
    """Outcomes of leases that were granted before do not count: they ran at another limit."""
    frozen_until: Instant
    """Outcomes that are reported before do not count."""
    ok: float = 0.0
    """Good outcomes of past minutes; in minutes with correlated failures they count in part."""
    failed: int = 0
    """Failures of past minutes that count."""
    minute: Minute | None = None
    throttled: tuple[Instant, ...] = ()
    """When the last starts were throttled, as far as they count."""
    counts: Counts = Counts()
    aside: int = 0
    """Outcomes since the test began that are no evidence: too little of the limit was in use, or
    the lease is older than the last change."""
    lasted: tuple[int, ...] = ()
    """Microseconds from the grant to the report of the last good outcomes."""
    busy: tuple[Busy, ...] = ()
    """In ascending order."""
    last: Step | None = None
