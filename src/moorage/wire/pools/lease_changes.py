"""What holders and operators ask of a lease or ticket. Durations are in seconds."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Any

from moorage.wire.dataclass import dataclass
from moorage.wire.defaults import OFFER_SECONDS
from moorage.wire.enums import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderProof:
    """The fencing token of the lease; without it, being the owner is enough."""

    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWanted(HolderProof):
    """With `record_version` only a lease whose record has this version is released.

    `gave_up`: the longest wait of the client is over. A ticket then ends with this cause.
    """

    record_version: int | None = None
    gave_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWanted(HolderProof):
    """What the holder records, and the version that it replaces; the first one replaces 0."""

    version: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldWanted(HolderProof):
    """The new hold in seconds from now; null: no hold. With `at_most` an earlier end stays."""

    hold: float | None
    at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferWanted(HolderProof):
    """The owner who may accept a lease, and for how many seconds from now."""

    to: str
    lasts: float = OFFER_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptWanted:
    """The key of the new lease, as in a request for one, and its own labels.

    The same key returns the same lease. Labels of the old lease stay, unless they say who had it.
    """

    key: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWanted(HolderProof):
    """Until when a lease is kept for inspection: a time, or seconds from now; and why.

    `at_most`: for less if its pools permit less.
    """

    until: datetime | None = None
    lasts: float | None = None
    reason: str = ""
    at_most: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryWanted(HolderProof):
    """Release and ask again in one step. `key` is the key of the new attempt.

    With `requeue` the units are given back, and the new ticket waits at the old place in line; in a
    pool with `on_retry: requeue` only a governor's does. It may have the key of the old lease. With
    `record_version` only a lease whose record has this version is given back.
    """

    key: str
    requeue: bool = False
    record_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeWanted:
    """Why a lease is revoked, for its holder.

    With `holder_is_gone` no late release by name is expected of a lease of the lease proxy.
    """

    reason: str = ""
    holder_is_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWanted:
    """Where a ticket is to wait: with another `priority`, or as the `first` in all its lines.

    Exactly one of them must be given.
    """

    priority: int | None = None
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeWanted(HolderProof):
    """The outcome of what was started; the first report counts.

    `cause` is a short text, the same for failures that belong together, such as `HTTP 429`: an
    adaptive limit counts those of one minute once.
    """

    result: Result
    detail: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyAsked:
    """A pool and the fencing token to check."""

    pool: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """`current`: the token belongs to a lease that has units of the pool now."""

    current: bool
    lease: str | None
    expires_at: datetime | None
