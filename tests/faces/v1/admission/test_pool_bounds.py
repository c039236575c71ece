"""Bounds of pools for their users: errors name the bound; operators are exempt."""

from typing import Any

import pytest

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused
from tests.faces.v1.native import Native


@pytest.mark.parametrize(
    ("bounds", "wanted", "code", "words"),
    [
        ({"priority_max": 5}, {"priority": 6}, "priority_above_max", ["at most 5", "not 6"]),
        ({"priority_max": -1}, {}, "priority_above_max", ["at most -1", "not 0"]),
        (
            {"hold": 60, "hold_max": 600},
            {"hold": 601},
            "hold_above_max",
            ["at most 600 s"],
        ),
    ],
)
def test_values_above_a_bound_are_refused(
    native: Native, bounds: dict[str, Any], wanted: dict[str, Any], code: str, words: list[str]
) -> None:
    """Users get a 422 with the bound, operators do not; the bound itself is permitted."""
    pool = make_pool(native, limit=10, pacing=None, **bounds)
    user, operator = native.token("user", "p"), native.token("operator")
    answer = ask(native, pool, token=user, **wanted)
    assert refused(answer) == (422, code)
    for word in (*words, pool):
        assert word in answer.body["detail"]
    assert ask(native, pool, token=operator, **wanted).status == 201
    at_the_bound = {name: value - 1 for name, value in wanted.items()} or {"priority": -1}
    assert ask(native, pool, token=user, **at_the_bound).status == 201


def test_askers(native: Native) -> None:
    """`askers` are names of owners, all of a project, or a role and those above it."""
    askers = ["p1/user", "p2/*", "role:service"]
    pool = make_pool(native, limit=100, askers=askers)
    allowed = {
        "p1/user": native.token("user", "p1", name="user"),
        "p2/anybody": native.token("user", "p2", name="anybody"),
        "service": native.token("service"),
        "operator": native.token("operator"),
        "admin": native.secret,
    }
    for name, token in allowed.items():
        assert ask(native, pool, token=token).status == 201, name
    for project, name in (("p1", "other"), ("p2x", "user"), ("p3", "p1")):
        answer = ask(native, pool, token=native.token("user", project, name=name))
        assert refused(answer) == (403, "asker_refused")
        assert f"'{project}/{name}' may not ask for units of pool '{pool}'" in answer.body["detail"]
    none = make_pool(native, askers=[])
    assert refused(ask(native, none, token=allowed["service"])) == (403, "asker_refused")
    assert ask(native, none, token=allowed["operator"]).status == 201
    gang = ask(native, pool, none, token=allowed["p1/user"])
    assert refused(gang) == (403, "asker_refused")


def test_the_total_hold_is_bounded(native: Native) -> None:
    """A user cannot extend a hold beyond its maximum by repeated changes; an operator can."""
    pool = make_pool(native, hold=60, hold_max=600, pacing=None)
    user, operator = native.token("user", "p"), native.token("operator")
    lease = ask(native, pool, token=user, hold=600.0).body["id"]
    address = f"/v1/leases/{lease}"
    for hold in (600, None):
        answer = native.ask("PATCH", address, {"hold": hold}, token=user)
        assert refused(answer) == (422, "hold_above_max")
        assert "at most 600 s" in answer.body["detail"]
    assert native.ask("PATCH", address, {"hold": 300}, token=user).status == 200
    assert native.ask("PATCH", address, {"hold": 3_600}, token=operator).status == 200
    assert native.ask("PATCH", address, {"hold": None}, token=operator).status == 200
    answer = lease_action(native, lease, "retry", token=user, key="endless")
    assert refused(answer) == (422, "hold_above_max")
    waiting = ask(native, pool, token=user).body
    assert waiting["hold"] == 60
    answer = native.ask("PATCH", f"/v1/leases/{waiting['id']}", {"hold": 601}, token=user)
    assert refused(answer) == (422, "hold_above_max")
    assert (
        native.ask("PATCH", f"/v1/leases/{waiting['id']}", {"hold": 600}, token=user).status == 200
    )


def test_tickets_of_one_owner_are_limited(native: Native) -> None:
    """Further tickets of one owner are refused until one has gone; others are not affected."""
    pool = make_pool(native, queue_max_per_owner=2)
    holder = ask(native, pool).body
    bob, eve = native.token("user", "p", name="bob"), native.token("user", "p", name="eve")
    tickets = [ask(native, pool, token=bob, patience=600).body for _ in range(2)]
    answer = ask(native, pool, token=bob)
    assert refused(answer) == (429, "owner_queue_full")
    assert "p/bob" in answer.body["detail"] and "queue_max_per_owner is 2" in answer.body["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    again = lease_action(native, tickets[0]["id"], "retry", token=bob, key="another")
    assert again.status == 202  # it replaces one of the two
    assert ask(native, pool, token=eve).status == 202
    operator = native.token("operator", name="exempt")
    assert [ask(native, pool, token=operator).status for _ in range(3)] == [202] * 3
    native.ask("DELETE", f"/v1/leases/{tickets[1]['id']}")
    assert ask(native, pool, token=bob).status == 202
    native.ask("DELETE", f"/v1/leases/{holder['id']}")


def test_bounds_are_stored_and_shown(native: Native) -> None:
    """They are part of the pool, of its changes and of its audit rows."""
    wanted = {
        "limit": 3,
        "hold": 60.0,
        "askers": ["p/*"],
        "priority_max": 7,
        "hold_max": 120.5,
        "queue_max_per_owner": 4,
    }
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    made = native.ask("PUT", "/v1/pools/bounds/shown", wanted)
    assert made.status == 200
    assert {name: made.body[name] for name in wanted} == wanted
    (change,) = native.ask("GET", f"/v1/watch?after={after}&kinds=pool").body["changes"]
    spec = change["value"]["spec"]
    assert {name: spec[name] for name in wanted} == wanted
    row = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert row["after"] == spec
    plain = native.ask("PUT", "/v1/pools/bounds/shown", {"limit": 3}).body
    for name in ("askers", "priority_max", "hold_max", "queue_max_per_owner"):
        assert plain[name] is None


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"priority_max": 1_000_001}, ["priority_max", "1000000"]),
        ({"hold_max": 60}, ["hold_max", "needs a hold"]),
        ({"hold": 61, "hold_max": 60}, ["hold_max", "at most"]),
        ({"hold": 60, "hold_max": 1e9}, ["hold_max", "31622400"]),
        ({"queue_max_per_owner": 0}, ["queue_max_per_owner", "1"]),
        ({"queue_max": 5, "queue_max_per_owner": 6}, ["queue_max_per_owner", "5"]),
        ({"askers": ["role:king"]}, ["king", "operator"]),
        ({"askers": [""]}, ["asker"]),
        ({"askers": ["*"]}, ["asker", "PROJECT/*"]),
        ({"askers": ["/*"]}, ["asker", "PROJECT/*"]),
        ({"askers": ["x"] * 65}, ["64", "askers"]),
    ],
)
def test_invalid_bounds(native: Native, bounds: dict[str, Any], words: list[str]) -> None:
    """The error names the invalid bound."""
    answer = native.ask("PUT", "/v1/pools/bounds/wrong", {"limit": 1, **bounds})
    assert answer.status == 400, answer
    assert [word for word in words if word not in answer.body["detail"]] == []
