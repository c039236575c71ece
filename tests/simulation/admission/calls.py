"""What may be asked of admission: the words that clients, server and auditor share."""

from dataclasses import dataclass
from typing import Literal

from moorage.core.admission.model import FencingToken, Need, PoolSpec
from moorage.core.ids import LeaseId


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Ask for a lease. All times are microseconds."""

    owner: str
    key: str
    needs: tuple[Need, ...]
    priority: int = 0
    ttl: int | None = None
    hold: int | None = None
    patience: int = 30_000_000
    forced: bool = False
    pull: bool = False
    allocations: str | None = None


@dataclass(frozen=True)
class Poll:
    """Ask how a ticket stands."""

    lease: LeaseId


@dataclass(frozen=True)
class Touch:
    """What a holder may do with a lease. Without owner: an operator; without token: the owner."""

    lease: LeaseId
    owner: str | None
    token: FencingToken | None


@dataclass(frozen=True)
class Renew(Touch):
    """Say that the holder lives."""


@dataclass(frozen=True)
class Release(Touch):
    """Give it back."""


@dataclass(frozen=True)
class Revoke(Touch):
    """Take it away."""


@dataclass(frozen=True)
class Hold(Touch):
    """Move the end of its hold; None: no end."""

    hold: int | None


@dataclass(frozen=True)
class Retry(Touch):
    """Release and ask anew in one step."""

    ask: Ask


@dataclass(frozen=True)
class Report(Touch):
    """Tell an outcome."""

    result: Literal["ok", "failed", "throttled"]


@dataclass(frozen=True)
class PoolPut:
    """Make or change a pool."""

    name: str
    spec: PoolSpec


@dataclass(frozen=True)
class PoolPause:
    """Drain a pool, or let it go on."""

    name: str
    paused: bool


@dataclass(frozen=True)
class PoolDelete:
    """Remove a pool in which there is nobody."""

    name: str


@dataclass(frozen=True)
class Sweep:
    """End what is over, wake what may be granted by time; look at these pools, too."""

    pools: frozenset[str] = frozenset()


Call = (
    Ask
    | Poll
    | Renew
    | Release
    | Revoke
    | Hold
    | Retry
    | Report
    | PoolPut
    | PoolPause
    | PoolDelete
    | Sweep
)
