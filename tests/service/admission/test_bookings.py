"""Bookings in a running service: their times over restarts, outages and jumps of the clock."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from moorage.core.admission.calendar.bookings import Booker
from moorage.core.admission.model import Need
from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.ids import BookingId, LeaseId
from moorage.service.admission.booking_cases import (
    BookingAlter,
    BookingCancel,
    BookingCreate,
    BookingView,
    booking_id_new,
)
from moorage.service.admission.lease_cases import LeaseRelease, Sweep
from moorage.service.admission.service import Admission
from moorage.service.app import Service
from moorage.service.values import time_of
from moorage.store.admission import save
from moorage.store.admission.check import differences_load
from moorage.wire.pools.bookings import BookedUnits, BookingChange, BookingWanted, Repeat
from tests.service.admission.test_faulty_rows import unreadable
from tests.service.pools import ask, opened, pass_time, pool_pause, pool_put, refusal, spec
from tests.service.running import TESTER, ManualClock, Running, running
from tests.support import cluster

OPERATES = Booker("me", frozenset({"operator"}))

Played = Callable[[Running], Awaitable[None]]


class Stage:
    """A database that services with one manual clock serve, one after the other."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.clock = ManualClock()

    def play(self, scenario: Played) -> None:
        """Start a service, play a scenario, check all rows, and stop the service."""

        async def played() -> None:
            async with running(self.where, clock=self.clock) as one:
                await scenario(one)
                found = await one.engine.engine.read_aside(differences_load())
                assert found == []

        asyncio.run(played())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Return a stage; only on SQLite is the time that of the process, so that a test can set it."""
    return Stage(tmp_path / "m.sqlite")


def from_now(now: Instant) -> BookingWanted:
    """Return a booking of a unit of the pool `p` for an hour that begins now."""
    return BookingWanted(
        needs=[BookedUnits(pool="p", units=1)],
        key="k",
        start=time_of(now),
        end=time_of(now) + timedelta(hours=1),
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def play(url: str, scenario: Callable[[Service], Awaitable[None]]) -> None:
    """Play a scenario with a service, by the real clock."""

    async def played() -> None:
        async with opened(url) as service:
            await scenario(service)

    asyncio.run(played())


def test_both_engines_load_what_decides(url: str) -> None:
    """By the real clock: a booking that runs is used, keeps its unit, is changed and cancelled."""

    async def scenario(service: Service) -> None:
        admission, now = service.admission, (await service.admission.queries.now()).wall
        await pool_put(admission, "p", spec(2))
        wanted = from_now(now)

        def case() -> BookingCreate:
            return BookingCreate(OPERATES, TESTER, booking_id_new(), "me", wanted)

        made = (await admission.calendars.change(case())).booking
        assert (await admission.calendars.change(case())).booking == made
        mine = (await ask(admission, "mine", "p", booking=made.id)).lease
        assert (mine.state, mine.booking) == ("granted", made.id)
        taken = (await admission.calendars.booking(made.id)).booking
        assert taken.taken_at == made.windows[0].start
        assert (await ask(admission, "short", "p", hold=60 * SECOND)).lease.state == "granted"
        waits = await ask(admission, "waits", "p", booking=made.id)
        assert waits.standing is not None
        assert waits.standing.code == "booked"
        await admission.change(LeaseRelease(mine.id, Proof("me")))
        assert await state_of(admission, waits.lease.id) == ("granted", None)
        changed = BookingAlter(OPERATES, TESTER, made.id, BookingChange(note="x"))
        assert (await admission.calendars.change(changed)).booking.note == "x"
        offers = await admission.calendars.offers(
            [Need("p", 2)], 60 * SECOND, (None, None), 7 * 86_400 * SECOND, 10
        )
        assert [one.start for one in offers] == [made.ends_at]
        assert (await admission.calendars.page(None, 10, pool="p"))[0][0].booking.note == "x"
        await admission.calendars.change(BookingCancel(OPERATES, TESTER, made.id))
        assert (await admission.calendars.page(None, 10))[0] == []
        assert await state_of(admission, waits.lease.id) == ("granted", None)

    play(url, scenario)


async def book(one: Running, start: float, end: float, **more: Any) -> BookingView:
    """Book a unit of `p`; times are in seconds from now."""
    wall = time_of(one.clock.now())
    wanted = BookingWanted(
        **{
            "needs": [BookedUnits(pool="p", units=1)],
            "key": str(start),
            "start": wall + timedelta(seconds=start),
            "end": wall + timedelta(seconds=end),
        }
        | more
    )
    case = BookingCreate(OPERATES, TESTER, booking_id_new(), "me", wanted)
    return await one.service.admission.calendars.change(case)


async def state(one: Running, lease: LeaseId) -> tuple[str, str | None]:
    """Return the state of a lease, and why it ended."""
    return await state_of(one.service.admission, lease)


async def state_of(admission: Admission, lease: LeaseId) -> tuple[str, str | None]:
    """Return the same of a lease of another service."""
    seen = (await admission.queries.lease(lease)).lease
    return seen.state, seen.cause


def test_a_start_is_not_missed_after_a_restart(stage: Stage) -> None:
    """The ticket waits over a restart, and is granted at the very start of its window."""
    tickets: list[LeaseId] = []

    async def before(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(1))
        made = await book(one, 100, 200)
        ticket = await ask(
            one.service.admission, "a", "p", booking=made.booking.id, patience=3_000 * SECOND
        )
        assert ticket.standing is not None
        assert ticket.standing.code == "booked"
        tickets.append(ticket.lease.id)

    async def after(one: Running) -> None:
        await pass_time(one, 49 * SECOND)
        assert await state(one, tickets[0]) == ("waiting", None)
        await pass_time(one, SECOND)
        assert await state(one, tickets[0]) == ("granted", None)

    stage.play(before)
    stage.clock.at += 50 * SECOND
    stage.play(after)


def test_a_start_in_an_outage_comes_late_and_an_end_is_final(stage: Stage) -> None:
    """The first window has begun when the service returns, the second is over."""
    tickets: list[LeaseId] = []

    async def before(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(2))
        for start, end in ((100, 400), (110, 200)):
            made = await book(one, start, end)
            more = {"booking": made.booking.id, "patience": 3_000 * SECOND}
            tickets.append((await ask(one.service.admission, str(end), "p", **more)).lease.id)

    async def after(one: Running) -> None:
        await pass_time(one, SECOND)
        assert await state(one, tickets[0]) == ("granted", None)
        assert await state(one, tickets[1]) == ("ended", "revoked")

    stage.play(before)
    stage.clock.at += 250 * SECOND
    stage.play(after)


def test_bookings_follow_a_jump_of_the_clock(stage: Stage) -> None:
    """The clock is put forward by a minute, so the window begins a minute sooner."""

    async def scenario(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(1))
        made = await book(one, 100, 200)
        more = {"booking": made.booking.id, "patience": 3_000 * SECOND, "ttl": 3_600 * SECOND}
        ticket = (await ask(one.service.admission, "a", "p", **more)).lease.id
        await pass_time(one, 8 * SECOND)
        one.clock.jump += 60 * SECOND
        await pass_time(one, 20 * SECOND)
        assert await state(one, ticket) == ("waiting", None)
        await pass_time(one, 20 * SECOND)
        assert await state(one, ticket) == ("granted", None)
        await pass_time(one, 100 * SECOND)
        assert await state(one, ticket) == ("ended", "hold_over")

    stage.play(scenario)


def test_a_clock_that_goes_back_brings_bookings_back(stage: Stage) -> None:
    """It was far ahead for a while, so the booking was over; its units are kept again."""

    async def scenario(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(1))
        await book(one, 100, 200)
        for jump in (1_000 * SECOND, -1_000 * SECOND):
            await pass_time(one, 8 * SECOND)
            one.clock.jump += jump
            await pass_time(one, 20 * SECOND)
            pool = (await one.service.admission.queries.pool("p")).pool
            assert (pool.booked_until is None) == (jump > 0)
        long = (await ask(one.service.admission, "long", "p", hold=300 * SECOND)).lease.id
        assert await state(one, long) == ("waiting", None)

    stage.play(scenario)


def test_a_booked_pool_that_cannot_be_read_keeps_no_other_from_its_sweep(stage: Stage) -> None:
    """The clock has jumped, so bookings are mapped first; leases end all the same."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        for name in "pq":
            await pool_put(admission, name, spec(2))
        await book(one, 100, 200)
        sick = (await ask(admission, "sick", "p", units=2, hold=300 * SECOND)).lease.id
        lease = (await ask(admission, "other", "q", hold=10 * SECOND)).lease.id
        with unreadable(stage.where.parent, sick):
            one.clock.jump += 60 * SECOND
            one.clock.at += 11 * SECOND
            await pool_put(admission, "r", spec(1))
            assert not await admission.sweeper.sweep()
            assert await state(one, lease) == ("ended", "hold_over")

    stage.play(scenario)


