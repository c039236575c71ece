"""Two servers on one PostgreSQL share lines and resources, and wake each other's waiters."""

import json
import threading
from collections.abc import Iterator

import pytest

from tests.faces.boskos.boskos_server import BoskosServer, serve_boskos
from tests.support import cluster

WAIT_SECONDS = 15.0


@pytest.fixture(scope="module", params=["safe", "strict"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BoskosServer, BoskosServer]]:
    """Yield two servers with the same configuration; each test has its own type."""
    url, folder = cluster.fresh(), tmp_path_factory.mktemp("pair")
    with (
        serve_boskos(folder, request.param, None, database=url) as one,
        serve_boskos(folder, request.param, None, database=url) as other,
    ):
        yield one, other
        for boskos in (one, other):
            assert boskos.native("POST", "/v1/database/check")["differences"] == []


def test_servers_share_a_line(pair: tuple[BoskosServer, BoskosServer]) -> None:
    """A ticket at one server is before a later one at the other."""
    one, other = pair
    kind, names = one.new_type()
    for boskos in (one, other, one):
        assert boskos.acquire(kind, "him") is not None
    assert one.acquire(kind, request_id="id-1") is None
    assert other.acquire(kind, request_id="id-2") is None
    other.release(names[0], "him")
    assert other.acquire(kind, request_id="id-2") is None
    assert other.acquire(kind) is None
    assert other.acquire(kind, request_id="id-1") == names[0]
    one.release(names[1], "him")
    assert one.acquire(kind, request_id="id-2") == names[1]
    metric = json.loads(one.call("GET", f"/metric?type={kind}", None).body)
    assert metric["owner"] == {"him": 1, "me": 2}


def test_a_release_wakes_waiters_of_the_other_server(
    pair: tuple[BoskosServer, BoskosServer],
) -> None:
    """A release at one server grants a lease that a client waits for at the other."""
    one, other = pair
    kind, names = one.new_type()
    held = json.loads(other.call("POST", f"/lease/acquire?type={kind}&count=3").body)["names"]
    found: list[int] = []
    waiter = threading.Thread(
        target=lambda: found.append(one.call("POST", f"/lease/acquire?type={kind}&count=2").status)
    )
    waiter.start()
    while one.native("GET", f"/v1/pools/{kind}")["waiting"] == 0:
        waiter.join(0.02)
    other.call("POST", "/lease/release", json.dumps({"names": held}).encode())
    waiter.join(WAIT_SECONDS)
    assert found == [200]
    assert sorted(held) == names


def test_concurrent_requests_get_different_resources(
    pair: tuple[BoskosServer, BoskosServer],
) -> None:
    """Concurrent requests at both servers never get the same resource."""
    kind, names = pair[0].new_type()
    found: list[str | None] = []
    threads = [
        threading.Thread(
            target=lambda n: found.append(pair[n % 2].acquire(kind, f"o{n}", request_id=f"id-{n}")),
            args=(n,),
        )
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert len(found) == 16
    assert sorted(name for name in found if name is not None) == names
