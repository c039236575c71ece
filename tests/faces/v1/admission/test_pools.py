"""Pools over HTTP: names with slashes, settings, and who may change them."""

from dataclasses import asdict
from typing import Any

import pytest
from msgspec import structs

from moorage.core.admission.model import PoolSpec
from moorage.core.admission.requests import LeaseRequest
from moorage.core.admission.slot_config import SPEC as SLOTTED
from moorage.core.clock import SECOND
from moorage.core.ledger.inventory import InventorySpec
from moorage.faces.placement.input.schemas import InventoryItem
from moorage.service.admission.pool_specs import spec_of
from moorage.wire import admission as wire
from moorage.wire.ledger import InventoryWanted
from tests.faces.v1.native import Native, Response


def put(native: Native, name: str, **wanted: Any) -> Response:
    """Create or change a pool."""
    return native.ask("PUT", f"/v1/pools/{name}", wanted)


def refused(answer: Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status, answer.body["code"]


UNSET = ("book_ahead", "book_hours", "booked_until", "fair_share", "cohort", "lending")


def test_defaults_of_a_pool(native: Native) -> None:
    """Settings that are left out have defaults, and all of them are shown."""
    made = put(native, "install/azure-4", limit=50, hold=1200)
    assert made.status == 200
    expected = {
        "name": "install/azure-4",
        "limit": 50,
        "ttl": 60.0,
        "ttl_max": 86400.0,
        "hold": 1200.0,
        "cooldown": 0.0,
        "lock_delay": 0.0,
        "pacing": {"interval": 24.0, "burst": 5, "jitter": 0.0},
        "quota": None,
        "queue_max": 10_000,
        "labels": {},
        "on_retry": "keep",
        "expire": "free",
        "proxy_ttl": 28_800.0,
        "askers": None,
        "priority_max": None,
        "hold_max": None,
        "queue_max_per_owner": None,
        "per_member": None,
        "member_group": None,
        "adaptive": None,
        "adaptive_test": None,
        "native_slots": False,
        "order": "oldest",
        "template": None,
        "generation": 1,
        "paused": False,
        "pause_reason": "",
        "paused_until": None,
        "paused_by": "",
        "overstay": None,
        "units": 50,
        "occupied": 0,
        "resting": 0,
        "waiting": 0,
        "free": 50,
        "over": False,
        "unheard": 0,
        "slots": {},
        "next_grant_at": None,
        "first": None,
        "owner_queue_max": 1_000,
        "shares": [],
        "borrowing": 0,
        "borrowed": 0,
    } | dict.fromkeys(UNSET)
    times = {name: made.body[name] for name in ("created_at", "updated_at")}
    assert made.body == expected | times
    for path in ("install/azure-4", "install%2Fazure-4"):
        assert native.ask("GET", f"/v1/pools/{path}").body == made.body


def test_all_properties(native: Native) -> None:
    """Every setting is returned as it was sent, and setting it again changes nothing."""
    wanted = {
        "limit": 7,
        "ttl": 5.5,
        "ttl_max": 60.0,
        "hold": 30.0,
        "cooldown": 0.25,
        "lock_delay": 2.5,
        "pacing": {"interval": 1.5, "burst": 2, "jitter": 0.5},
        "quota": 3,
        "queue_max": 4,
        "labels": {"site": "a"},
        "on_retry": "requeue",
        "expire": "keep",
        "proxy_ttl": 90.0,
        "fair_share": {"by": "project", "half_life": 60.0, "weights": {"a/*": 2}, "default": 3},
        "cohort": "all",
        "lending": 2,
        "borrowing": 4,
    }
    made = put(native, "all", **wanted)
    assert {name: made.body[name] for name in wanted} == wanted
    assert put(native, "all", **wanted).body == made.body
    unpaced = put(native, "all", **(wanted | {"pacing": None}))
    assert (unpaced.body["pacing"], unpaced.body["generation"]) == (None, 2)


def test_generations_guard_against_others(native: Native) -> None:
    """0: the pool must not exist; another number: it must have this generation."""
    assert put(native, "guarded", limit=1, generation=0).status == 200
    again = put(native, "guarded", limit=2, generation=0)
    assert refused(again) == (409, "pool_exists")
    assert put(native, "guarded", limit=2, generation=1).body["generation"] == 2
    late = put(native, "guarded", limit=3, generation=1)
    assert refused(late) == (409, "pool_generation")
    assert put(native, "guarded", limit=3).body["limit"] == 3


def test_pools_are_listed_in_pages(native: Native) -> None:
    """Every pool is returned once."""
    names = {f"paged/{number}" for number in range(5)}
    for name in names:
        put(native, name, limit=1)
    seen: list[str] = []
    cursor = ""
    while True:
        page = native.ask("GET", f"/v1/pools?limit=2{cursor}").body
        seen += [pool["name"] for pool in page["pools"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == sorted(set(seen))
    assert names <= set(seen)


def test_a_pool_is_paused_resumed_and_deleted(native: Native) -> None:
    """Each operation has an audit row; a deleted pool is not found."""
    put(native, "a/b/c", limit=1)
    assert native.ask("POST", "/v1/pools/a/b/c:pause").body["paused"] is True
    assert native.ask("POST", "/v1/pools/a/b/c:pause").body["paused"] is True
    assert native.ask("POST", "/v1/pools/a/b/c:resume").body["paused"] is False
    assert native.ask("DELETE", "/v1/pools/a/b/c").status == 204
    rows = native.ask("GET", "/v1/audit?limit=4").body["entries"]
    assert [(row["action"], row["target"]) for row in rows] == [
        ("pool.delete", "a/b/c"),
        ("pool.resume", "a/b/c"),
        ("pool.pause", "a/b/c"),
        ("pool.put", "a/b/c"),
    ]
    for method, path in (
        ("GET", "a/b/c"),
        ("DELETE", "a/b/c"),
        ("POST", "a/b/c:pause"),
        ("POST", "a/b/c:resume"),
        ("GET", "a/b/c:report"),
    ):
        answer = native.ask(method, f"/v1/pools/{path}")
        assert refused(answer) == (404, "pool_not_found"), path


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, ["limit"]),
        ({"limit": -1}, ["limit", "0"]),
        ({"limit": 1 << 40}, ["limit", "2147483647"]),
        ({"limit": 1, "ttl": 0.5}, ["ttl", "1"]),
        ({"limit": 1, "ttl": 90, "ttl_max": 60}, ["ttl", "ttl_max"]),
        ({"limit": 1, "hold": 0}, ["hold"]),
        ({"limit": 1, "hold": 1e300}, ["hold", "31622400"]),
        ({"limit": 1, "cooldown": -1}, ["cooldown", "0"]),
        ({"limit": 1, "lock_delay": -1}, ["lock_delay", "0"]),
        ({"limit": 1, "proxy_ttl": 0}, ["proxy_ttl"]),
        ({"limit": 1, "pacing": {"interval": 0}}, ["interval"]),
        ({"limit": 1, "pacing": {"interval": 1, "burst": 0}}, ["burst", "1"]),
        ({"limit": 1, "pacing": {"interval": 1, "speed": 2}}, ["speed"]),
        ({"limit": 1, "pacing": "fast"}, ["fast"]),
        ({"limit": 1, "quota": 0}, ["quota", "1"]),
        ({"limit": 1, "queue_max": 0}, ["queue_max", "1"]),
        ({"limit": 1, "labels": {"a" * 64: ""}}, ["63"]),
        ({"limit": 1, "labels": {str(n): "" for n in range(33)}}, ["32"]),
        ({"limit": 1, "expire": "never"}, ["never"]),
        ({"limit": 1, "on_retry": "often"}, ["often"]),
        ({"limit": 1, "size": 2}, ["size"]),
    ],
)
def test_errors_name_the_bound(native: Native, wanted: dict[str, Any], words: list[str]) -> None:
    """The error names what is out of bounds, and no pool is created."""
    answer = put(native, "bad", **wanted)
    assert answer.status == 400, answer
    assert [word for word in words if word not in answer.body["detail"]] == []
    assert native.ask("GET", "/v1/pools/bad").status == 404


