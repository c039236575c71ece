"""What operators do with waiting tickets over HTTP, filtered lists, and who the caller is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from moorage import __version__
from tests.faces.v1.leasing import ask, lease_action, make_pool, refused, waiting_ticket
from tests.faces.v1.native import Native


def test_a_moved_ticket_is_the_next(native: Native, pool: str) -> None:
    """The audit row has the priority before and after, and the change stream shows the move."""
    ticket = waiting_ticket(native, pool).body
    last = ask(native, pool).body
    assert last["waiting"]["position"] == 2
    moved = lease_action(native, last["id"], "move", first=True)
    assert (moved.status, moved.body["priority"], moved.body["waiting"]["position"]) == (200, 1, 1)
    assert native.ask("GET", f"/v1/leases/{ticket['id']}").body["waiting"]["position"] == 2
    row = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert (row["action"], row["target"]) == ("lease.move", last["id"])
    assert (row["before"]["priority"], row["after"]["priority"]) == (0, 1)
    assert row["before"]["key"] == last["key"]
    native.ask("DELETE", f"/v1/leases/{ask(native, pool, key='x').body['id']}")
    for wrong in ({}, {"first": True, "priority": 1}, {"priority": 10_000_000}):
        assert lease_action(native, last["id"], "move", **wrong).status == 400


def test_force_is_counted_and_audited(native: Native, pool: str) -> None:
    """A waiting ticket is granted over the limit; a repetition leaves no other audit row."""
    ticket = waiting_ticket(native, pool).body
    forced = lease_action(native, ticket["id"], "force")
    assert (forced.body["state"], forced.body["forced"]) == ("granted", True)
    first = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert (first["action"], first["target"]) == ("lease.force", ticket["id"])
    assert lease_action(native, ticket["id"], "force").body["token"] == forced.body["token"]
    assert native.ask("GET", "/v1/audit?limit=1").body["entries"][0] == first
    assert native.ask("GET", f"/v1/pools/{pool}").body["over"] is True
    assert refused(lease_action(native, ticket["id"], "move", first=True)) == (409, "not_waiting")


def test_moves_race_with_grants(native: Native) -> None:
    """Two operators move tickets while these are granted: each gets 200 or 409, none is lost."""
    pool = make_pool(native, limit=1)
    held = ask(native, pool).body["id"]
    tickets = [ask(native, pool, patience=600.0).body["id"] for _ in range(12)]
    with ThreadPoolExecutor(4) as threads:
        moves = [
            threads.submit(lease_action, native, one, "move", first=True) for one in 2 * tickets
        ]
        granted = [held]
        while len(granted) <= len(tickets):
            native.ask("DELETE", f"/v1/leases/{granted[-1]}")
            asked = native.ask("GET", f"/v1/leases?pool={pool}&state=granted").body["leases"]
            assert len(asked) == 1
            granted.append(asked[0]["id"])
    assert sorted(granted[1:]) == sorted(tickets)
    assert {move.result().status for move in moves} <= {200, 409}


def test_a_pause_says_why(native: Native, pool: str) -> None:
    """The reason is with the pool, in the reason of a waiting ticket, and in the audit log.

    The pool says who paused it last, as the audit log does; nobody has, after it was resumed.
    """
    ticket = waiting_ticket(native, pool).body
    paused = native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "rack 7 is down"})
    assert (paused.body["paused"], paused.body["pause_reason"]) == (True, "rack 7 is down")
    shown = native.ask("GET", f"/v1/leases/{ticket['id']}").body["waiting"]
    assert shown["code"] == "paused" and shown["reason"].endswith("(rack 7 is down)")
    row = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    assert row["after"] == {"paused": True, "reason": "rack 7 is down"}
    assert paused.body["paused_by"] == row["who"] != ""
    resumed = native.ask("POST", f"/v1/pools/{pool}:resume").body
    assert (resumed["paused"], resumed["pause_reason"]) == (False, "")
    assert resumed["paused_by"] == ""


def test_lists_are_filtered(native: Native) -> None:
    """Labels, owner and age restrict a list; pages of a filtered list are complete together."""
    pool = make_pool(native, limit=50)
    user = native.token("user", "shop", "ann")
    for number in range(6):
        labels = {"job": "a=b", "n": str(number % 2)}
        ask(native, pool, labels=labels, token=user if number < 2 else None)
    base = f"/v1/leases?pool={pool}"
    both = f"{base}&label=job=a%3Db&label=n=1&limit=2"
    first = native.ask("GET", both).body
    rest = native.ask("GET", f"{both}&cursor={first['next']}").body
    assert (len(first["leases"]), len(rest["leases"]), rest["next"]) == (2, 1, None)
    assert len(native.ask("GET", f"{base}&mine=true", token=user).body["leases"]) == 2
    none = native.ask("GET", f"{base}&older=3600").body
    assert (none["leases"], none["next"]) == ([], None)
    assert len(native.ask("GET", f"{base}&older=0").body["leases"]) == 6
    for wrong in ("label=x", "label=a=1&label=a=2", "older=-1", "mine=true&owner=else"):
        assert native.ask("GET", f"{base}&{wrong}").status == 400


@pytest.mark.parametrize(
    ("role", "project", "owner"), [("user", "shop", "shop/me"), ("operator", None, "me")]
)
def test_who_am_i(native: Native, role: str, project: str | None, owner: str) -> None:
    """The caller learns its name, role, project and owner, and the server's version."""
    shown = native.ask("GET", "/v1/whoami", token=native.token(role, project, "me")).body
    assert (shown["name"], shown["role"], shown["project_id"]) == ("me", role, project)
    assert (shown["owner"], shown["scope"], shown["expires_at"]) == (owner, {}, None)
    assert shown["token_id"] and shown["version"] == __version__


def test_a_scoped_caller_sees_its_scope(native: Native) -> None:
    """A janitor owns no leases; its token's expiry is shown."""
    wanted = {"name": "j", "role": "janitor", "scope": {"pool": ["a/*"]}, "expires_in": 60.0}
    made = native.ask("POST", "/v1/tokens", wanted).body
    shown = native.ask("GET", "/v1/whoami", token=made["token"]).body
    assert (shown["role"], shown["owner"], shown["scope"]) == ("janitor", None, {"pool": ["a/*"]})
    assert shown["expires_at"] == made["expires_at"]
