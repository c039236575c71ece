"""What pools let their users ask: refused by name, with what to change; operators are exempt."""

from typing import Any

import pytest

from tests.faces.v1.leasing import act, ask, make, refused
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
def test_what_is_above_a_bound_is_refused(
    native: Native, bounds: dict[str, Any], wanted: dict[str, Any], code: str, words: list[str]
) -> None:
    """422 and the bound, for users; an operator may. At the bound everybody may."""
    pool = make(native, limit=10, pacing=None, **bounds)
    user, operator = native.token("user", "p"), native.token("operator")
    told = ask(native, pool, token=user, **wanted)
    assert refused(told) == (422, code)
    for word in (*words, pool):
        assert word in told.body["detail"]
    assert ask(native, pool, token=operator, **wanted).status == 201
    at_the_bound = {name: value - 1 for name, value in wanted.items()} or {"priority": -1}
    assert ask(native, pool, token=user, **at_the_bound).status == 201


def test_who_may_ask(native: Native) -> None:
    """Owners by name, all of a project, or a role and those above; others get 403."""
    askers = ["p1/user", "p2/*", "role:service"]
    pool = make(native, limit=100, askers=askers)
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
        told = ask(native, pool, token=native.token("user", project, name=name))
        assert refused(told) == (403, "asker_refused")
        assert f"'{project}/{name}' may not ask for units of pool '{pool}'" in told.body["detail"]
    none = make(native, askers=[])
    assert refused(ask(native, none, token=allowed["service"])) == (403, "asker_refused")
    assert ask(native, none, token=allowed["operator"]).status == 201
    gang = ask(native, pool, none, token=allowed["p1/user"])
    assert refused(gang) == (403, "asker_refused")


def test_a_hold_is_bounded_in_all(native: Native) -> None:
    """Whoever moves its end again and again does not hold for longer; an operator may permit it."""
    pool = make(native, hold=60, hold_max=600, pacing=None)
    user, operator = native.token("user", "p"), native.token("operator")
    lease = ask(native, pool, token=user, hold=600.0).body["id"]
    address = f"/v1/leases/{lease}"
    for hold in (600, None):
        told = native.ask("PATCH", address, {"hold": hold}, token=user)
        assert refused(told) == (422, "hold_above_max")
        assert "at most 600 s" in told.body["detail"]
    assert native.ask("PATCH", address, {"hold": 300}, token=user).status == 200
    assert native.ask("PATCH", address, {"hold": 3_600}, token=operator).status == 200
    assert native.ask("PATCH", address, {"hold": None}, token=operator).status == 200
    told = act(native, lease, "retry", token=user, key="endless")
    assert refused(told) == (422, "hold_above_max")
    waiting = ask(native, pool, token=user).body
    assert waiting["hold"] == 60
    told = native.ask("PATCH", f"/v1/leases/{waiting['id']}", {"hold": 601}, token=user)
    assert refused(told) == (422, "hold_above_max")
    assert (
        native.ask("PATCH", f"/v1/leases/{waiting['id']}", {"hold": 600}, token=user).status == 200
    )


def test_one_owner_does_not_fill_a_line(native: Native) -> None:
    """So many tickets of one owner wait; others may, and so may it after one has gone."""
    pool = make(native, queue_max_per_owner=2)
    holder = ask(native, pool).body
    bob, eve = native.token("user", "p", name="bob"), native.token("user", "p", name="eve")
    tickets = [ask(native, pool, token=bob, patience=600).body for _ in range(2)]
    told = ask(native, pool, token=bob)
    assert refused(told) == (429, "owner_queue_full")
    assert "p/bob" in told.body["detail"] and "queue_max_per_owner is 2" in told.body["detail"]
    assert int(told.headers["retry-after"]) >= 1
    again = act(native, tickets[0]["id"], "retry", token=bob, key="another")
    assert again.status == 202  # it takes the place of one of the two
    assert ask(native, pool, token=eve).status == 202
    operator = native.token("operator", name="exempt")
    assert [ask(native, pool, token=operator).status for _ in range(3)] == [202] * 3
    native.ask("DELETE", f"/v1/leases/{tickets[1]['id']}")
    assert ask(native, pool, token=bob).status == 202
    native.ask("DELETE", f"/v1/leases/{holder['id']}")


def test_bounds_are_shown_and_kept(native: Native) -> None:
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
        ({"hold": 61, "hold_max": 60}, ["hold_max", "not above"]),
        ({"hold": 60, "hold_max": 1e9}, ["hold_max", "31622400"]),
        ({"queue_max_per_owner": 0}, ["queue_max_per_owner", "1"]),
        ({"queue_max": 5, "queue_max_per_owner": 6}, ["queue_max_per_owner", "5"]),
        ({"askers": ["role:king"]}, ["king", "operator"]),
        ({"askers": [""]}, ["askers"]),
        ({"askers": ["*"]}, ["askers", "PROJECT/*"]),
        ({"askers": ["/*"]}, ["askers", "PROJECT/*"]),
        ({"askers": ["x"] * 65}, ["64", "askers"]),
    ],
)
def test_bounds_that_cannot_be(native: Native, bounds: dict[str, Any], words: list[str]) -> None:
    """They are refused by name."""
    told = native.ask("PUT", "/v1/pools/bounds/wrong", {"limit": 1, **bounds})
    assert told.status == 400, told
    assert [word for word in words if word not in told.body["detail"]] == []
