"""Sends 20,000 requests to all Placement routes, half of them wrong; none ends in a 5xx.

`MOORAGE_SEED` repeats a run; a failure prints its seed and the request. `MOORAGE_SOAK` sends 20
times as many.
"""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.support.chance import judged, seeded
from tests.e2e.support.fuzzer import PROVIDERS, Fuzzer
from tests.e2e.support.known import Known, Sent
from tests.e2e.support.peer import Answer, Peer, differences
from tests.e2e.support.server import Server, serve
from tests.support.seeds import SOAK, is_share, portion

REQUESTS = portion(20_000 * (20 if SOAK else 1))
CONNECTIONS = 6


def complaint(sent: Sent, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if it is valid."""
    if answer.status >= 500:
        return "a server error"
    if sent.method == "HEAD" or answer.status < 400:
        return ""
    if not answer.body:
        return "a refusal without a reason"
    if not answer.headers.get("content-type", "").startswith("application/json"):
        return ""
    said = json.loads(answer.body)
    if answer.status == 401:
        return "" if said["message"] else "no message"
    (error,) = said["errors"]
    return "" if error["detail"].strip() and error["status"] == answer.status else "no detail"


async def send_all(url: str, fuzzer: Fuzzer, known: Known, count: int, seen: Counter[str]) -> None:
    """Send requests on one connection, each after the answer to the one before."""
    async with Peer(url) as peer:
        for _ in range(count):
            await judged(peer, fuzzer.next(), complaint, known.learn, seen)


async def read_everything(url: str) -> None:
    """Everything that was written can be read again."""
    async with Peer(url) as peer:
        assert await differences(peer) == []
        for path in (
            "resource_providers",
            "traits",
            "resource_classes",
            "usages?project_id=project",
        ):
            assert (await peer.call("GET", f"/{path}")).status == 200
        for uuid in PROVIDERS:
            there = (await peer.call("GET", f"/resource_providers/{uuid}")).status
            assert there in (200, 404)
            for part in ("inventories", "usages", "allocations", "traits", "aggregates"):
                answer = await peer.call("GET", f"/resource_providers/{uuid}/{part}")
                assert answer.status == there, answer
        answer = await peer.call("GET", "/allocation_candidates?resources=VCPU:1")
        assert answer.status == 200


async def whole(server: Server, seed: int) -> Counter[str]:
    """Fuzz on several connections at the same time."""
    seen: Counter[str] = Counter()
    known = Known()
    count = REQUESTS // CONNECTIONS + 1
    async with asyncio.TaskGroup() as group:
        for n in range(CONNECTIONS):
            fuzzer = Fuzzer((seed, n), known)
            group.create_task(send_all(server.url, fuzzer, known, count, seen))
    await read_everything(server.url)
    return seen


@pytest.mark.played_in_part
def test_fuzz(tmp_path: Path) -> None:
    """No 5xx, no connection without an answer, no traceback, and the server's check is clean."""
    with seeded() as seed:
        with serve(tmp_path / "ledger", "--auth", "noauth2", "--no-access-log") as server:
            seen = asyncio.run(whole(server, seed))
        said = "".join(server.said)
        assert "Traceback" not in said, said[:5_000]
        assert_useful(seen)


def assert_useful(seen: Counter[str]) -> None:
    """A fuzzer that is always refused proves little: every route must have been carried out."""
    assert seen["2xx"] > REQUESTS // 5, seen
    assert seen["4xx"] > REQUESTS // 5, seen
    routes = {f"{method} {path}" for method, path, _ in Fuzzer(0, Known()).routes}
    missed = sorted(route for route in routes if not seen[route])
    assert is_share() or missed == [], seen
