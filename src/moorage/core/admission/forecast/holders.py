"""The holders of a pool's units, in words: names as people know them, and since when."""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import NamedTuple

from msgspec import Struct

from moorage.core.admission.model import Slot
from moorage.core.clock import DAY, HOUR, MINUTE, Instant
from moorage.core.ids import LeaseId
from moorage.wire.labels import Naming, name_of

NAMED = 3
"""Holders that a sentence names; the others are only counted."""


class Holding(Struct, frozen=True):
    """The units of one holder in a pool."""

    name: str
    """As people know the holder, see `wire.labels`."""
    units: int
    since: Instant | None = None
    """Its earliest grant, in service time; None: unknown."""
    several: bool = False
    """It has more than one lease, so its other units may be younger."""


class Holders(Struct, frozen=True):
    """All holders of a pool, of whom only those that are shown have names: all would be slow."""

    named: tuple[Holding, ...] = ()
    """Those with the most units, at most `NAMED`; of equals those granted first."""
    others: int = 0


def holders_of(
    owners: Iterable[tuple[str, int]], leases: Iterable[tuple[str, int, Instant, Naming]]
) -> Holders:
    """Return the holders of a pool. Leases with equal namings count together.

    Args:
        owners: all owners and their units.
        leases: owner, units, grant and naming of leases, the oldest grants first. Units of leases
            beyond them count for their owners, whatever their labels are.
    """
    unlisted = dict(owners)
    units_of: dict[Naming, int] = {}
    since: dict[Naming, Instant | None] = {}
    several: set[Naming] = set()
    for owner, units, granted_at, naming in leases:
        unlisted[owner] = unlisted.get(owner, 0) - units
        if naming in units_of:
            units_of[naming] += units
            several.add(naming)
        else:
            units_of[naming], since[naming] = units, granted_at
    for owner, units in unlisted.items():
        if units > 0:
            naming = Naming(owner)
            units_of[naming] = units_of.get(naming, 0) + units
            since.setdefault(naming, None)
            several.add(naming)
    most = nlargest(NAMED, units_of, key=units_of.__getitem__)
    named = (Holding(name_of(one), units_of[one], since[one], one in several) for one in most)
    return Holders(tuple(named), len(units_of) - len(most))


class SlotHolder(NamedTuple):
    """A lease that holds slots, and what its holder is named by."""

    lease: LeaseId
    granted_at: Instant
    naming: Naming
    held_since: Instant | None = None
    """As of `Lease`: if it was handed over, the first grant in its chain."""

    @property
    def since(self) -> Instant:
        """Return since when its units are held, also by those who handed them over."""
        return self.granted_at if self.held_since is None else self.held_since


def holders_of_slots(slots: Sequence[Slot], leases: Iterable[SlotHolder]) -> Holders:
    """Return the holders of these slots, which are occupied; `leases`: the oldest grants first."""
    units = Counter(slot.lease for slot in slots)
    owner_of = {slot.lease: slot.owner for slot in slots}
    named = [
        (owner_of[one.lease], units[one.lease], one.granted_at, one.naming)
        for one in leases
        if one.lease in units
    ]
    return holders_of(Counter(slot.owner for slot in slots).items(), named)


def held_by(holders: Holders, at: Instant) -> str:
    """Return the clause that names the holders; empty if none is known. `at`: now."""
    if not holders.named:
        return ""
    text = ", ".join(_named(one, at) for one in holders.named)
    return f" by {text}" + (f" and {holders.others} more" if holders.others else "")


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
