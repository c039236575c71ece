"""What a governor's token may do: everything with its own leases in its pools, nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused
from tests.faces.v1.native import Native, Response

FORBIDDEN, MISMATCH = (403, "forbidden"), (403, "holder_mismatch")


def governor(native: Native, *pools: str, name: str = "gate") -> str:
    """Return the token of a governor of these pools."""
    wanted = {"name": name, "role": "governor", "scope": {"pool": list(pools)}}
    made = native.ask("POST", "/v1/tokens", wanted)
    assert made.status == 201, made
    secret: str = made.body["token"]
    return secret


def write(native: Native, lease: str, token: str | None, version: int = 0, **more: Any) -> Response:
    """Write a record."""
    body = {"version": version, "record": {"step": version}} | more
    return native.ask("PUT", f"/v1/leases/{lease}/record", body, token=token)


ACTS: dict[str, Callable[[Native, str, str], Response]] = {
    "read": lambda native, lease, token: native.ask("GET", f"/v1/leases/{lease}", token=token),
    "record": write,
    "renew": lambda native, lease, token: lease_action(native, lease, "renew", token),
    "outcome": lambda native, lease, token: lease_action(
        native, lease, "outcome", token, result="ok"
    ),
    "retry": lambda native, lease, token: lease_action(native, lease, "retry", token, key="again"),
    "release": lambda native, lease, token: native.ask(
        "DELETE", f"/v1/leases/{lease}", token=token
    ),
    "hold": lambda native, lease, token: native.ask(
        "PATCH", f"/v1/leases/{lease}", {"hold": 5}, token=token
    ),
    "revoke": lambda native, lease, token: lease_action(native, lease, "revoke", token),
}
NEVER = {"hold", "revoke"}
"""What governors may not even do with their own leases."""


@pytest.mark.parametrize("act", ACTS)
def test_own_leases_in_scope(native: Native, pool: str, act: str) -> None:
    """A second governor continues what the first has begun, and no audit row is left."""
    first, second = governor(native, pool), governor(native, pool, name="other")
    lease = ask(native, pool, token=first).body
    assert (lease["owner"], lease["state"]) == ("governor:hosts", "granted")
    before = native.ask("GET", "/v1/audit?limit=1").body
    done = ACTS[act](native, lease["id"], second)
    if act in NEVER:
        assert refused(done) == FORBIDDEN
    else:
        assert done.status in (200, 201), done
        assert done.body["token"] is not None
    assert native.ask("GET", "/v1/audit?limit=1").body == before


@pytest.mark.parametrize("act", ACTS)
def test_own_leases_out_of_scope(native: Native, pool: str, act: str) -> None:
    """A lease of which one pool is out of scope is only seen, without token and record."""
    other = make_pool(native)
    both, one = governor(native, pool, other), governor(native, pool)
    lease = ask(native, pool, other, token=both).body
    assert write(native, lease["id"], both).status == 200
    done = ACTS[act](native, lease["id"], one)
    if act == "read":
        assert (done.status, done.body["token"], done.body["record"]) == (200, None, None)
    else:
        assert refused(done) == FORBIDDEN
    alone = ask(native, make_pool(native), token=governor(native, other)).body
    assert alone["code"] == "forbidden"
    hidden = governor(native, make_pool(native))
    assert refused(ACTS[act](native, lease["id"], hidden)) == FORBIDDEN


@pytest.mark.parametrize("act", ACTS)
def test_leases_of_others(native: Native, pool: str, act: str) -> None:
    """They are seen, without token and record, and not changed."""
    lease = ask(native, pool, token=native.token("user", "p1")).body
    done = ACTS[act](native, lease["id"], governor(native, pool))
    if act == "read":
        assert (done.status, done.body["token"], done.body["record"]) == (200, None, None)
        assert done.body["owner"] == "p1/user"
    else:
        assert refused(done) == (FORBIDDEN if act in NEVER else MISMATCH)


def test_what_it_asks_for(native: Native, pool: str) -> None:
    """Units of its pools, also by force, which is audited; no allocations."""
    token = governor(native, pool)
    assert refused(ask(native, pool, make_pool(native), token=token)) == FORBIDDEN
    held = {"consumer": "c", "allocations": {}, "project_id": "p", "user_id": "u"}
    assert refused(ask(native, pool, token=token, allocations=held)) == FORBIDDEN
    assert ask(native, pool, token=token).status == 201
    assert ask(native, pool, token=token).status == 202
    forced = ask(native, pool, token=token, force=True)
    assert (forced.status, forced.body["forced"]) == (201, True)
    (row,) = native.ask("GET", "/v1/audit?limit=1").body["entries"]
    assert (row["action"], row["who"], row["role"]) == ("lease.force", "gate", "governor")
    again = lease_action(native, forced.body["id"], "retry", token, key="forced again")
    assert again.status == 201


def test_what_it_sees(native: Native, pool: str) -> None:
    """Pools and lists within its scope, records of governors, and no other route."""
    token, other = governor(native, pool), make_pool(native)
    assert native.ask("GET", f"/v1/pools/{pool}", token=token).status == 200
    assert refused(native.ask("GET", f"/v1/pools/{other}", token=token)) == FORBIDDEN
    seen = native.ask("GET", "/v1/pools", token=token).body["pools"]
    assert [one["name"] for one in seen] == [pool]
    assert refused(native.ask("GET", f"/v1/leases?pool={other}", token=token)) == FORBIDDEN
    lease = ask(native, pool, token=token, key="host-1/deploy").body
    write(native, lease["id"], token)
    ask(native, pool, token=native.token("user", "p1"), key="host-1/deploy")
    for path in ("/v1/leases", "/v1/leases?owner=governor:hosts"):
        found = native.ask("GET", path, token=token).body["leases"]
        assert {one["owner"] for one in found} == {"governor:hosts"}
        assert {need["pool"] for one in found for need in one["needs"]} == {pool}
    page = f"/v1/leases?pool={pool}"
    listed = native.ask("GET", page, token=token).body["leases"]
    assert [one["record"] for one in listed] == [{"step": 0}, None]
    (mine,) = native.ask("GET", f"{page}&key_prefix=host-1/", token=token).body["leases"]
    assert (mine["id"], mine["record_version"]) == (lease["id"], 1)
    assert native.ask("GET", f"{page}&key_prefix=host-2/", token=token).body["leases"] == []


def test_lists_by_prefix_without_a_pool(native: Native, pool: str) -> None:
    """A governor finds the leases of governors in all its pools, and none outside of its scope."""
    other = make_pool(native)
    here, there = governor(native, pool), governor(native, other, name="other")
    both = governor(native, pool, other, name="both")
    mine = ask(native, pool, token=here, key="list-1/deploy").body["id"]
    theirs = ask(native, other, token=there, key="list-2/deploy").body["id"]
    ask(native, other, token=native.token("user", "p1"), key="list-3/deploy")

    def seen(token: str, more: str = "") -> list[str]:
        listed = native.ask("GET", f"/v1/leases?key_prefix=list-{more}", token=token)
        return [one["id"] for one in listed.body["leases"]]

    assert (seen(here), seen(there), seen(both)) == ([mine], [theirs], [mine, theirs])
    assert seen(here, "2/") == []
    assert seen(here, "&owner=project:p1") == []
    reader = native.token("reader")
    assert refused(native.ask("GET", "/v1/leases?key_prefix=list-", token=reader))[0] == 400


def test_who_sees_a_record(native: Native, pool: str) -> None:
    """The owner, governors in scope and operators; it is in no list and no change of others."""
    token = governor(native, pool)
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    lease = ask(native, pool, token=token).body["id"]
    assert write(native, lease, token, record={"secret word": 1}).status == 200
    for reader, record in (
        (token, {"secret word": 1}),
        (None, {"secret word": 1}),
        (native.token("operator"), {"secret word": 1}),
        (native.token("reader"), None),
        (native.token("service"), None),
        (native.token("user", "p1"), None),
    ):
        answer = native.ask("GET", f"/v1/leases/{lease}", token=reader).body
        assert (answer["record"], answer["record_version"]) == (record, 1)
    seen = native.ask("GET", f"/v1/watch?after={after}").body
    assert "secret word" not in str(seen)
    assert "secret word" not in str(native.ask("GET", "/v1/audit").body)


def test_nobody_else_is_a_governor(native: Native) -> None:
    """The owner of governors' leases is no name for a token or a project."""
    for wanted in (
        {"name": "governor:hosts", "role": "service"},
        {"name": "x", "role": "user", "project_id": "governor:hosts"},
        {"name": "x", "role": "governor"},
        {"name": "x", "role": "governor", "scope": {"agent": ["a"]}},
    ):
        assert refused(native.ask("POST", "/v1/tokens", wanted)) == (400, "invalid")


