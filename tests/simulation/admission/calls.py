"""The calls of admission: the vocabulary of clients, server and auditor."""

from dataclasses import dataclass
from typing import Literal

from moorage.core.admission.model import FencingToken, Need, PoolSpec
from moorage.core.ids import BookingId, LeaseId

Options = tuple[tuple[Need, ...], ...]


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
    group: str = ""
    cancel_running: bool = False
    any_of: Options = ()
    """Complete alternatives; then there are no `needs`."""
    in_order: bool = False
    preemptible: int | None = None
    booking: BookingId | None = None
    borrow: int | None = None

    @property
    def options(self) -> Options:
        """What it may be granted: of most requests only its needs."""
        return self.any_of or (self.needs,)

    @property
    def pools(self) -> set[str]:
        """All pools that it names."""
        return {need.pool for needs in self.options for need in needs}


@dataclass(frozen=True)
class Poll:
    """Ask for the state of a ticket."""

    lease: LeaseId


@dataclass(frozen=True)
class Touch:
    """The calls of a holder. Without owner: an operator; without token: the owner."""

    lease: LeaseId
    owner: str | None
    token: FencingToken | None


@dataclass(frozen=True)
class Renew(Touch):
    """Renew the lease."""


@dataclass(frozen=True)
class Release(Touch):
    """Give it back."""


@dataclass(frozen=True)
class Revoke(Touch):
    """Take it away."""


@dataclass(frozen=True)
class Move(Touch):
    """Give a ticket another priority; None: make it the first in its lines."""

    priority: int | None


@dataclass(frozen=True)
class Force(Touch):
    """Grant a ticket at once."""


@dataclass(frozen=True)
class Hold(Touch):
    """Change the end of its hold; None: no end. `at_most`: an earlier end stays."""

    hold: int | None
    at_most: bool = False

    def ends(self, at: int, before: set[int | None]) -> set[int | None]:
        """Return when a lease may end by its hold after this, which had one of these ends."""
        if self.hold is None or not self.at_most:
            return {None if self.hold is None else at + self.hold}
        return {at + self.hold if end is None else min(end, at + self.hold) for end in before}


@dataclass(frozen=True)
class Keep(Touch):
    """Keep the lease for inspection for this long."""

    wanted: int


@dataclass(frozen=True)
class Offer(Touch):
    """Offer it to another owner for some time."""

    to: str
    lasts: int


@dataclass(frozen=True)
class Withdraw(Touch):
    """Take the offer back."""


@dataclass(frozen=True)
class Accept:
    """Take over what is offered to an owner, with this key."""

    lease: LeaseId
    owner: str
    key: str


@dataclass(frozen=True)
class Decline:
    """Decline what is offered to an owner."""

    lease: LeaseId
    owner: str


@dataclass(frozen=True)
class Retry(Touch):
    """Release and request again in one step."""

    ask: Ask


@dataclass(frozen=True)
class Report(Touch):
    """Report an outcome."""

    result: Literal["ok", "failed", "throttled"]


@dataclass(frozen=True)
class PoolPut:
    """Make or change a pool."""

    name: str
    spec: PoolSpec


@dataclass(frozen=True)
class TemplatePut:
    """Make or change a template of pools."""

    name: str
    spec: PoolSpec
    idle: int


@dataclass(frozen=True)
class PoolPause:
    """Pause or resume a pool; `lasts`: microseconds until the pause ends by itself."""

    name: str
    paused: bool
    lasts: int | None = None


@dataclass(frozen=True)
class PoolDelete:
    """Delete an unused pool."""

    name: str


Span = tuple[int, int]
"""From when until when, by the wall clock."""


@dataclass(frozen=True, kw_only=True)
class Book:
    """Book units; `operates`: an operator does."""

    owner: str
    key: str
    needs: tuple[Need, ...]
    windows: tuple[Span, ...]
    lead: int = 0
    no_show: int | None = None
    closure: bool = False
    forced: bool = False
    operates: bool = False


@dataclass(frozen=True)
class Rebook:
    """Change a booking. Without owner: an operator."""

    booking: BookingId
    owner: str | None
    needs: tuple[Need, ...]
    windows: tuple[Span, ...]


@dataclass(frozen=True)
class Unbook:
    """Cancel a booking. Without owner: an operator."""

    booking: BookingId
    owner: str | None


@dataclass(frozen=True)
class Sweep:
    """End leases that are over, grant what time permits; look at these pools, too."""

    pools: frozenset[str] = frozenset()


Call = (
    Ask
    | Poll
    | Renew
    | Release
    | Revoke
    | Move
    | Force
    | Hold
    | Keep
    | Offer
    | Withdraw
    | Accept
    | Decline
    | Retry
    | Report
    | PoolPut
    | TemplatePut
    | PoolPause
    | PoolDelete
    | Book
    | Rebook
    | Unbook
    | Sweep
)
