"""Random bookings and leases: the rule agrees with a model that adds up every tick.

Each request comes alone, and one that is not granted at once is withdrawn: so nothing but the rule
decides. The limit never changes, so nobody with a booking waits longer than until its start.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.admission.calendar import booked_pools, profile
from moorage.core.admission.requests import NEVER
from moorage.core.clock import HOUR, SECOND
from moorage.core.errors import Code, Error
from moorage.core.ids import BookingId
from tests.core.admission.bookings.model import LAST, Booked, Calendar, Held
from tests.core.admission.build import World, booking

LIMIT = 4

ticks = st.integers(0, LAST - 1)
windows = st.lists(st.tuples(ticks, st.integers(1, 9)), min_size=1, max_size=3)
steps = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 6)),
    st.tuples(st.just("ask"), st.integers(1, 3), st.none() | st.integers(1, 20)),
    st.tuples(st.just("borrow"), st.integers(1, 3), st.integers(1, 10)),
    st.tuples(st.just("book"), st.integers(1, 4), windows, st.integers(0, 2)),
    st.tuples(st.just("use"), st.integers(0, 5), st.integers(1, 3)),
    st.tuples(st.just("extend"), st.integers(0, 5), st.none() | st.integers(1, 20)),
    st.tuples(st.just("release"), st.integers(0, 5)),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("move"), st.integers(0, 5), windows),
)


class Both:
    """The rules and the model, side by side; a tick is a second."""

    def __init__(self) -> None:
        self.world = World()
        self.world.pool("p", LIMIT, ttl=HOUR)
        self.model = Calendar(LIMIT)
        self.now = 0
        self.names = 0
        self.grants = 0

    def step(self, kind: str, *values: Any) -> None:
        """Do one step on both, and compare all that is held then."""
        getattr(self, kind)(*values)
        live = {
            key: one.hold_until
            for key, one in self.world.facts.leases.items()
            if one.state == "granted"
        }
        assert live.keys() == self.model.leases.keys()
        for key, until in live.items():
            assert until == self.end(self.model.leases[key].until), key
        held = sum(one.units for one in self.model.leases.values())
        assert self.world.facts.pools["p"].occupied == held <= LIMIT

    def end(self, until: int) -> int | None:
        """Return a tick as a service time; the last one is for ever."""
        return None if until == LAST else self.world.now + (until - self.now) * SECOND

    def pass_(self, ticks: int) -> None:
        """Let time pass."""
        ticks = min(ticks, LAST - 1 - self.now)
        self.now += ticks
        self.world.wait(ticks)
        self.model.pass_to(self.now)

    def ask(self, units: int, hold: int | None, **more: Any) -> None:
        """Ask for units; what does not start at once is withdrawn."""
        until = LAST if hold is None else self.now + hold
        if until >= LAST and hold is not None:
            return
        key = self.asked(units, hold=None if hold is None else hold * SECOND, **more)
        granted = self.world.lease(key).state == "granted"
        assert granted == self.model.fits(units, self.now, until), (units, hold)
        if granted:
            self.grants += 1
            self.model.leases[key] = Held(units, until)
        else:
            self.world.release(key)

    def borrow(self, units: int, least: int) -> None:
        """Ask for units without an end, but content with `least` ticks."""
        key = self.asked(units, borrow=least * SECOND)
        fits = [t for t in range(self.now + 1, LAST + 1) if self.model.fits(units, self.now, t)]
        longest = max(fits, default=self.now)
        granted = self.world.lease(key).state == "granted"
        assert granted == (longest == LAST or longest >= self.now + least)
        if granted:
            self.model.leases[key] = Held(units, longest)
            assert (self.world.lease(key).yields_to is None) == (longest == LAST)
        else:
            self.world.release(key)

    def asked(self, units: int, **more: Any) -> str:
        """Ask for units with a new name."""
        self.names += 1
        key = f"lease{self.names}"
        self.world.ask(key, {"p": units}, **more)
        return key

    def book(self, units: int, spans: list[tuple[int, int]], lead: int) -> None:
        """Book units."""
        self.names += 1
        key, made = f"booking{self.names}", apart(spans, self.now)
        if not made:
            return
        wanted = Booked(units, made, lead)
        accepted = self.model.accepts(wanted, self.now)
        try:
            self.world.book(key, {"p": units}, *made, lead=lead * SECOND)
        except Error as refusal:
            assert refusal.code == Code.BOOKED
            assert not accepted, (units, made, lead)
            return
        assert accepted, (units, made, lead)
        self.model.bookings[key] = wanted

    def move(self, n: int, spans: list[tuple[int, int]]) -> None:
        """Move a booking."""
        key, made = self.nth(self.model.bookings, n), apart(spans, self.now)
        if key is None or not made:
            return
        before = self.model.bookings.pop(key)
        moved = Booked(before.units, made, before.lead)
        accepted = self.model.accepts(moved, self.now)
        if any(one.booking == key for one in self.model.leases.values()):
            self.model.bookings[key] = before
            return
        self.model.bookings[key] = moved if accepted else before
        fresh = booking(key, {"p": before.units}, made).windows
        try:
            self.world.alter(key, windows=fresh)
        except Error as refusal:
            assert refusal.code == Code.BOOKED
            assert not accepted
            return
        assert accepted

    def use(self, n: int, units: int) -> None:
        """Ask for units of a booking."""
        key = self.nth(self.model.bookings, n)
        if key is None or units > self.model.bookings[key].units:
            return
        if max(end for _, end in self.model.bookings[key].windows) <= self.now:
            return
        lease = self.asked(units, booking=BookingId(key), hold=NEVER)
        until = self.model.owned(key, units, self.now)
        assert (self.world.lease(lease).state == "granted") == (until is not None)
        if until is None:
            self.world.release(lease)
        else:
            self.model.leases[lease] = Held(units, until, key)

    def extend(self, n: int, hold: int | None) -> None:
        """Change the hold of a lease."""
        key = self.nth(self.model.leases, n)
        if key is None:
            return
        lease = self.model.leases.pop(key)
        until = LAST if hold is None else min(LAST - 1, self.now + hold)
        if until <= self.now or lease.booking:
            self.model.leases[key] = lease
            return
        fits = until <= lease.until or self.model.fits(lease.units, self.now, until)
        try:
            self.world.hold(key, None if until == LAST else (until - self.now) * SECOND)
        except Error as refusal:
            assert refusal.code == Code.BOOKED
            assert not fits
            self.model.leases[key] = lease
            return
        assert fits
        self.model.leases[key] = Held(lease.units, until, lease.booking)

    def release(self, n: int) -> None:
        """Release a lease."""
        key = self.nth(self.model.leases, n)
        if key is not None:
            del self.model.leases[key]
            self.world.release(key)

    def cancel(self, n: int) -> None:
        """Cancel a booking; its leases are as any others then."""
        key = self.nth(self.model.bookings, n)
        if key is not None:
            del self.model.bookings[key]
            self.world.cancel(key)

    @staticmethod
    def nth(of: dict[str, Any], n: int) -> str | None:
        """Return one of some names."""
        return sorted(of)[n % len(of)] if of else None


def apart(spans: list[tuple[int, int]], now: int) -> list[tuple[int, int]]:
    """Return those of some windows that are in the future and apart from each other."""
    found: list[tuple[int, int]] = []
    for start, lasts in sorted(spans):
        end = min(start + lasts, LAST - 1)
        if end > start >= max(now, found[-1][1] if found else 0):
            found.append((start, end))
    return found


def play(played: list[tuple[Any, ...]]) -> int:
    """Play steps on both; return how many leases were granted."""
    both = Both()
    for kind, *values in played:
        both.step("pass_" if kind == "pass" else kind, *values)
    return both.grants


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, min_size=3, max_size=40))
def test_the_rule_agrees_with_the_model(played: list[tuple[Any, ...]]) -> None:
    """Every answer is the one that adding up each tick gives."""
    play(played)


CONTROL = [("book", 4, [(10, 5)], 0), ("ask", 1, 12), ("ask", 1, None), ("ask", 1, 5)]


def test_the_model_sees_a_grant_into_a_booking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: without the look ahead, the model objects."""
    assert play(CONTROL) == 1
    whole = profile.Profile.fits_until
    monkeypatch.setattr(
        profile.Profile,
        "fits_until",
        lambda self, units, booking="": (
            profile.FOREVER if whole(self, units, booking) > self._at else self._at
        ),
    )
    with pytest.raises(AssertionError):
        play(CONTROL)


def test_the_model_sees_a_booking_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: without the comparison with what is spoken for, the model objects."""
    twice = [("book", 3, [(10, 5)], 0), ("book", 3, [(12, 5)], 0)]
    play(twice)
    monkeypatch.setattr(profile.Profile, "conflict", lambda *_, **__: None)
    with pytest.raises(AssertionError):
        play(twice)


def test_the_model_sees_a_missed_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: a ticket of a booking that is not looked at is missed."""
    used = [("book", 3, [(1, 5)], 0), ("pass", 2), ("use", 0, 1)]
    play(used)
    monkeypatch.setattr(booked_pools.BookedPools, "_of_booking", lambda *_: "barred")
    with pytest.raises(AssertionError):
        play(used)
