"""Requests for leases over HTTP."""

import itertools
from typing import Any
from uuid import uuid4

from tests.faces.v1.native import Native, Response

_numbers = itertools.count()


def make_pool(native: Native, **wanted: Any) -> str:
    """Create a pool, with one unit by default; return its name."""
    name = f"leases/{next(_numbers)}"
    answer = native.ask("PUT", f"/v1/pools/{name}", {"limit": 1, **wanted})
    assert answer.status == 200, answer
    return name


def ask(
    native: Native, *pools: str, token: str | None = None, query: str = "", **wanted: Any
) -> Response:
    """Ask for a unit of each of some pools, by default with a new key."""
    needs = [{"pool": name} for name in pools]
    body = {"needs": needs, "key": str(uuid4()), **wanted}
    return native.ask("POST", f"/v1/leases{query}", body, token=token)


def lease_action(
    native: Native, lease: str, word: str, token: str | None = None, **body: Any
) -> Response:
    """Send a POST request to an operation of a lease."""
    return native.ask("POST", f"/v1/leases/{lease}/{word}", body, token=token)


def refused(answer: Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer.status, answer.body["code"]


def waiting_ticket(native: Native, pool: str) -> Response:
    """Occupy a pool of one unit and return a ticket that waits for it."""
    assert ask(native, pool).status == 201
    ticket = ask(native, pool)
    assert ticket.status == 202
    return ticket


def comparable(token: str) -> list[int]:
    """Return a fencing token in a form that can be compared."""
    return [int(part) for part in token.split(".")]
