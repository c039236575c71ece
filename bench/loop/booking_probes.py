"""Requests to every route of bookings, whose time on the event loop is measured."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

P = TypeVar("P")


def bookings(asked: Callable[..., P]) -> Iterator[P]:
    """Return a request to every route of bookings: a daily one of a year, in one pool."""
    pool, one = "/v1/pools/bench/booked", "/v1/bookings/{id}"
    nobody = "/v1/bookings/00000000-0000-4000-8000-000000000000"
    start = datetime.now(UTC) + timedelta(hours=1)  # noqa: TID251 - the server is real
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    series = {"every": "day", "count": 366, "zone": "Europe/Berlin"}
    wanted = {"needs": [{"pool": "bench/booked"}], "key": "daily", "repeat": series, **times}
    yield asked("pool for bookings", "PUT", "/v1/pools/{name+}", pool, {"limit": 3})
    yield asked("booking", "POST", "/v1/bookings", "", wanted)
    yield asked("bookings", "GET", "/v1/bookings", "/v1/bookings?limit=1000")
    yield asked("booking, {id}", "GET", one, nobody)
    yield asked("booking, {id}", "PATCH", one, nobody, {"note": "x"})
    yield asked("booking, {id}", "DELETE", one, nobody)
    yield asked("offers", "GET", "/v1/offers", "/v1/offers?needs=bench/booked%3D3")
