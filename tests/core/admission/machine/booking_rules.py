"""The rules of the state machine about bookings."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from tests.core.admission.build import START
from tests.core.admission.machine.asking import HOLDS, OWNERS, Asking, wishes
from tests.core.admission.machine.booked import Booking


class Bookings(Asking):
    """Books units, asks for them, and cancels bookings."""

    @rule(
        needs=wishes,
        owner=st.sampled_from(OWNERS),
        starts=st.sampled_from([1, 5, 12, 40]),
        lasts=st.sampled_from([5, 20, 60]),
        more=st.sampled_from([0, 0, 1, 30]),
        lead=st.sampled_from([0, 0, 3]),
        no_show=st.sampled_from([None, None, 4, 15]),
        kind=st.sampled_from(["plain", "plain", "plain", "plain", "closure", "forced"]),
    )
    def book(
        self,
        needs: dict[str, int],
        owner: str,
        starts: int,
        lasts: int,
        more: int,
        lead: int,
        no_show: int | None,
        kind: str,
    ) -> None:
        """I29: units are booked if and only if they are free in all windows."""
        self.names += 1
        key, now, closure = f"b{self.names}", self.model.now, kind == "closure"
        needs = dict.fromkeys(needs, 0) if closure and lead else needs
        spans = [(starts, starts + lasts), (starts + lasts + more, starts + 2 * lasts + more)]
        spans = spans[: 1 + (more > 0)]
        windows = [(now + a * SECOND, now + b * SECOND) for a, b in spans]
        gone = None if no_show is None else no_show * SECOND
        booking = Booking(owner, needs, windows, lead * SECOND, gone, closure)
        above = [
            units > pool.limit or (pool.quota is not None and not closure and units > pool.quota)
            for pool, units in [(self.model.pools[name], units) for name, units in needs.items()]
        ]
        accepted = kind == "forced" or self.model.calendar.accepts(booking)
        try:
            self.world.book(
                key,
                needs,
                *[((a - START) / SECOND, (b - START) / SECOND) for a, b in windows],
                owner=owner,
                lead=booking.lead,
                no_show=booking.no_show,
                closure=closure,
                forced=kind == "forced",
            )
        except Error as refusal:
            assert refusal.code == (Code.UNITS_ABOVE_LIMIT if any(above) else Code.BOOKED)
            assert any(above) or not accepted
            return
        assert accepted
        assert not any(above)
        self.model.calendar.bookings[key] = booking
        self.admit()

    @precondition(lambda self: self.model.calendar.bookings)
    @rule(
        data=st.data(),
        less=st.booleans(),
        thief=st.sampled_from([False, False, False, False, True]),
        kind=st.sampled_from(["plain", "plain", "plain", "pull", "patient"]),
        hold=st.sampled_from(HOLDS),
        group=st.sampled_from(["", "", "", "main"]),
    )
    def use(
        self, data: st.DataObject, less: bool, thief: bool, kind: str, hold: int | None, group: str
    ) -> None:
        """I29: a request for units of a booking, which is for its owner."""
        key = data.draw(st.sampled_from([*self.model.calendar.bookings]))
        booking = self.model.calendar.bookings[key]
        needs = {name: 1 if less else max(1, units) for name, units in booking.needs.items()}
        owner = next(x for x in OWNERS if (x == booking.owner) != thief)
        ticket = self._ticket(needs, owner, 0, hold, kind)
        ticket.books(key)
        if group:
            self._group(ticket, group, cancels=False)
        self._asks(ticket, needs, 0)

    @precondition(lambda self: self.model.calendar.bookings)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from([*self.model.calendar.bookings]))
        self.world.cancel(key)
        self.model.calendar.bookings[key].cancelled = True
        self.admit()