def test_a_pool_names_governors_as_askers(native: Native) -> None:
    """They are bound by a pool's bounds, as other users are."""
    closed = make_pool(native, askers=["p1/*"])
    assert refused(ask(native, closed, token=governor(native, closed)))[1] == "asker_refused"
    open_to_them = make_pool(native, askers=["governor:hosts"])
    assert ask(native, open_to_them, token=governor(native, open_to_them)).status == 201


def test_records_and_versions_over_http(native: Native, pool: str) -> None:
    """A write and a release name the version that they have read."""
    lease = ask(native, pool).body
    assert (lease["record"], lease["record_version"]) == (None, 0)
    assert lease["record_age"] >= 0
    first = write(native, lease["id"], None).body
    assert (first["record"], first["record_version"]) == ({"step": 0}, 1)
    assert write(native, lease["id"], None).body["record_version"] == 1
    other = write(native, lease["id"], None, record={"step": 7})
    assert refused(other) == (409, "record_changed")
    stale = native.ask("DELETE", f"/v1/leases/{lease['id']}?record_version=0")
    assert refused(stale) == (409, "record_changed")
    retried = lease_action(native, lease["id"], "retry", key="k2", record_version=0)
    assert refused(retried) == (409, "record_changed")
    long = write(native, lease["id"], None, 1, record={"x": "y" * 4_096})
    assert refused(long) == (400, "invalid")
    assert write(native, lease["id"], None, 1, record=[1]).status == 400
    assert native.ask("DELETE", f"/v1/leases/{lease['id']}?record_version=1").status == 200
    assert native.ask("DELETE", f"/v1/leases/{lease['id']}?record_version=0").status == 200
    assert refused(write(native, lease["id"], None, 1)) == (409, "lease_ended")


