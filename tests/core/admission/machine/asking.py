"""What all rules of the state machine share: its pools, and requests in both worlds."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from moorage.core.admission.model import FencingToken, Lease
from moorage.core.admission.requests import NEVER
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code, Error
from tests.core.admission.build import START, World
from tests.core.admission.machine.booked import Booking
from tests.core.admission.machine.model import Model
from tests.core.admission.machine.tickets import Ticket

POOLS = ("p", "q", "s")
LENDERS = ("a", "b", "c")
"""Pools of a cohort."""
SLOTTED = "s"
SLOTS = ("s1", "s2", "s3")
OWNERS = ("shop/ann", "shop/bob", "cid")

HOLDS = (None, 7 * SECOND, 40 * SECOND)
wishes = st.dictionaries(st.sampled_from(POOLS), st.integers(1, 4), min_size=1, max_size=3)
PATIENCE = 30 * SECOND


class Asking(RuleBasedStateMachine):
    """The world and the model, and requests to both."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(page=2)
        self.model = Model(START, SLOTTED, len(SLOTS))
        self.names = 0
        self.tokens: dict[str, FencingToken] = {}
        self.seen: dict[str, Lease] = {}

    def admit(self, polled: str | None = None) -> None:
        """Grant in the model; tickets of bookings that are over end as soon as they are seen."""
        self.model.admit(polled)
        states = self.world.states()
        for ticket in self.model.tickets:
            if ticket.state == "w" and ticket.booking is not None and not ticket.forced:
                over = self.model.calendar.bookings[ticket.booking].is_over(self.model.now)
                if over and states[ticket.id] == "revoked":
                    ticket.state = "revoked"

    def _group(self, ticket: Ticket, group: str, cancels: bool) -> None:
        project, slash, _ = ticket.owner.partition("/")
        ticket.group, ticket.cancels = (project + slash, group), cancels

    def _asks(self, ticket: Ticket, needs: dict[str, int], wait: int, **more: Any) -> None:
        wait = wait if ticket.waited_for else 0
        try:
            self.world.ask(ticket.id, needs, **self._words(ticket, wait), **more)
        except Error as refusal:
            assert refusal.code in self._refusals(ticket)
            return
        assert not self._refusals(ticket)
        self.model.join(ticket, wait)
        self.admit(ticket.id if ticket.pull else None)

    def _ticket(
        self, needs: dict[str, int], owner: str, priority: int, hold: int | None, kind: str
    ) -> Ticket:
        self.names += 1
        patience = None if kind == "patient" else PATIENCE
        name = f"t{self.names}"
        ticket = Ticket(name, owner, needs, priority, 0, 60 * SECOND, hold, patience)
        ticket.forced, ticket.waited_for = kind == "forced", kind == "pull"
        ticket.pull = kind in ("pull", "polled")
        return ticket

    def _words(self, ticket: Ticket, wait: int = 0) -> dict[str, Any]:
        alive = self.world.moment.alive
        until = None if ticket.patience is None else Instant(alive + wait + ticket.patience)
        return {
            "owner": ticket.owner,
            "priority": ticket.priority if ticket.booking is None else ticket.asked,
            "booking": ticket.booking,
            "borrow": ticket.borrow,
            "hold": NEVER if ticket.hold is None else ticket.hold,
            "heard_until": until,
            "forced": ticket.forced,
            "pull": ticket.pull,
            "group": "" if ticket.group is None else ticket.group[1],
            "cancel_running": ticket.cancels,
        }

    def _refusals(self, ticket: Ticket) -> set[Code]:
        """Return why a request must be refused."""
        found, pools = set(), [self.model.pools[name] for name in ticket.needs]
        mixed = len({pool.newest for pool in pools}) > 1
        if mixed or (len(pools) > 1 and any(pool.in_cohort for pool in pools)):
            found.add(Code.INVALID)
        enough = map(self.model.has_slots, ticket.options)
        can_be = enough if ticket.forced else (not self._is_too_much(x) for x in ticket.options)
        if not any(can_be):
            found.add(Code.UNITS_ABOVE_LIMIT)
        if ticket.booking is not None:
            found |= self._not_booked(ticket, self.model.calendar.bookings[ticket.booking])
        return found

    def _not_booked(self, ticket: Ticket, booking: Booking) -> set[Code]:
        if booking.is_over(self.model.now):
            return {Code.BOOKING_NOT_FOUND}
        if booking.owner != ticket.owner:
            return {Code.HOLDER_MISMATCH}
        if booking.closure:
            return {Code.INVALID}
        more = any(units > booking.needs.get(name, 0) for name, units in ticket.needs.items())
        return {Code.UNITS_ABOVE_LIMIT} if more else set()

    def _is_too_much(self, needs: dict[str, int]) -> bool:
        pools = [(self.model.pools[name], units) for name, units in needs.items()]
        quotas = [pool.quota is not None and units > pool.quota for pool, units in pools]
        limits = [units > pool.limit + pool.borrowing for pool, units in pools]
        return any(limits) or any(quotas)
