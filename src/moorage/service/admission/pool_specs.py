"""The specification of a pool as the core has it. Commands that simulate use it, too."""

from dataclasses import asdict
from typing import Any, Literal

from moorage.core.admission.model import (
    Pacing,
    PoolSpec,
)
from moorage.core.errors import Code, Error
from moorage.core.pool_values import Adaptive, FairShare
from moorage.service.values import microseconds, microseconds_or_none
from moorage.wire import admission as wire


def spec_of(wanted: wire.PoolWanted) -> PoolSpec:
    """Convert a pool's specification to the core's type. Raises `Error`: INVALID.

    A pacing "auto" becomes none here: the decision derives it, see `pools.paced`; likewise a limit
    that follows members becomes 0.
    """
    if wanted.limit is not None and wanted.per_member is not None:
        raise Error(Code.INVALID, "A pool has a limit, or units per member: omit one of them.")
    members = {name: _stored(name, getattr(wanted, name)) for name in PoolSpec.__struct_fields__}
    return PoolSpec(**members | ({} if wanted.per_member is None else {"limit": 0}))


def _stored(name: str, value: Any) -> Any:
    """Convert a member of a pool's specification to the core's type. Raises `Error`: INVALID."""
    if name in wire.DURATIONS:
        return microseconds_or_none(name, value)
    if name == "pacing":
        return pacing_of(value)
    if name == "adaptive":
        return None if value is None else Adaptive(**asdict(value))
    if name == "fair_share" and value is not None:
        half_life = microseconds("fair_share.half_life", value.half_life)
        return FairShare(value.by, half_life, value.weights, value.default)
    return tuple(value) if name == "askers" and value is not None else value


def pacing_of(wanted: wire.Pacing | Literal["auto"] | None) -> Pacing | None:
    """Convert a pacing to the core's type; "auto" becomes None. Raises `Error`: INVALID."""
    if wanted is None or wanted == "auto":
        return None
    return Pacing(
        interval=microseconds("pacing.interval", wanted.interval),
        burst=wanted.burst,
        jitter=microseconds("pacing.jitter", wanted.jitter),
    )
