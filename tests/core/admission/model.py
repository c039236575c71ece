"""A naive model of admission, without optimisations, that `test_machine.py` compares with.

It finds everything by scanning all tickets. Each command is one batch, as in `build.World`.
"""

from dataclasses import dataclass, field

from moorage.core.admission.model import Pacing
from moorage.core.clock import SECOND

MARGIN = 10 * SECOND


@dataclass
class Ticket:
    """A ticket, or the lease that it became."""

    id: str
    owner: str
    needs: dict[str, int]
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
    newest: bool = False
    """Whether newer tickets go before it."""
    group: tuple[str, str] | None = None
    """Whose group it is in, and which."""
    cancels: bool = False
    """Whether it asks holders of its group to stop."""
    superseded: bool = False
    stop_until: int | None = None

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


class Model:
    """All pools and tickets, and the time."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.downtime = 0
        self.outage_ended = 0
        self.arrivals = 0
        self.pools: dict[str, Pool] = {}
        self.tickets: list[Ticket] = []

    def held(self, pool: str, owner: str | None = None) -> int:
        """Return the occupied units of a pool, of all owners or of one."""
        return sum(
            t.needs.get(pool, 0)
            for t in self.tickets
            if t.state == "g" and owner in (None, t.owner)
        )

    def find(self, key: str) -> Ticket:
        """Return the ticket with this id."""
        return next(t for t in self.tickets if t.id == key)

    def put(self, name: str, pool: Pool) -> None:
        """Create or change a pool."""
        old = self.pools.get(name)
        if old is not None:
            pool.paused, pool.paid = old.paused, old.paid
            pool.paused_until = old.paused_until
            pool.rests = [
                (min(until, self.now + pool.cooldown), units) for until, units in old.rests
            ]
            if pool.pacing and pool.pacing != old.pacing:
                ahead = pool.pacing.burst * pool.pacing.interval
                pool.paid = min(pool.paid, self.now + ahead)
        self.pools[name] = pool

    def ask(self, ticket: Ticket, arrival: int | None = None, wait: int = 0) -> None:
        """Add a ticket to the lines, for which a request waits for `wait`."""
        if arrival is None:
            self.arrivals += 1
        ticket.arrival = self.arrivals if arrival is None else arrival
        ticket.heard = self.now - self.downtime + (wait or -ticket.waited_for)
        self.tickets.append(ticket)

    def join(self, ticket: Ticket, wait: int = 0) -> None:
        """Add the ticket of a new request, which supersedes earlier ones of its group."""
        place = None
        for other in self.tickets if ticket.group else ():
            if other.group != ticket.group or other.state not in ("w", "g"):
                continue
            asked = other.priority if other.asked is None else other.asked
            same = (other.needs, asked) == (ticket.needs, ticket.priority)
            if other.state == "g":
                other.superseded = True
                if ticket.cancels and other.stop_until is None:
                    other.stop_until = self.now + other.ttl
            else:
                self.end(other, "superseded")
                place = other if same and not ticket.forced and not other.forced else None
        ticket.newest = all(self.pools[name].newest for name in ticket.needs)
        if place is None or ticket.newest:
            self.ask(ticket, wait=wait)
            return
        ticket.priority, ticket.asked, ticket.newest = place.priority, place.asked, place.newest
        self.ask(ticket, place.arrival, wait)

    def _again(self, old: Ticket, new: Ticket, keeps: bool) -> None:
        """Ask again, at the old place or at the end of the line, unless a newer request waits."""
        new.newest = all(self.pools[name].newest for name in new.needs)
        if keeps:
            new.priority, new.asked, new.newest = old.priority, old.asked, old.newest
        self.ask(new, old.arrival if keeps else None)
        if old.superseded:
            self.end(new, "superseded")

    def move(self, ticket: Ticket, priority: int | None) -> None:
        """Give a ticket another priority; None: so high that it is the first in its lines."""
        if priority is None:
            priority = ticket.priority
            while any(
                t.place < (-priority, ticket.place[1])
                for t in self.tickets
                if t.state == "w" and t is not ticket and t.needs.keys() & ticket.needs.keys()
            ):
                priority += 1
        if ticket.asked is None and priority != ticket.priority:
            ticket.asked = ticket.priority
        ticket.priority = priority

    def hear(self, ticket: Ticket) -> None:
        """Note a renewal or a poll; a poll extends the patience by a fifth."""
        alive = self.now - self.downtime
        if ticket.state == "g":
            ticket.heard = alive
        elif ticket.waited_for:
            ticket.heard = max(ticket.heard, alive - 1)
        elif ticket.patience is not None and alive > ticket.heard:
            ticket.heard = alive + ticket.patience // 5

    def end(self, ticket: Ticket, cause: str) -> None:
        """End a ticket or lease."""
        if ticket.state == "g":
            for name, units in ticket.needs.items():
                self.pools[name].rests.append((self.now + self.pools[name].cooldown, units))
        ticket.state = cause

    def retry(self, ticket: Ticket, new: Ticket) -> None:
        """Release a lease and ask again, with the units or the place kept if permitted."""
        keeps = not any(self.pools[name].requeue for name in ticket.needs)
        fine = ticket.state == "g" and ticket.stop_until is None
        for name in ticket.needs:
            pool = self.pools[name]
            quota = pool.quota if pool.quota is not None else self.held(name)
            fine = fine and not pool.paused and self.held(name) <= pool.limit
            fine = fine and self.held(name, ticket.owner) <= quota
        if keeps and fine:
            ticket.state = "retried"
            self.ask(new)
            new.priority, new.asked = ticket.priority, ticket.asked
            new.newest, new.superseded = ticket.newest, ticket.superseded
            self.start(new)
        else:
            self.end(ticket, "retried")
            self._again(ticket, new, keeps)

    def requeue(self, ticket: Ticket, new: Ticket) -> None:
        """Release a lease and wait at its old place, if retries keep it; a pull ticket is idle."""
        keeps = not any(self.pools[name].requeue for name in ticket.needs)
        self.end(ticket, "retried")
        self._again(ticket, new, keeps)

    def sweep(self) -> None:
        """End what is due."""
        for pool in self.pools.values():
            if pool.paused_until is not None and self.now >= pool.paused_until:
                pool.paused, pool.paused_until = False, None
        alive = self.now - self.downtime
        for t in list(self.tickets):
            if t.state == "w" and t.patience is not None and alive >= t.heard + t.patience:
                self.end(t, "unheard")
            elif t.state == "g" and t.hold_until is not None and self.now >= t.hold_until:
                self.end(t, "hold_over")
            elif t.state == "g" and t.stop_until is not None and self.now >= t.stop_until:
                self.end(t, "superseded")
            elif t.state == "g" and not any(self.pools[name].keep for name in t.needs):
                silent = alive - t.heard
                grace = bool(self.outage_ended) and self.now < self.outage_ended + t.ttl // 3
                if silent >= 2 * t.ttl or (silent >= t.ttl and not grace):
                    self.end(t, "ttl_over")

    def free(self, name: str) -> int:
        """Return the units that are neither occupied nor in cooldown."""
        pool = self.pools[name]
        resting = sum(units for until, units in pool.rests if until > self.now)
        return pool.limit - self.held(name) - resting

    def paced(self, name: str) -> bool:
        """Return whether pacing permits a grant."""
        pool = self.pools[name]
        if pool.pacing is None:
            return True
        return pool.paid - self.now <= (pool.pacing.burst - 1) * pool.pacing.interval

    def start(self, ticket: Ticket) -> None:
        """Grant a ticket."""
        ticket.state, ticket.granted_at = "g", self.now
        ticket.heard = self.now - self.downtime
        ticket.hold_until = None if ticket.hold is None else self.now + ticket.hold
        for name, units in ticket.needs.items():
            pool = self.pools[name]
            if pool.pacing is not None and not ticket.forced:
                pool.paid = max(pool.paid, self.now) + units * pool.pacing.interval

    def admit(self, polled: str | None = None) -> None:
        """Grant every ticket that may start."""
        for ticket in self.tickets:
            if ticket.state == "w" and ticket.forced:
                self.start(ticket)
        aside = dict.fromkeys(self.pools, 0)
        for t in sorted(self.tickets, key=lambda t: t.place):
            if t.state != "w" or any(self.barred(t, name) for name in t.needs):
                continue
            unasked, silent = t.pull and t.id != polled, self.now - self.downtime - t.heard
            if unasked and silent > (0 if t.waited_for else MARGIN):
                continue
            unasked = unasked and not t.waited_for
            fits = all(
                self.free(name) - aside[name] >= units and self.paced(name)
                for name, units in t.needs.items()
            )
            if fits and not unasked:
                self.start(t)
            elif not t.waited_for or silent < 0:
                for name, units in t.needs.items():
                    left = max(0, self.free(name) - aside[name])
                    aside[name] += min(left, units)

    def barred(self, ticket: Ticket, name: str) -> bool:
        """Return whether a pool bars the ticket, so that it is passed over."""
        pool, units = self.pools[name], ticket.needs[name]
        if pool.paused or units > pool.limit:
            return True
        return pool.quota is not None and self.held(name, ticket.owner) + units > pool.quota
