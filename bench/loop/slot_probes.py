"""Requests to every route of named slots, whose time on the event loop is measured."""

from collections.abc import Callable, Iterator
from typing import TypeVar

P = TypeVar("P")


def slots(asked: Callable[..., P]) -> Iterator[P]:
    """Return a request to every route of slots: the life of those of one pool."""
    pool, own = "/v1/pools/{name+}", "/v1/pools/bench/slots"
    slot, one = f"{pool}:slots/{{slot}}", f"{own}:slots/s0"
    names = [f"s{number}" for number in range(500)]
    yield asked("pool", "PUT", pool, own, {"native_slots": True, "pacing": None})
    yield asked("slots", "POST", f"{pool}:slots", f"{own}:slots", {"names": names})
    yield asked("slots", "GET", f"{pool}:slots", f"{own}:slots?limit=1000")
    boskos = "pool", "GET", f"{pool}:boskos", f"{own}:boskos?limit=1000"
    yield asked(*boskos)
    resources: dict[str, object] = {"resources": []}
    yield asked("boskos, invalid", "PUT", f"{pool}:boskos", f"{own}:boskos", resources)
    yield asked("slot", "PUT", f"{slot}/labels", f"{one}/labels", {"labels": {"region": "eu"}})
    yield asked("slot", "POST", f"{slot}/drain", f"{one}/drain", {"reason": "held", "keep": True})
    yield asked("slot", "POST", f"{slot}/resume", f"{one}/resume")
    yield asked("slot", "DELETE", slot, one)
