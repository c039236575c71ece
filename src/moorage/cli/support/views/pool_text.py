"""Properties of pools as text, for options and output."""

from collections.abc import Collection
from dataclasses import fields
from datetime import datetime
from typing import Any

from moorage.cli.support.durations import AUTO, NONE, duration_text, fair_share_text, pacing_text
from moorage.core.admission.model import FREE, LEASED
from moorage.core.admission.model import Pacing as CorePacing
from moorage.core.admission.pacing import is_default, pacing_default
from moorage.core.clock import SECOND
from moorage.wire.admission import DURATIONS, Overstay, Pacing, Pool, PoolWanted, Share

PROPERTIES = tuple(field.name for field in fields(PoolWanted) if field.name != "generation")
IDLE = "idle"
"""A duration of templates, which pools do not have."""

ALWAYS_SAID = ("limit", "hold", "pacing")


def wanted_of(pool: Pool) -> dict[str, Any]:
    """Return the properties of a pool as in a request; a derived pacing becomes `auto`."""
    names = {field.name for field in fields(PoolWanted)}
    wanted = {name: getattr(pool, name) for name in names}
    if _follows(pool):
        wanted["pacing"] = AUTO
    return wanted


def acts(pool: Pool | PoolWanted) -> bool:
    """Return whether the limit of a pool moves by itself."""
    return pool.adaptive is not None and pool.adaptive.mode == "act"


def written_limit(pool: Pool) -> int | None:
    """Return the limit that an operator has set; an adaptive one may have moved from there."""
    test = pool.adaptive_test
    return pool.limit if test is None or not acts(pool) else test.configured


def _follows(pool: Pool) -> bool:
    """Return whether its pacing is that derived from its units and its hold."""
    pacing, exact = pool.pacing, None
    if pacing is not None:
        interval, jitter = round(pacing.interval * SECOND), round(pacing.jitter * SECOND)
        exact = CorePacing(interval, pacing.burst, jitter)
    return is_default(exact, pool.units, _microseconds(pool.hold))


def paced(pacing: Pacing | str | None, limit: int | None, hold: float | None) -> Pacing | None:
    """Return the effective pacing: `auto` is derived from limit and hold."""
    if not isinstance(pacing, str):
        return pacing
    default = pacing_default(limit, _microseconds(hold))
    if default is None:
        return None
    return Pacing(interval=default.interval / SECOND, burst=default.burst)


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)


def changed_of(pool: Pool, given: dict[str, Any]) -> PoolWanted:
    """Return the request that changes a pool; a concurrent change makes it fail."""
    wanted = {**wanted_of(pool), **given}
    if given.get("per_member") is not None and "limit" not in given:
        wanted["limit"] = None
    elif given.get("limit") is not None and "per_member" not in given:
        wanted |= {"per_member": None, "member_group": None}
    return PoolWanted(**wanted)


def summary(pool: Pool, given: Collection[str] = ()) -> str:
    """Return one line with a pool's limit, hold and pacing, and the other given properties."""
    limit = "as many units as slots" if pool.limit is None else f"limit {pool.limit}"
    if pool.per_member is not None:
        limit = f"{pool.per_member} for each member of {pool.member_group}, now {pool.units}"
    parts = [limit]
    if pool.hold is not None:
        parts.append(f"hold {duration_text(pool.hold)}")
    if pool.pacing is None:
        parts.append("not paced")
    else:
        interval, burst = duration_text(pool.pacing.interval), pool.pacing.burst
        parts.append(f"paced: interval {interval}, burst {burst}")
    for name in sorted(given, key=PROPERTIES.index):
        if name not in ALWAYS_SAID:
            parts.append(f"{name.replace('_', ' ')} {property_text(name, getattr(pool, name))}")
    return ", ".join(parts)


def property_text(name: str, value: Any) -> str:
    """Return a property of a pool in the form that its option accepts."""
    if name == "pacing":
        return pacing_text(value)
    if name == "adaptive":
        from moorage.cli.support.views.adaptive_text import (
            adaptive_text,
        )  # deferred: most have none

        return adaptive_text(value)
    if name == "fair_share":
        return fair_share_text(value)
    if value is None:
        return NONE
    return duration_text(value) if name in DURATIONS or name == IDLE else plain_text(value)


def word_of(pool: Pool) -> str:
    """Return a pool's state in one word."""
    if pool.paused:
        return "paused"
    if pool.over:
        return "over"
    return "full" if pool.free <= 0 else "open"


def state_of(pool: Pool) -> str:
    """Return a pool's state, how many leases were not renewed in time, and if one lasts too long.

    Of a pool whose slots are not granted, although nobody holds them: the states of these.
    """
    word = word_of(pool)
    there = pool.units + pool.slots.get("drained", 0)
    if word == "full" and pool.limit is None and pool.occupied < there:
        others = {state: n for state, n in pool.slots.items() if n and state not in (FREE, LEASED)}
        word = ", ".join(f"{n} {state}" for state, n in sorted(others.items())) or word
    overstay = ", overstay" if pool.overstay is not None else ""
    return f"{word}{_unheard(pool)}{overstay}"


def explained(pool: Pool, now: datetime) -> str:
    """Return a pool's state, and who paused it and why, or whose old lease its line waits for."""
    if pool.overstay is not None:
        return f"{state_of(pool)}: {outlasting(pool.overstay, now)}"
    if not pool.paused:
        return state_of(pool)
    by = f" by {pool.paused_by}" if pool.paused_by else ""
    why = f": {pool.pause_reason}" if pool.pause_reason else ""
    return f"paused{by}{_unheard(pool)}{why}"


def outlasting(one: Overstay, now: datetime) -> str:
    """Return whose lease lasts too long, and how long."""
    # deferred: few pools have such a lease
    from moorage.core.admission.forecast.overstays import overstay_text

    age = (now - one.granted_at).total_seconds()
    return overstay_text(one.holder, age, one.usual, one.blocks)


def _unheard(pool: Pool) -> str:
    return f", {pool.unheard} unheard" if pool.unheard else ""


def share_text(share: Share) -> str:
    """Return what a sharer has of a pool: its units, its tickets, and how far it is ahead."""
    name = {"": "(no label)", "*": "(all others)"}.get(share.name, share.name)
    ahead = f", {duration_text(round(share.debt))} ahead" if share.debt >= 1 else ""
    return f"{name}: {share.used} in use, {share.waiting} waiting, weight {share.weight}{ahead}"


def plain_text(value: Any) -> str:
    """Format a value for a table."""
    if value is None or value in ({}, [], ""):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return " ".join(f"{key}={plain_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ",".join(plain_text(one) for one in value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
