"""Answers questions about bookings and free windows from rows. Every method raises `Error`."""

from collections.abc import Sequence

from moorage.core.admission.booking_model import Booking, Window
from moorage.core.admission.calendar.bookings import check_number, not_found, offers
from moorage.core.admission.model import Need
from moorage.core.clock import Instant
from moorage.core.ids import BookingId
from moorage.core.limits import BOOKED_WINDOWS_PAGE_MAX
from moorage.service import errors
from moorage.service.admission.booking_cases import BookingCase, BookingView
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.feed.watch import Cursor
from moorage.service.pages import page_of, rows_to_read
from moorage.store.admission import reads
from moorage.store.api import Engine

NEVER = Instant(-1)
"""Before every end of a booking."""


def _fitting(found: Sequence[Booking]) -> int:
    """Return how many of these fit into one page with all their windows; at least one."""
    windows = 0
    for number, one in enumerate(found):
        windows += len(one.windows)
        if windows > BOOKED_WINDOWS_PAGE_MAX:
            return max(1, number)
    return max(1, len(found))


class Calendars:
    """The bookings of one service."""

    def __init__(self, engine: Engine, service_clock: ServiceClock, transactor: Transactor) -> None:
        self._engine = engine
        self._service_clock = service_clock
        self._transactor = transactor

    async def change(self, case: BookingCase) -> BookingView:
        """Execute a case of a booking."""
        return await self._transactor.submit(case)

    async def booking(self, booking: BookingId) -> BookingView:
        """Return one booking. Raises BOOKING_NOT_FOUND."""
        with errors.translated():
            timeline, found = await self._engine.read(reads.booking_load(booking))
        if found is None:
            raise not_found(booking)
        return BookingView(found, self._service_clock.estimate(timeline))

    async def page(
        self,
        cursor: str | None,
        limit: int,
        *,
        pool: str | None = None,
        owner: str | None = None,
        over: bool = False,
    ) -> tuple[list[BookingView], str | None, Cursor]:
        """Return bookings by id, the next cursor, and their revision. Raises INVALID."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            now = self._service_clock.estimate(await self._engine.read(reads.timeline_load())).wall
            since = NEVER if over else now
            plan = reads.bookings_window(cursor or "", rows_max, since, owner, pool)
            seen = await self._engine.read_aside(plan)
        when = self._service_clock.estimate(seen.timeline)
        most = min(limit, _fitting(seen.bookings))
        page, following = page_of(seen.bookings, most, lambda one: one.id)
        views = [BookingView(one, when) for one in page]
        return views, following, Cursor(seen.epoch, seen.revision)

    async def offers(
        self,
        needs: Sequence[Need],
        lasts: int,
        between: tuple[Instant | None, Instant | None],
        ahead: int,
        most: int,
    ) -> list[Window]:
        """Return the first windows in which units are free, see `core.admission.calendar.bookings`.

        `between` None: from now on, for `ahead` microseconds.
        Raises INVALID, POOL_UNKNOWN, UNITS_ABOVE_LIMIT.
        """
        check_number(needs)
        with errors.translated():
            plan = reads.calendars_load({need.pool for need in needs})
            facts = await self._engine.read_aside(plan)
        when = self._service_clock.estimate(facts.timeline)
        start = when.wall if between[0] is None else max(between[0], when.wall)
        end = Instant(start + ahead) if between[1] is None else between[1]
        return offers(facts, when.moment.at, needs, lasts, Window(start, end), most)
