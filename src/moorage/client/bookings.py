"""The typed native API of bookings, and of the windows in which units are free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.client.calling import Room
from moorage.wire.operations import bookings
from moorage.wire.pools.bookings import Booking, BookingChange, BookingOffer, BookingWanted


class Bookings(Room):
    """The bookings of one server. Every call raises what those of `Admission` raise."""

    def book(self, wanted: BookingWanted) -> Booking:
        """Book units; the same key and request give the same booking, so it is safe to repeat."""
        return self._call(bookings.CREATE_BOOKING, body=wanted)

    def all(
        self,
        pool: str | None = None,
        owner: str | None = None,
        *,
        mine: bool = False,
        over: bool = False,
    ) -> Iterator[Booking]:
        """Yield bookings, the first made first; `over`: also those that are over or cancelled."""
        query = {"pool": pool, "owner": owner, "mine": mine or None, "over": over or None}
        for page in self._pages(bookings.LIST_BOOKINGS, query=query):
            yield from page.bookings

    def booking(self, booking_id: str) -> Booking:
        """Return one booking."""
        return self._call(bookings.GET_BOOKING, booking_id)

    def change(self, booking_id: str, wanted: BookingChange) -> Booking:
        """Change a booking; it must fit as a new one must."""
        return self._call(bookings.CHANGE_BOOKING, booking_id, body=wanted)

    def cancel(self, booking_id: str) -> Booking:
        """Cancel a booking; its leases go on until they end. It is safe to repeat."""
        return self._call(bookings.CANCEL_BOOKING, booking_id)

    def offers(
        self,
        needs: Sequence[str],
        duration: float,
        between: str | None = None,
        limit: int | None = None,
    ) -> list[BookingOffer]:
        """Return the first windows in which units are free for some seconds.

        `needs` are POOL or POOL=UNITS; `between` is START/END in RFC 3339.
        """
        query = {"needs": [*needs], "duration": duration, "between": between, "limit": limit}
        return self._call(bookings.LIST_OFFERS, query=query).offers
