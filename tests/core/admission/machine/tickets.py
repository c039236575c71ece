"""Tickets and pools of the naive model."""

from dataclasses import dataclass, field

from moorage.core.admission.booking_model import BOOKED_PRIORITY
from moorage.core.admission.model import Pacing

Needs = dict[str, int]
"""Units by pool."""


@dataclass
class Ticket:
    """A ticket, or the lease that it became."""

    id: str
    owner: str
    needs: Needs
    priority: int
    arrival: int
    ttl: int
    hold: int | None
    patience: int | None
    forced: bool = False
    pull: bool = False
    waited_for: bool = False
    """Of a pull ticket: requests wait for it, until `heard`; otherwise it is polled."""
    state: str = "w"
    heard: int = 0
    """Alive time from which its patience or TTL counts; for a ticket it may be in the future."""
    granted_at: int = 0
    hold_until: int | None = None
    asked: int | None = None
    """The priority of its request, if it was moved since."""
    any_of: tuple[Needs, ...] = ()
    """Its alternatives; while it waits, `needs` has all their pools."""
    in_order: bool = False

    @property
    def options(self) -> tuple[Needs, ...]:
        """The units by pool that it may be granted."""
        return self.any_of or (self.needs,)

    newest: bool = False
    """Whether newer tickets go before it."""
    group: tuple[str, str] | None = None
    """Whose group it is in, and which."""
    cancels: bool = False
    """Whether it asks holders of its group to stop."""
    superseded: bool = False
    stop_until: int | None = None
    stop_downtime: int = 0

    booking: str | None = None
    """Whose units it is for. It goes before all that have none, whatever priority was `asked`."""
    borrow: int | None = None
    """It is content with this time, and ends when a booking needs its units."""

    def books(self, booking: str) -> None:
        """Make it a ticket of a booking."""
        self.booking, self.asked, self.priority = booking, self.priority, BOOKED_PRIORITY

    @property
    def place(self) -> tuple[int, int]:
        """Its place in its lines, lowest first."""
        return (-self.priority, -self.arrival if self.newest else self.arrival)


@dataclass
class Pool:
    """A pool; `paid` is the time up to which pacing is paid for."""

    limit: int
    quota: int | None = None
    cooldown: int = 0
    pacing: Pacing | None = None
    keep: bool = False
    requeue: bool = False
    newest: bool = False
    paused: bool = False
    paused_until: int | None = None
    paid: int = 0
    rests: list[tuple[int, int]] = field(default_factory=list)
    in_cohort: bool = False
    lending: int | None = None
    borrowing: int = 0
