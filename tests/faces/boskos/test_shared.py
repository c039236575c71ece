"""Two servers on one PostgreSQL: one line, the same resources, and whoever waits is woken."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.boskos.ground import Ground, ground
from tests.support import cluster

WAIT_SECONDS = 15.0


@pytest.fixture(params=["safe", "strict"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Ground, Ground]]:
    """Two servers with the same configuration."""
    url = cluster.fresh()
    with (
        ground(tmp_path, request.param, None, database=url) as one,
        ground(tmp_path, request.param, None, database=url) as other,
    ):
        yield one, other
        for there in (one, other):
            assert there.native("POST", "/v1/database/check")["differences"] == []


def test_one_line(pair: tuple[Ground, Ground]) -> None:
    """Who waits at one server is before who came later at the other."""
    one, other = pair
    kind, names = one.own()
    for there in (one, other, one):
        assert there.acquire(kind, "him") is not None
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


def test_the_proxy_is_woken(pair: tuple[Ground, Ground]) -> None:
    """A lease that is waited for at one server is granted when the other gives some back."""
    one, other = pair
    kind, names = one.own()
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


def test_nobody_twice(pair: tuple[Ground, Ground]) -> None:
    """However many ask at both at the same time, each resource is given out once."""
    kind, names = pair[0].own()
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