@pytest.mark.parametrize("name", ["A", "a//b", "/a", "a/", "a:b", "a%20b", "..", "a" * 256])
def test_invalid_names_of_pools(native: Native, name: str) -> None:
    """A name is a path of plain words."""
    answer = put(native, name, limit=1)
    assert (answer.status, answer.body["code"]) == (400, "invalid")
    assert "name" in answer.body["detail"]


def test_only_operators_change_pools(native: Native) -> None:
    """Operators may; all other roles may only read, also tokens bound to a project."""
    put(native, "roles", limit=1)
    for role, project in (("reader", None), ("reader", "p"), ("user", "p"), ("service", None)):
        token = native.token(role, project)
        assert native.ask("GET", "/v1/pools/roles", token=token).status == 200
        assert native.ask("GET", "/v1/pools", token=token).status == 200
        assert native.ask("GET", "/v1/pools/roles:report", token=token).status == 200
        for method, path in (("PUT", "roles"), ("DELETE", "roles"), ("POST", "roles:pause")):
            answer = native.ask(method, f"/v1/pools/{path}", {"limit": 2}, token=token)
            assert refused(answer) == (403, "forbidden")
    operator = native.token("operator")
    assert native.ask("PUT", "/v1/pools/roles", {"limit": 2}, token=operator).status == 200


def test_wrong_methods_of_pools(native: Native) -> None:
    """A word after a colon is not part of the name."""
    answer = native.ask("PUT", "/v1/pools/a:pause", {"limit": 1})
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_defaults_are_the_same_everywhere() -> None:
    """Defaults of the native API are those of the core and of the Placement API."""
    wanted, core = wire.PoolWanted(limit=1), spec_of(wire.PoolWanted(limit=1))
    # A pool that was stored by an older release has no `proxy_ttl`, so the core has no default.
    assert core == PoolSpec(limit=1, ttl=core.ttl, ttl_max=core.ttl_max, proxy_ttl=core.proxy_ttl)
    assert wanted.proxy_ttl is not None and core.proxy_ttl == wanted.proxy_ttl * SECOND
    assert (core.ttl, core.ttl_max) == (SLOTTED.ttl, SLOTTED.ttl_max)
    assert core.ttl == wanted.ttl * SECOND
    asked = wire.LeaseWanted(needs=[], key="a")
    assert LeaseRequest("me", "a", ()).patience == asked.patience * SECOND
    offered = asdict(InventoryWanted(total=1))
    assert offered == structs.asdict(InventorySpec(1))
    assert InventoryItem(total=1).spec() == InventorySpec(1)
