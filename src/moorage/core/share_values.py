"""The values of fair shares: how a pool is divided, and the state of that."""

from msgspec import Struct

from moorage.core.clock import Instant


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
    """The virtual time: the tag of a ticket of a sharer without debt. It never falls."""
    last: int = 0
    """The largest tag of a ticket so far."""
    usual: int = 0
    """Milliseconds that a lease usually lasts, a moving average; 0: none has ended yet."""
    sharers: dict[str, Sharer] = {}
    """Those with tickets, leases or a debt; at most `SHARERS_MAX`."""
