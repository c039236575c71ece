"""Who holds units of a pool, in words: names as people know them, and since when."""

from collections.abc import Sequence

from msgspec import Struct

from moorage.core.clock import DAY, HOUR, MINUTE, Instant

NAMED = 3
"""Holders that a sentence names; the others are only counted."""


class Holding(Struct, frozen=True):
    """What one holder has of a pool."""

    name: str
    """As people know the holder, see `wire.labels`."""
    units: int
    since: Instant | None = None
    """Its earliest grant, in service time; None: unknown."""
    several: bool = False
    """It has more than one lease, so its other units may be younger."""


def held_by(holdings: Sequence[Holding], at: Instant) -> str:
    """Return the clause that names the holders; empty if none is known.

    Args:
        holdings: of all holders, those to name first.
        at: now.
    """
    if not holdings:
        return ""
    others = len(holdings) - NAMED
    text = ", ".join(_named(one, at) for one in holdings[:NAMED])
    return f" by {text}" + (f" and {others} more" if others > 0 else "")


def _named(one: Holding, at: Instant) -> str:
    units = f" ({one.units})" if one.units > 1 else ""
    age = "" if one.since is None else age_text(at - one.since)
    upto = "up to " if one.several else ""
    return f"{one.name}{units}" + (f" for {upto}{age}" if age else "")


def age_text(microseconds: int) -> str:
    """Return an age in whole minutes: `7m`, `2h10m`, `3d4h`; empty below a minute.

    It is coarse, so that a reason that is read again and again seldom differs.
    """
    if microseconds < MINUTE:
        return ""
    days, rest = divmod(microseconds, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes = rest // MINUTE
    if days:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h{minutes:02d}m" if minutes else f"{hours}h"
    return f"{minutes}m"
