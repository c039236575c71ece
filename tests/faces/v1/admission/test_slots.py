"""Named slots over HTTP: made, listed page by page, labelled, drained, asked for by label."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.faces.path_table import Table
from moorage.wire.operations import operations_by_id
from moorage.wire.operations.operation import Access, Content, Operation
from tests.faces.v1.native import Native

POOL = "/v1/pools/clusters/aws"


@pytest.fixture(autouse=True)
def emptied(native: Native) -> Iterator[None]:
    """Remove the pool after each test, with its leases and slots: all tests share a server."""
    yield
    for lease in native.ask("GET", "/v1/leases?pool=clusters/aws&limit=1000").body["leases"]:
        native.ask("DELETE", f"/v1/leases/{lease['id']}")
    assert native.ask("DELETE", POOL).status in (204, 404)


def pool_with(native: Native, **slots: str) -> None:
    """Create a pool with native slots, each with a region."""
    assert native.ask("PUT", POOL, {"native_slots": True}).status == 200
    for name, region in slots.items():
        wanted = {"names": [name], "labels": {"region": region}}
        assert native.ask("POST", f"{POOL}:slots", wanted).status == 204


def ask(native: Native, key: str, **labels: str) -> Any:
    """Ask for a slot with these labels; return the lease."""
    needs = [{"pool": "clusters/aws", "labels": labels}]
    wanted = {"needs": needs, "key": key, "labels": {"job": key}, "reopen": True}
    return native.ask("POST", "/v1/leases", wanted)


def slots(native: Native) -> dict[str, Any]:
    """Return the slots by name."""
    answer = native.ask("GET", f"{POOL}:slots")
    assert answer.status == 200
    return {slot["name"]: slot for slot in answer.body["slots"]}


def test_a_slot_is_granted_by_label(native: Native) -> None:
    """A request gets a slot with its labels, and shows them; the list shows the holder."""
    pool_with(native, a="us", b="eu")
    lease = ask(native, "k", region="eu").body
    assert lease["slots"] == {"clusters/aws": ["b"]}
    assert lease["needs"] == [{"pool": "clusters/aws", "units": 1, "labels": {"region": "eu"}}]
    found = slots(native)
    assert found["a"]["state"] == "free" and found["a"]["owner"] is None
    held = found["b"]
    assert (held["state"], held["lease"], held["key"]) == ("held", lease["id"], "k")
    assert held["lease_labels"] == {"job": "k"}
    assert held["since"] == lease["granted_at"]
    reason = ask(native, "other", region="eu").body["waiting"]["reason"]
    assert reason == (
        "first in line; limit: 1 of 1 slot of clusters/aws with region=eu is held by job k (admin)"
    )


def test_a_waiting_ticket_says_what_holds_the_label(native: Native) -> None:
    """A ticket that waits for a label has a reason that names it, and is granted when it may."""
    pool_with(native, a="us", b="eu")
    first = ask(native, "k", region="eu").body
    second = ask(native, "l", region="eu").body
    assert "1 of 1 slot of clusters/aws with region=eu is held" in second["waiting"]["reason"]
    native.ask("DELETE", f"/v1/leases/{first['id']}")
    again = native.ask("GET", f"/v1/leases/{second['id']}").body
    assert again["slots"] == {"clusters/aws": ["b"]}


def test_the_list_has_pages(native: Native) -> None:
    """The list is paged by name."""
    pool_with(native, c="us", a="us", b="us")
    first = native.ask("GET", f"{POOL}:slots?limit=2").body
    assert [slot["name"] for slot in first["slots"]] == ["a", "b"]
    rest = native.ask("GET", f"{POOL}:slots?limit=2&cursor={first['next']}").body
    assert [slot["name"] for slot in rest["slots"]] == ["c"]
    assert rest["next"] is None


def test_a_held_slot_is_drained_and_goes(native: Native) -> None:
    """A drained slot is shown as such, survives its lease with `keep` only, and is not granted."""
    pool_with(native, a="us", b="us")
    lease = ask(native, "k").body
    (name,) = lease["slots"]["clusters/aws"]
    drained = native.ask("POST", f"{POOL}:slots/{name}/drain", {"reason": "disk"}).body["slot"]
    assert (drained["state"], drained["drain"]["reason"]) == ("draining", "disk")
    refused = native.ask("DELETE", f"{POOL}:slots/{name}")
    assert (refused.status, refused.body["code"]) == (409, "slot_in_use")
    native.ask("DELETE", f"/v1/leases/{lease['id']}")
    assert name not in slots(native)
    other = next(iter(slots(native)))
    kept = native.ask("POST", f"{POOL}:slots/{other}/drain", {"keep": True}).body["slot"]
    assert kept["state"] == "drained"
    shown = native.ask("GET", POOL).body
    assert (shown["units"], shown["free"]) == (0, 0)
    assert native.ask("POST", f"{POOL}:slots/{other}/resume").body["state"] == "free"
    assert native.ask("DELETE", f"{POOL}:slots/{other}").status == 204
    assert slots(native) == {}


def test_changes_of_slots_leave_audit_rows(native: Native) -> None:
    """Each change of slots is recorded, with the slots and what an operator changed of them."""
    pool_with(native, a="us")
    labels = {"region": "eu"}
    native.ask("PUT", f"{POOL}:slots/a/labels", {"labels": labels})
    native.ask("POST", f"{POOL}:slots/a/drain", {"keep": True, "reason": "disk"})
    native.ask("POST", f"{POOL}:slots/a/resume")
    native.ask("DELETE", f"{POOL}:slots/a")
    rows = native.ask("GET", "/v1/audit?limit=5").body["entries"]
    assert [row["action"].removeprefix("slot.") for row in rows] == [
        *("remove", "resume", "drain", "label", "add")
    ]
    assert [row["target"] for row in rows] == ["clusters/aws/a"] * 4 + ["clusters/aws"]
    free = {"labels": labels, "owner": "", "drain": None, "reason": ""}
    drained = {**free, "drain": "stays", "reason": "disk"}
    assert [(row["before"], row["after"]) for row in rows] == [
        (free, None),
        (drained, free),
        (free, drained),
        ({**free, "labels": {"region": "us"}}, free),
        (None, {"slots": ["a"], "labels": {"region": "us"}}),
    ]


SUFFIXES = ("", "/slots", "/slots/a", "/a/drain")


def test_a_pool_may_be_called_slots(native: Native) -> None:
    """No name of a pool hides the slots of another one, or is hidden by them."""
    names = ["clusters" + suffix for suffix in SUFFIXES]
    for number, name in enumerate(names):
        assert native.ask("PUT", f"/v1/pools/{name}", {"native_slots": True}).status == 200
        made = native.ask("POST", f"/v1/pools/{name}:slots", {"names": [f"s{number}"]})
        assert made.status == 204
    for number, name in enumerate(names):
        assert native.ask("GET", f"/v1/pools/{name}").body["name"] == name
        (slot,) = native.ask("GET", f"/v1/pools/{name}:slots").body["slots"]
        assert slot["name"] == f"s{number}"
        drained = native.ask("POST", f"/v1/pools/{name}:slots/{slot['name']}/drain", {})
        assert drained.body == {"slot": None}
        assert native.ask("DELETE", f"/v1/pools/{name}").status == 204


def test_slots_below_a_pool_would_hide_other_pools() -> None:
    """The control: with `/v1/pools/NAME/slots`, a pool of that name could not be reached."""
    pools = list(operations_by_id(("pools",)).values())
    below = [
        Operation(
            Access(f"{one.method} {one.path.replace('}:slots', '}/slots')}", None), Content(), ""
        )
        for one in pools
    ]
    for operations, pool in ((pools, "clusters/slots"), (below, "clusters")):
        found = Table(operations).match("/v1/pools/clusters/slots")
        assert found is not None and found.variables["name"] == pool


def test_labels_are_replaced(native: Native) -> None:
    """The labels of a slot are replaced as a whole, and tickets follow them."""
    pool_with(native, a="us")
    refused = ask(native, "k", region="eu")
    assert (refused.status, refused.body["code"]) == (422, "units_above_limit")
    found = native.ask("PUT", f"{POOL}:slots/a/labels", {"labels": {"region": "eu"}}).body
    assert found["labels"] == {"region": "eu"}
    assert ask(native, "k", region="eu").body["state"] == "granted"


def test_slots_are_for_operators(native: Native) -> None:
    """A pool with a limit has no slots; a pool that does not exist has none either."""
    native.ask("PUT", "/v1/pools/plain", {"limit": 1})
    assert native.ask("GET", "/v1/pools/plain:slots").status == 400
    assert native.ask("GET", "/v1/pools/none:slots").status == 404
    made = native.ask("POST", "/v1/pools/plain:slots", {"names": ["a"]})
    assert (made.status, made.body["code"]) == (400, "invalid")
    assert native.ask("DELETE", "/v1/pools/plain").status == 204
