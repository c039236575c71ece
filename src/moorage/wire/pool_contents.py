"""What is in a pool: its leases and its line, as of one revision."""

from __future__ import annotations

from moorage.wire.admission import Lease, Pool
from moorage.wire.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContentsAsked:
    """How many leases and tickets to return, at most 1000 each."""

    leases: int = 100
    tickets: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContents:
    """A pool, its leases and its line, as of one revision of the ledger.

    `as_of` is the cursor of that revision, for `/v1/watch`. `leases` are the first ones by grant,
    `tickets` the first ones in line. `granted` and `waiting` are how many there are in all, and
    `granted_units` and `waiting_units` how many units of this pool they have and want.
    """

    as_of: str
    pool: Pool
    leases: list[Lease]
    tickets: list[Lease]
    granted: int
    granted_units: int
    waiting: int
    waiting_units: int
