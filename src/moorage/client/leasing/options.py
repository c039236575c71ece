"""Interprets the arguments of `Client.lease`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Union

from moorage.client.run.api_types import PATIENCE_SECONDS, LeaseRequest
from moorage.client.run.durations import seconds_of
from moorage.client.run.lease.acquire import Patience

Duration = Union[float, str]
"""Seconds, or text such as `90s`, `20m`, `1h30m`."""

WAIT = "2h"
UNREACHABLE_AFTER = "60s"
RELEASE_SECONDS = 5.0
"""How long to try to release a lease, or to withdraw a ticket."""

OnLost = Callable[[str], object]


class HoldingOptions(NamedTuple):
    """What to request, how long to try, and what to do while it is held."""

    wish: LeaseRequest
    patience: Patience
    patient: bool
    outcome: bool
    on_lost: OnLost | None


def options_of(
    pool: str | Mapping[str, int],
    units: int = 1,
    *,
    hold: Duration | None = None,
    wait: Duration = WAIT,
    ttl: Duration | None = None,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    unreachable_after: Duration = UNREACHABLE_AFTER,
    patient: bool = False,
    outcome: bool = False,
    on_lost: OnLost | None = None,
) -> HoldingOptions:
    """Return the options; the arguments are those of `Client.lease`. Raises ValueError."""
    needs = {pool: units} if isinstance(pool, str) else dict(pool)
    if not needs or min(needs.values()) < 1:
        raise ValueError(f"a lease needs at least one unit of one pool: {needs!r}")
    silence = _seconds(unreachable_after)
    wish = LeaseRequest(
        needs=tuple(sorted(needs.items())),
        ttl=None if ttl is None else _seconds(ttl),
        hold=None if hold is None else _seconds(hold),
        priority=priority,
        labels=tuple(sorted((labels or {}).items())),
        patience=silence + PATIENCE_SECONDS,
    )
    patience = Patience(wait=_seconds(wait), unreachable_after=silence)
    return HoldingOptions(wish, patience, patient, outcome, on_lost)


def _seconds(value: Duration) -> float:
    return seconds_of(str(value))
