"""Requests to every page of the dashboard and to all its data."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import urlencode

from bench.loop.reshape_probes import UNDOING
from bench.wire import Session
from moorage.faces.dashboard.routes import ENTRIES

P = TypeVar("P")

CLAIM = "/ui/fit/claim"
"""The page that shows what a question claims; without a question there is none."""

BOOKING = "/ui/bookings/new"
"""The page that shows what a new booking would be; it needs a time in the future."""


def paths() -> set[tuple[str, str]]:
    """Return the methods and paths of everything that the dashboard shows."""
    return {(one.method, one.path) for one in ENTRIES if one.method == "GET"}


def pages(probe: Callable[..., P], session: Session, pool: str, machine: str) -> Iterator[P]:
    """Return a request for every page; ids of what is no machine lead nowhere."""
    for _, path in sorted(paths()):
        one = UNDOING if "/reshapes/" in path else machine
        address = path.replace("{name+}", pool).replace("{id}", one)
        address = address.replace("{operation}", "create_lease")
        if path == CLAIM:
            address = f"{CLAIM}?resources=VCPU:1"
        if path == BOOKING:
            start = datetime.now(UTC) + timedelta(hours=1)  # noqa: TID251 - the server is real
            times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
            address = f"{BOOKING}?{urlencode({'pool': pool, **times})}"
        yield probe(f"page {path}", "GET", path, session.get(address))
