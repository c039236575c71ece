"""A server through which very many leases go needs no more memory than before."""

import asyncio
import os

import pytest

from tests.e2e.support.leasing import NOAUTH, POOL, pool_made
from tests.e2e.support.peer import Peer
from tests.e2e.support.server import serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

CLIENTS = 32
WARM = 6_000
LEASES = 30_000
GROWTH_MAX = 4 << 20
"""Bytes: 170 for each lease; to remember its id alone in a set takes that."""


async def through(url: str, first: int, last: int) -> None:
    """Acquire and release leases; every second one waits for its unit."""
    numbers = iter(range(first, last))

    async def client() -> None:
        async with Peer(url) as peer:
            for n in numbers:
                body = {"needs": [{"pool": POOL, "units": 1}], "key": str(n)}
                answer = await peer.call("POST", "/v1/leases?wait=30", body)
                assert answer.status == 201, answer
                lease = answer.json()
                path = f"/v1/leases/{lease['id']}?token={lease['token']}"
                assert (await peer.call("DELETE", path)).status == 200

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())


@pytest.mark.skipif(not os.environ.get("MOORAGE_SOAK"), reason="takes minutes")
def test_leases_leave_no_memory_behind(capsys: pytest.CaptureFixture[str]) -> None:
    """Granted at once or after a wait and given back: what is kept of them is in the database."""
    with serve(cluster.fresh(), *NOAUTH, "--no-access-log") as server:
        asyncio.run(pool_made(server.url, limit=CLIENTS // 2))
        asyncio.run(through(server.url, 0, WARM))
        before = server.resident()
        asyncio.run(through(server.url, WARM, LEASES))
        after = server.resident()
    with capsys.disabled():
        sizes = f"{before >> 20} MiB after {WARM}, {after >> 20} MiB after {LEASES}"
        print(f"memory: {sizes} leases")  # noqa: T201 a measurement
    assert after - before < GROWTH_MAX, (before, after)
