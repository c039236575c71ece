"""Bookings, and the windows in which units are free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire.pools import bookings
else:
    bookings = Types("pools.bookings")

CALENDAR = "text/calendar"
"""The content type of calendar files."""

CREATE_BOOKING = Operation(
    Access("POST /v1/bookings", "user", projects=True),
    Content(body=bookings.BookingWanted, answer=bookings.Booking, status=201),
    "Book units of pools for a time, once or in a series.",
)
LIST_BOOKINGS = Operation(
    Access("GET /v1/bookings", "reader", projects=True),
    Content(
        parameters=bookings.BookingsAsked,
        answer=bookings.BookingPage,
        media=("application/json", CALENDAR),
    ),
    "List bookings, the first made first, also as a calendar file.",
)
GET_BOOKING = Operation(
    Access("GET /v1/bookings/{id}", "reader", projects=True),
    Content(answer=bookings.Booking),
    "Get one booking with its windows.",
)
CHANGE_BOOKING = Operation(
    Access("PATCH /v1/bookings/{id}", "user", projects=True),
    Content(body=bookings.BookingChange, answer=bookings.Booking),
    "Change a booking; it must fit as a new one must.",
)
CANCEL_BOOKING = Operation(
    Access("DELETE /v1/bookings/{id}", "user", projects=True),
    Content(answer=bookings.Booking),
    "Cancel a booking; its leases go on until they end, repeating it is harmless.",
)
LIST_OFFERS = Operation(
    Access("GET /v1/offers", "reader", projects=True),
    Content(parameters=bookings.OffersAsked, answer=bookings.BookingOffers),
    "List the first windows in which units are free.",
)