def test_keys_that_are_used_again_over_http(native: Native, pool: str) -> None:
    """The first is listed under its key and its id; a prefix finds both."""
    token = governor(native, pool)
    wanted: dict[str, Any] = {"token": token, "key": "h/deploy", "reopen": True}
    first = ask(native, pool, **wanted)
    assert (first.status, ask(native, pool, **wanted).body["id"]) == (201, first.body["id"])
    native.ask("DELETE", f"/v1/leases/{first.body['id']}", token=token)
    second = ask(native, pool, **wanted)
    assert (second.status, second.body["key"]) == (201, "h/deploy")
    page = f"/v1/leases?pool={pool}&key_prefix=h/&state="
    ended = native.ask("GET", f"{page}ended", token=token).body["leases"]
    assert [one["key"] for one in ended] == [f"h/deploy/{first.body['id']}"]
    live = native.ask("GET", f"{page}granted", token=token).body["leases"]
    assert [one["id"] for one in live] == [second.body["id"]]


def test_a_requeue_over_http(native: Native, pool: str) -> None:
    """The unit is given back, and the ticket waits under the same key until it is asked for."""
    token = governor(native, pool)
    first = ask(native, pool, token=token, key="r/deploy", pull=True).body
    assert first["state"] == "granted"
    back = lease_action(native, first["id"], "retry", token, key="r/deploy", requeue=True)
    assert (back.status, back.body["state"], back.body["key"]) == (202, "waiting", "r/deploy")
    seen = native.ask("GET", f"/v1/pools/{pool}").body
    assert (seen["occupied"], seen["waiting"]) == (0, 1)
    assert seen["first"]["waiting"]["code"] == "poll"
    ticket = f"/v1/leases/{back.body['id']}"
    assert native.ask("GET", ticket).body["state"] == "waiting", "an operator only looks"
    assert native.ask("GET", ticket, token=token).body["state"] == "granted"


def test_an_absent_client_is_named(native: Native, pool: str) -> None:
    """Others read why its ticket is not granted; it itself reads what it waits for."""
    token = governor(native, pool)
    holder = ask(native, pool, labels={"holder": "host 7"})
    mine = ask(native, pool, token=token, pull=True).body
    assert mine["waiting"]["code"] == "limit"
    assert mine["waiting"]["reason"].endswith("held by host 7 (admin)")
    seen = native.ask("GET", f"/v1/leases/{mine['id']}").body["waiting"]
    assert seen["code"] == "absent"
    assert seen["reason"].startswith("passed over: no request waits for it; first in line; limit:")
    native.ask("DELETE", f"/v1/leases/{holder.body['id']}")
    assert ask(native, pool).status == 201