def test_units_are_kept_closed_and_given_back(stage: Stage) -> None:
    """What the rows say, with what each batch loads again: kept, given back, cancelled."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        made = await book(one, 50, 500, no_show=10.0)
        patience = {"patience": 3_000 * SECOND}
        other = (await ask(admission, "other", "p", **patience)).lease.id
        await pass_time(one, 58 * SECOND)
        assert await state(one, other) == ("waiting", None)
        await pass_time(one, 2 * SECOND)
        assert await state(one, other) == ("granted", None)
        seen = await admission.calendars.booking(made.booking.id)
        assert seen.booking.given_back == (made.booking.windows[0].start,)
        closed = await book(one, 600, 700, closure=True, needs=[BookedUnits(pool="p", units=None)])
        cancel = BookingCancel(OPERATES, TESTER, closed.booking.id)
        assert (await admission.calendars.change(cancel)).booking.cancelled_at is not None
        await admission.calendars.change(cancel)
        missing = BookingCancel(OPERATES, TESTER, BookingId(str(other)))
        assert await refusal(admission.calendars.change(missing)) is Code.BOOKING_NOT_FOUND

    stage.play(scenario)


def test_a_stale_change_is_refused(stage: Stage) -> None:
    """The generation guards a change; a refused one changes nothing."""

    async def scenario(one: Running) -> None:
        calendars = one.service.admission.calendars
        await pool_put(one.service.admission, "p", spec(1))
        made = (await book(one, 50, 100)).booking

        def alter(**more: Any) -> BookingAlter:
            return BookingAlter(OPERATES, TESTER, made.id, BookingChange(**more))

        changed = (await calendars.change(alter(note="x", generation=1))).booking
        assert (changed.note, changed.generation) == ("x", 2)
        assert await refusal(calendars.change(alter(note="y", generation=1))) is (
            Code.BOOKING_GENERATION
        )
        assert await refusal(calendars.change(alter(skip=["2030-01-01"]))) is Code.INVALID
        assert (await calendars.booking(made.id)).booking == changed

    stage.play(scenario)


def test_many_bookings_are_decided_within_a_batch(stage: Stage) -> None:
    """A pool with as many windows as it may have still answers, with the same rows."""

    async def scenario(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(50))
        for n in range(40):
            await book(one, 1_000 + n * 10, 1_005 + n * 10, key=str(n))
        views, following, _ = await one.service.admission.calendars.page(None, 25, pool="p")
        more, end, _ = await one.service.admission.calendars.page(following, 25, pool="p")
        assert (len(views), len(more), end) == (25, 15, None)
        lease = await ask(one.service.admission, "a", "p", units=50, hold=900 * SECOND)
        assert lease.lease.state == "granted"
        late = await ask(one.service.admission, "b", "p", units=50, hold=1_100 * SECOND)
        assert late.lease.state == "waiting"
        await one.service.transactor.submit(Sweep(pools=frozenset({"p"})))

    stage.play(scenario)


def test_reasons_that_need_many_windows_let_others_have_their_turn(stage: Stage) -> None:
    """Each ticket of a page is compared with all windows: others are answered in between."""

    async def scenario(one: Running) -> None:
        admission, turns = one.service.admission, 0
        await pool_put(admission, "p", spec(1))
        for n in range(4):
            series = Repeat(every="day", count=366)
            await book(one, 9_000 + n * 100, 9_050 + n * 100, key=str(n), repeat=series)
        for n in range(20):
            await ask(admission, str(n), "p", hold=366 * 86_400 * SECOND)

        async def counting() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        await admission.queries.leases(None, 99, "p", "waiting")  # the pass over the line is kept
        others = asyncio.create_task(counting())
        found, _, _ = await admission.queries.leases(None, 99, "p", "waiting")
        others.cancel()
        assert [one.standing.code for one in found if one.standing] == ["booked"] * 20
        assert turns > 3

    stage.play(scenario)


def test_old_bookings_are_forgotten(stage: Stage) -> None:
    """90 days after its end, a booking and its key are gone."""

    async def scenario(one: Running) -> None:
        await pool_put(one.service.admission, "p", spec(1))
        made = await book(one, 50, 100)
        one.clock.at += 91 * 86_400 * SECOND
        await one.service.admission.forget()
        assert await refusal(one.service.admission.calendars.booking(made.booking.id)) is (
            Code.BOOKING_NOT_FOUND
        )
        assert Instant(one.clock.at) > made.booking.ends_at

    stage.play(scenario)


def test_cancelled_bookings_are_bounded(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of a pool go; those of other pools stay, and so do those that are not over."""
    monkeypatch.setattr(save, "BOOKINGS_OVER_MAX", 3)

    async def scenario(service: Service) -> None:
        admission, calendars = service.admission, service.admission.calendars
        now = (await admission.queries.now()).wall

        async def booked(key: str, pool: str = "p") -> BookingId:
            wanted = BookingWanted(
                needs=[BookedUnits(pool=pool, units=1)],
                key=key,
                start=time_of(now) + timedelta(hours=1),
                end=time_of(now) + timedelta(hours=2),
            )
            case = BookingCreate(OPERATES, TESTER, booking_id_new(), "me", wanted)
            return (await calendars.change(case)).booking.id

        for pool in "pq":
            await pool_put(admission, pool, spec(9))
        stays, other = await booked("stays"), await booked("other", "q")
        await calendars.change(BookingCancel(OPERATES, TESTER, other))
        made = [await booked(str(n)) for n in range(6)]
        for one in made:
            await calendars.change(BookingCancel(OPERATES, TESTER, one))
        found, _, _ = await calendars.page(None, 20, over=True)
        kept = [view.booking.id for view in found]
        assert sorted(kept) == sorted([stays, other, *made[3:]])
        assert await service.engine.read_aside(differences_load()) == []

    play(url, scenario)


def test_tickets_of_a_cancelled_booking_end_in_a_paused_pool(url: str) -> None:
    """At once, although nobody looks at the line."""

    async def scenario(service: Service) -> None:
        admission, now = service.admission, (await service.admission.queries.now()).wall
        await pool_put(admission, "p", spec(2))
        wanted = from_now(now)
        case = BookingCreate(OPERATES, TESTER, booking_id_new(), "me", wanted)
        made = (await admission.calendars.change(case)).booking
        await pool_pause(admission, "p", True)
        mine = (await ask(admission, "mine", "p", booking=made.id)).lease
        plain = (await ask(admission, "plain", "p")).lease
        await admission.calendars.change(BookingCancel(OPERATES, TESTER, made.id))
        assert await state_of(admission, mine.id) == ("ended", "revoked")
        assert (await state_of(admission, plain.id))[0] == "waiting"

    play(url, scenario)
