"""Sends 12,000 requests to pools and leases through every API, half of them wrong: no 5xx.

`MOORAGE_SEED` repeats a run; a failure prints its seed and the request. `MOORAGE_SOAK` sends 20
times as many.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.support.chance import judged, seeded
from tests.e2e.support.peer import Peer, differences
from tests.e2e.support.pool_fuzzer import Known, PoolFuzzer, complaint
from tests.faces.boskos.boskos_server import BoskosServer, serve_boskos
from tests.support.seeds import SOAK, is_share, portion

REQUESTS = portion(12_000 * (20 if SOAK else 1))
CONNECTIONS = 6


async def send_all(
    served: BoskosServer, fuzzer: PoolFuzzer, known: Known, seen: Counter[str]
) -> None:
    """Send requests to both doors, each after the answer to the one before."""
    async with Peer(served.server.url) as native, Peer(served.url) as second:
        for _ in range(REQUESTS // CONNECTIONS):
            sent = fuzzer.next()
            door = native if sent.door == "native" else second
            await judged(door, sent, complaint, known.learn, seen)


async def whole(served: BoskosServer, seed: int) -> Counter[str]:
    """Fuzz on several connections at the same time; what is stored must be sound."""
    seen: Counter[str] = Counter()
    known = Known()
    async with asyncio.TaskGroup() as group:
        for n in range(CONNECTIONS):
            group.create_task(send_all(served, PoolFuzzer((seed, n), known), known, seen))
    async with Peer(served.server.url) as peer:
        assert await differences(peer) == []
        for path in ("/v1/pools", "/v1/leases", "/v1/audit", "/metrics"):
            assert (await peer.call("GET", path)).status == 200
    return seen


@pytest.mark.played_in_part
def test_fuzz_of_pools(tmp_path: Path) -> None:
    """No 5xx, no connection without an answer, no traceback, and the server's check is clean."""
    with seeded() as seed:
        with serve_boskos(tmp_path, "safe", None, "--lease-proxy-seconds-max", "0.01") as served:
            seen = asyncio.run(whole(served, seed))
        said = "".join(served.server.said)
        assert "Traceback" not in said, said[:5_000]
        assert_useful(seen)


def assert_useful(seen: Counter[str]) -> None:
    """A fuzzer that is always refused proves little: every call must have been carried out."""
    assert seen["2xx"] > REQUESTS // 5, seen
    assert seen["4xx"] > REQUESTS // 10, seen
    fuzzer = PoolFuzzer(0, Known())
    calls = {f"{method} {path}" for method, path, _ in fuzzer.native}
    calls |= {path for path, _ in fuzzer.second}
    missed = sorted(call for call in calls if not seen[call])
    assert is_share() or missed == [], seen
