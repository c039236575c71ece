"""Sends texts of all kinds in every place, on both databases; none ends in a 500.

A text that the database cannot store must be refused earlier: one such statement would fail the
whole batch, with the requests of others.

`MOORAGE_SEED` repeats a run; a failure prints its seed and the request. `MOORAGE_SOAK` sends all.
"""

import asyncio
import os
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.support.agent_asks import AGENT_ASKS
from tests.e2e.support.asks import ASKS, MAKING
from tests.e2e.support.chance import seeded
from tests.e2e.support.hostile import written
from tests.e2e.support.peer import Answer, NoAnswer, Peer, differences, head
from tests.e2e.support.texts import PROVIDER, Ask, Now, Variant, variants
from tests.faces.boskos.boskos_server import BoskosServer, serve_boskos
from tests.support import cluster

pytestmark = pytest.mark.thorough

EVERY = (*ASKS, *AGENT_ASKS)

SHARE = 1 if os.environ.get("MOORAGE_SOAK") else 4
"""One request out of this many is sent; the seed selects it."""

CONNECTIONS = 4
_counts = count(1)

AGAIN = 100
"""After this many requests, the objects that others need are created again."""


@pytest.fixture(params=["sqlite", "postgresql"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BoskosServer]:
    """Return a server with both doors."""
    url = cluster.fresh() if request.param == "postgresql" else None
    with serve_boskos(
        tmp_path, "safe", None, "--lease-proxy-seconds-max", "0.01", database=url
    ) as made:
        yield made
    if url is not None:
        cluster.shared().drop(cluster.database_of(url))


class Sender:
    """Sends requests of both doors, one after the other."""

    def __init__(self, native: Peer, second: Peer) -> None:
        self._doors = {"native": native, "second": second}
        self._native = native
        self._lease = ""

    async def send(self, variant: Variant) -> Answer:
        """Send one and judge its answer."""
        generation = 0
        if variant.ask.ordered:
            shown = await self._native.call("GET", f"/resource_providers/{PROVIDER}")
            generation = shown.json()["generation"]
        sent = variant.bytes(Now(generation, str(uuid4()), self._lease, next(_counts)))
        try:
            answer = await self._doors[variant.ask.door].send(sent)
        except (NoAnswer, TimeoutError) as error:
            error.add_note(f"sent: {sent[:5_000]!r}")
            raise
        # The lease proxy answers every failure with 500; its body names the reason.
        told = variant.ask.path.startswith("/lease/") and answer.body.startswith(b"Failed to ")
        assert answer.status < 500 or told, f"{answer} to {sent[:5_000]!r}"
        if variant.ask.path == "/v1/leases" and answer.status == 201:
            self._lease = answer.json()["id"]
        return answer

    async def sure(self, ask: Ask) -> None:
        """An unchanged request succeeds, so its places are really checked."""
        answer = await self.send(next(variants(ask)))
        assert not ask.sure or answer.status < 300, f"{answer} to {ask}"


async def send_all(served: BoskosServer, asks: list[Ask], first: int) -> int:
    """Send the variants of some requests that are to be sent; return how many there were."""
    sent = 0
    async with Peer(served.server.url) as native, Peer(served.url) as second:
        sender = Sender(native, second)
        for ask in asks:
            for variant in islice(variants(ask), first, None, SHARE):
                if sent % AGAIN == 0:
                    for one in MAKING:
                        await sender.send(next(variants(one)))
                await sender.send(variant)
                sent += 1
    return sent


async def whole(served: BoskosServer, seed: int) -> int:
    """Send everything; what is stored must be sound, and can be read."""
    async with Peer(served.server.url) as native, Peer(served.url) as second:
        sender = Sender(native, second)
        body = {"name": "one", "uuid": PROVIDER}
        assert (await native.call("POST", "/resource_providers", body)).status == 200
        for ask in EVERY:
            await sender.sure(ask)
    # Those that name a generation follow one another; else most of them would be too late.
    lots = [[ask for ask in EVERY if ask.ordered]]
    rest = [ask for ask in EVERY if not ask.ordered]
    lots += [rest[n :: CONNECTIONS - 1] for n in range(CONNECTIONS - 1)]
    counts = await asyncio.gather(*(send_all(served, lot, seed % SHARE) for lot in lots))
    async with Peer(served.server.url) as peer:
        assert await differences(peer) == []
        for path in ("resource_providers", "traits", "resource_classes", "v1/pools", "v1/leases"):
            assert (await peer.call("GET", f"/{path}")).status == 200
        for path in (
            "v1/audit",
            "v1/tokens",
            "v1/watch?after=1.0&limit=1000",
            "metrics",
            "v1/agents",
            "v1/groups",
        ):
            assert (await peer.call("GET", f"/{path}")).status == 200
    return sum(counts)


def test_any_text_anywhere(served: BoskosServer) -> None:
    """Slashes, escapes, NUL, lone surrogates, long names: all are answered, others succeed."""
    try:
        with seeded() as seed:
            sent = asyncio.run(whole(served, seed))
    except BaseException as error:
        error.add_note("".join(served.server.said[-80:]))
        raise
    said = "".join(served.server.said)
    assert "Traceback" not in said, said[:5_000]
    assert "was not committed" not in said, said[:5_000]
    assert sent > 15_000 // SHARE


async def known(served: BoskosServer) -> None:
    """Send texts that once did harm, each next to a valid one: the reason is the right one."""
    wish = {"needs": [{"pool": "p"}], "key": "k"}
    held = {"consumer": str(uuid4()), "project_id": "p", "user_id": "u"}
    async with Peer(served.server.url) as native, Peer(served.url) as second:
        assert (await native.call("PUT", "/v1/pools/p", {"limit": 5})).status == 200
        for method, path, good in (
            ("GET", "/allocations/", 200),
            ("GET", "/v1/pools/", 404),
            ("DELETE", "/v1/tokens/", 404),
            ("DELETE", "/traits/CUSTOM_", 404),
            ("DELETE", "/resource_classes/CUSTOM_", 404),
        ):
            assert (await native.call(method, f"{path}a")).status == good
            answer = await native.call(method, f"{path}a%00")
            assert (answer.status, b"contains NUL" in answer.body) == (400, True)
        for name, status in (("VCPU", 202), ("a\\", 400), ("$.VCPU", 400)):
            wanted = {**held, "allocations": {PROVIDER: {name: 1}}}
            asked = {**wish, "key": name, "allocations": wanted}
            assert (await native.call("POST", "/v1/leases", asked)).status == status
        assert (await native.call("POST", "/v1/leases", wish)).status == 201, "grants go on"
        for owner, status in (("o" * 2_000, 201), ("o" * 3_000, 400)):
            headers = [("X-Auth-Token", owner), ("X-Roles", "admin"), ("X-Project-Id", "p")]
            headers.append(("Content-Type", "application/json"))
            sent = head("POST", "/v1/leases", headers, written(wish))
            assert (await native.send(sent)).status == status
        taken = head("POST", "/acquire?type=t5&state=free&dest=%ff&owner=me", [], b"")
        assert (await second.send(taken)).status == 200
        assert (await native.call("GET", "/metrics")).status == 200


def test_texts_that_did_harm(served: BoskosServer) -> None:
    """Each is refused or kept; nothing else stops for it."""
    asyncio.run(known(served))
    assert "Traceback" not in "".join(served.server.said)
