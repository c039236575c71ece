"""Asking for leases over HTTP, for the tests of leases."""

import itertools
from typing import Any
from uuid import uuid4

from tests.faces.v1.native import Native, Told

_numbers = itertools.count()


def make(native: Native, **wanted: Any) -> str:
    """Make a pool, of one unit by default; return its name."""
    name = f"leases/{next(_numbers)}"
    told = native.ask("PUT", f"/v1/pools/{name}", {"limit": 1, **wanted})
    assert told.status == 200, told
    return name


def ask(
    native: Native, *pools: str, token: str | None = None, query: str = "", **wanted: Any
) -> Told:
    """Ask for a unit of each of some pools, by default with a key that was never used."""
    needs = [{"pool": name} for name in pools]
    body = {"needs": needs, "key": str(uuid4()), **wanted}
    return native.ask("POST", f"/v1/leases{query}", body, token=token)


def act(native: Native, lease: str, word: str, token: str | None = None, **body: Any) -> Told:
    """Post to a lease's own address."""
    return native.ask("POST", f"/v1/leases/{lease}/{word}", body, token=token)


def refused(told: Told) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return told.status, told.body["code"]


def waiting(native: Native, pool: str) -> Told:
    """Fill a pool of one unit and return the ticket that waits for it."""
    assert ask(native, pool).status == 201
    ticket = ask(native, pool)
    assert ticket.status == 202
    return ticket


def order(token: str) -> list[int]:
    """Return what a fencing token is compared by."""
    return [int(part) for part in token.split(".")]
