"""The rule of bookings, tick by tick: no profiles, no sums, no events.

Time is a small number of ticks. A lease and a booking are the sets of ticks in which they have
units; everything is found by adding up, for each tick, what everybody has.
"""

from dataclasses import dataclass, field

LAST = 60
"""The world ends after this tick; what has no end lasts until then."""


@dataclass
class Held:
    """A live lease."""

    units: int
    until: int
    booking: str = ""


@dataclass
class Booked:
    """A booking: its units, and the ticks in which it has them."""

    units: int
    windows: list[tuple[int, int]]
    lead: int = 0

    def kept(self, tick: int) -> bool:
        """Are its units kept in a tick?"""
        return any(start - self.lead <= tick < end for start, end in self.windows)

    def open(self, tick: int) -> bool:
        """May its owner have them in a tick?"""
        return any(start <= tick < end for start, end in self.windows)


@dataclass
class Calendar:
    """One pool."""

    limit: int
    leases: dict[str, Held] = field(default_factory=dict)
    bookings: dict[str, Booked] = field(default_factory=dict)

    def taken(self, tick: int, now: int, without: str = "") -> int:
        """Return the units that are spoken for in a tick, by leases and by other bookings."""
        total = sum(one.units for one in self.leases.values() if now <= tick < one.until)
        for key, one in self.bookings.items():
            if key != without and one.kept(tick):
                used = sum(
                    lease.units
                    for lease in self.leases.values()
                    if lease.booking == key and tick < lease.until
                )
                total += max(0, one.units - used)
        return total

    def fits(self, units: int, now: int, until: int) -> bool:
        """May a lease have units from now on, until then?"""
        return all(self.taken(tick, now) + units <= self.limit for tick in range(now, until))

    def accepts(self, wanted: Booked, now: int) -> bool:
        """May this be booked?"""
        return all(
            self.taken(tick, now) + wanted.units <= self.limit
            for tick in range(now, LAST)
            if wanted.kept(tick)
        )

    def owned(self, key: str, units: int, now: int) -> int | None:
        """Return until when a lease may have units of a booking from now on; None: it may not."""
        one = self.bookings[key]
        used = sum(lease.units for lease in self.leases.values() if lease.booking == key)
        if not one.open(now) or used + units > one.units:
            return None
        return next(end for start, end in one.windows if start <= now < end)

    def pass_to(self, now: int) -> None:
        """End what is over."""
        self.leases = {key: one for key, one in self.leases.items() if one.until > now}
