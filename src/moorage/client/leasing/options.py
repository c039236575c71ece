"""Interprets the arguments of `Client.lease`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Union

from moorage.client.leasing.errors import ConfigurationError
from moorage.client.run.api_types import LeaseRequest, Need, Needs, patience_for
from moorage.client.run.labels import describing
from moorage.client.run.lease.acquire import Patience
from moorage.wire.durations import seconds_of
from moorage.wire.enums import Choose

Duration = Union[float, str]
"""Seconds, or text such as `90s`, `20m`, `1h30m`."""

SlotLabels = Union[Mapping[str, str], Mapping[str, Mapping[str, str]]]
"""Labels that a slot must have, of one pool, or by pool."""

Alternative = Union[str, Mapping[str, int]]
"""A pool, of which one unit is needed, or units by pool."""

WAIT = "2h"
UNREACHABLE_AFTER = "60s"
RELEASE_SECONDS = 5.0
"""How long to try to release a lease, or to withdraw a ticket."""

KEPT_SECONDS = 300.0
"""How long a ticket with a key of the caller keeps its place while no program waits for it."""

OnLost = Callable[[str], object]


class HoldingOptions(NamedTuple):
    """What to request, how long to try, and what to do while it is held."""

    wish: LeaseRequest
    patience: Patience
    patient: bool
    outcome: bool
    on_lost: OnLost | None
    key: str | None


def options_of(
    pool: str | Mapping[str, int] | None = None,
    units: int = 1,
    *,
    any_of: Sequence[Alternative] = (),
    choose: Choose = "least_loaded",
    slot: SlotLabels | None = None,
    hold: Duration | None = None,
    wait: Duration = WAIT,
    ttl: Duration | None = None,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    supersede: str | None = None,
    cancel_running: bool = False,
    preemptible: Duration | None = None,
    about: bool = True,
    key: str | None = None,
    unreachable_after: Duration = UNREACHABLE_AFTER,
    patient: bool = False,
    outcome: bool = False,
    on_lost: OnLost | None = None,
) -> HoldingOptions:
    """Return the options; the arguments are those of `Client.lease`. Raises ValueError."""
    pool = {} if pool is None else pool
    needs = {pool: units} if isinstance(pool, str) else dict(pool)
    if (not needs and not any_of) or min(needs.values(), default=1) < 1:
        raise ValueError(f"a lease needs at least one unit of one pool: {needs!r}")
    if cancel_running and not supersede:
        raise ValueError("cancel_running needs the group: supersede")
    if choose not in ("least_loaded", "order"):
        raise ValueError(f"choose must be least_loaded or order, not {choose!r}")
    alternatives = [_units_of(one) for one in any_of]
    named = {name for one in (needs, *alternatives) for name in one}
    labels_of = () if slot is None else _slot_labels(pool, slot, named)
    silence = _seconds(unreachable_after)
    wish = LeaseRequest(
        needs=tuple(sorted(needs.items())),
        ttl=None if ttl is None else _seconds(ttl),
        hold=None if hold is None else _seconds(hold),
        priority=priority,
        labels=tuple(sorted((labels or {}).items())),
        about=_describing() if about else (),
        patience=max(patience_for(silence), 0.0 if key is None else KEPT_SECONDS),
        slot_labels=tuple(one for one in labels_of if one[0] in needs),
        group=supersede or "",
        cancel_running=cancel_running,
        preemptible=None if preemptible is None else _seconds(preemptible),
        standing=key is not None,
        any_of=tuple(_needs_of(one, dict(labels_of)) for one in alternatives),
        in_order=choose == "order",
    )
    patience = Patience(wait=_seconds(wait), unreachable_after=silence)
    return HoldingOptions(wish, patience, patient, outcome, on_lost, key)


def _units_of(alternative: Alternative) -> dict[str, int]:
    """Return the units by pool of one of several alternatives. Raises ValueError."""
    needs = {alternative: 1} if isinstance(alternative, str) else dict(alternative)
    if not needs or min(needs.values()) < 1:
        raise ValueError(f"any_of: an alternative needs at least one unit of one pool: {needs!r}")
    return needs


def _needs_of(units: Mapping[str, int], labels: Mapping[str, tuple[tuple[str, str], ...]]) -> Needs:
    return tuple(Need(name, units[name], labels.get(name, ())) for name in sorted(units))


def _seconds(value: Duration) -> float:
    return seconds_of(str(value))


def _slot_labels(
    pool: str | Mapping[str, int], slot: SlotLabels, named: Collection[str]
) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the labels of slots as a request has them. Raises ValueError."""
    found = []
    by_pool = {pool: slot} if isinstance(pool, str) else slot
    for name, labels in sorted(by_pool.items()):
        if not isinstance(labels, Mapping):
            raise ValueError(
                f"slot: {slot!r} has no pools: with several pools, give the labels of each, such"
                ' as {"pool": {"region": "eu"}}'
            )
        if name not in named:
            raise ValueError(f"slot: the lease needs no units of pool {name!r}")
        wanted = [(label, value) for label, value in labels.items() if isinstance(value, str)]
        if len(wanted) < len(labels):
            raise ValueError(f"slot: the values of labels must be text, not {labels!r}")
        found.append((name, tuple(sorted(wanted))))
    return tuple(found)


def _describing() -> tuple[tuple[str, str], ...]:
    try:
        return describing(os.environ, os.getpid(), _program())
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _program() -> Sequence[str]:
    """Return the command line of this program; of `python -m`, it begins with the module."""
    words = getattr(sys, "argv", [])  # missing in some programs that embed Python
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return [spec.name.removesuffix(".__main__"), *words[1:]]
    if not words or words[0] in ("", "-", "-c"):
        return [sys.executable or "python"]
    return words
