"""Pools of the tests, and what happens in their lines."""

from uuid import uuid4

from moorage.client import Client
from moorage.wire.admission import Lease
from tests.client.leasing.pools import leases, pool_made

TTL = 4.0


def pool_of(client: Client, limit: int = 1, ttl: float = TTL) -> str:
    """Create a pool for one test."""
    return pool_made(client, f"pool-{uuid4().hex}", limit=limit, ttl=ttl)


def in_line(client: Client, pool: str, number: int) -> list[Lease]:
    """Wait until this many tickets wait for a pool; return them."""
    for _ in client.ledger.watch("1.0", ["lease"]):
        found = leases(client, pool, "waiting")
        if len(found) == number:
            return found
    raise AssertionError("the watch ended")


def ended(client: Client, lease: str) -> Lease:
    """Wait for the end of a lease; return it."""
    for _ in client.ledger.watch("1.0", ["lease"]):
        found = client.admission.lease(lease)
        if found.state == "ended":
            return found
    raise AssertionError("the watch ended")
