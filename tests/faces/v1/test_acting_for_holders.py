"""Acting for the holder of a lease: who may, what is written down, and what a janitor may."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faces.v1.leasing import act, ask, make, refused
from tests.faces.v1.native import Native, Told


def newest(native: Native) -> dict[str, Any]:
    """The newest audit row."""
    entry: dict[str, Any] = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    return entry


def release(native: Native, lease: str, token: str) -> Told:
    """Give a lease back."""
    return native.ask("DELETE", f"/v1/leases/{lease}", token=token)


def hold(native: Native, lease: str, token: str) -> Told:
    """Move the end of a lease."""
    return native.ask("PATCH", f"/v1/leases/{lease}", {"hold": 600}, token=token)


def retry(native: Native, lease: str, token: str) -> Told:
    """Start anew."""
    return act(native, lease, "retry", token=token, key=f"again-{lease}")


def outcome(native: Native, lease: str, token: str) -> Told:
    """Tell what became of it."""
    return act(native, lease, "outcome", token=token, result="failed", detail="late")


def revoke(native: Native, lease: str, token: str) -> Told:
    """Take it away."""
    return act(native, lease, "revoke", token=token, reason="late")


ACTS: dict[str, tuple[Callable[[Native, str, str], Told], Callable[[str, Told], Any]]] = {
    "lease.release": (release, lambda lease, told: None),
    "lease.hold": (hold, lambda lease, told: {"hold": 600.0}),
    "lease.retry": (
        retry,
        lambda lease, told: {"lease": told.body["id"], "key": f"again-{lease}"},
    ),
    "lease.outcome": (outcome, lambda lease, told: {"result": "failed", "detail": "late"}),
    "lease.revoke": (revoke, lambda lease, told: {"reason": "late"}),
}


@pytest.mark.parametrize("role", ["operator", "admin"])
@pytest.mark.parametrize("action", ACTS)
def test_what_is_done_in_anothers_stead_is_written_down(
    native: Native, pool: str, action: str, role: str
) -> None:
    """Who did it, to whose lease, and what; what the holder does itself is not."""
    perform, after = ACTS[action]
    holder, other = native.token("user", "p1"), native.token(role, name=f"{role}-at-work")
    told = native.ask("GET", "/v1/tokens?limit=1000").body["tokens"][-1]
    made = ask(native, pool, token=holder).body
    done = perform(native, made["id"], other)
    assert done.status in (200, 201), done
    row = newest(native)
    assert (row["action"], row["target"]) == (action, made["id"])
    assert (row["who"], row["role"], row["token_id"]) == (f"{role}-at-work", role, told["id"])
    assert row["before"] == {"owner": "p1/user", "key": made["key"], "state": "granted"}
    assert row["after"] == after(made["id"], done)
    mine = make(native)
    own = ask(native, mine, token=holder).body
    before = newest(native)
    if action != "lease.revoke":
        assert perform(native, own["id"], holder).status in (200, 201)
    assert newest(native) == before


def test_what_changes_nothing_leaves_no_row(native: Native, pool: str) -> None:
    """To release what has ended, to tell an outcome again, and what an operator does to its own."""
    holder, operator = native.token("user", "p1"), native.token("operator", name="own")
    made = ask(native, pool, token=holder).body
    assert outcome(native, made["id"], operator).status == 200
    assert release(native, made["id"], operator).status == 200
    before = newest(native)
    assert before["action"] == "lease.release"
    assert outcome(native, made["id"], operator).status == 200
    assert release(native, made["id"], operator).status == 200
    own = ask(native, pool, token=operator).body
    assert hold(native, own["id"], operator).status == 200
    assert release(native, own["id"], operator).status == 200
    assert (
        act(native, ask(native, pool, token=holder).body["id"], "renew", token=operator).status
        == 200
    )
    assert newest(native) == before


def janitor(native: Native, *names: str, name: str = "sweeper") -> str:
    """A token of a janitor for some pools."""
    wanted = {"name": name, "role": "janitor", "scope": {"pool": [*names]}}
    secret: str = native.ask("POST", "/v1/tokens", wanted).body["token"]
    return secret


def test_a_janitor_looks_after_its_pools(native: Native, pool: str) -> None:
    """It lists, reads, renews, releases and revokes; every end leaves a row, no token is told."""
    sweeper, holder = janitor(native, pool), native.token("user", "p1")
    made = ask(native, pool, token=holder).body
    address = f"/v1/leases/{made['id']}"
    (listed,) = native.ask("GET", f"/v1/leases?pool={pool}", token=sweeper).body["leases"]
    read = native.ask("GET", address, token=sweeper).body
    assert listed["id"] == read["id"] == made["id"]
    assert (listed["token"], read["token"]) == (None, None)
    renewed = act(native, made["id"], "renew", token=sweeper)
    assert (renewed.status, renewed.body["token"]) == (200, None)
    assert renewed.body["expires_at"] > made["expires_at"]
    assert release(native, made["id"], sweeper).body["cause"] == "released"
    row = newest(native)
    assert (row["action"], row["who"], row["role"]) == ("lease.release", "sweeper", "janitor")
    assert row["before"]["owner"] == "p1/user"
    again = ask(native, pool, token=holder).body
    assert revoke(native, again["id"], sweeper).body["cause"] == "revoked"
    assert newest(native)["role"] == "janitor"


def test_a_janitor_of_other_pools_is_refused(native: Native, pool: str) -> None:
    """Neither to read nor to act; of a lease of several pools all must be in its scope."""
    other = make(native)
    sweeper, holder = janitor(native, other, f"{pool}/*"), native.token("user", "p1")
    made = ask(native, pool, token=holder).body
    for told in (
        native.ask("GET", f"/v1/leases/{made['id']}", token=sweeper),
        native.ask("GET", f"/v1/leases?pool={pool}", token=sweeper),
        release(native, made["id"], sweeper),
        revoke(native, made["id"], sweeper),
        act(native, made["id"], "renew", token=sweeper),
    ):
        assert refused(told) == (403, "forbidden")
        assert f"pool '{pool}' is not in the scope" in told.body["detail"]
    assert refused(native.ask("GET", "/v1/leases", token=sweeper)) == (400, "invalid")
    third = make(native)
    gang = ask(native, other, third, token=holder).body
    assert native.ask("GET", f"/v1/leases/{gang['id']}", token=sweeper).status == 200
    assert refused(release(native, gang["id"], sweeper)) == (403, "forbidden")
    assert native.ask("GET", f"/v1/leases/{gang['id']}").body["state"] == "granted"
    both = janitor(native, other, third)
    assert release(native, gang["id"], both).body["state"] == "ended"


def test_a_janitor_may_do_nothing_else(native: Native, pool: str) -> None:
    """Nothing else to the leases of its pools, nothing to the pools, nothing in the ledger."""
    sweeper = janitor(native, pool)
    made = ask(native, pool, token=native.token("user", "p1")).body
    for told in (
        hold(native, made["id"], sweeper),
        retry(native, made["id"], sweeper),
        outcome(native, made["id"], sweeper),
        ask(native, pool, token=sweeper),
        native.ask("GET", f"/v1/pools/{pool}", token=sweeper),
        native.ask("PUT", f"/v1/pools/{pool}", {"limit": 9}, token=sweeper),
        native.ask("GET", "/v1/audit", token=sweeper),
        native.ask("GET", "/v1/watch", token=sweeper),
    ):
        assert refused(told) == (403, "forbidden")
    latest = {"OpenStack_API_Version": "placement latest"}
    assert native.ask("GET", "/resource_providers", token=sweeper, **latest).status == 403


def test_a_janitor_is_no_owner(native: Native, pool: str) -> None:
    """Whoever it is called like: it is told no token, its looks are no sign of life, and what it
    does is written down.
    """
    service = native.token("service", name="worker")
    holder = ask(native, pool, token=service).body
    ticket = ask(native, pool, token=service).body
    sweeper = janitor(native, pool, name="worker")
    assert native.ask("GET", f"/v1/leases/{holder['id']}", token=sweeper).body["token"] is None
    waiting = native.ask("GET", f"/v1/leases/{ticket['id']}?wait=1", token=sweeper)
    assert refused(waiting) == (403, "holder_mismatch")
    assert release(native, holder["id"], sweeper).status == 200
    row = newest(native)
    assert (row["action"], row["who"], row["before"]["owner"]) == (
        "lease.release",
        "worker",
        "worker",
    )


def test_names_of_boskos_clients_own_nothing_here(native: Native) -> None:
    """A token's name and project cannot make an owner of Boskos' leases."""
    for wanted in (
        {"name": "user", "role": "user", "project_id": "boskos:ci"},
        {"name": "boskos:ci", "role": "service"},
        {"name": "lease-proxy", "role": "service"},
    ):
        told = native.ask("POST", "/v1/tokens", wanted)
        assert refused(told) == (400, "invalid"), json.dumps(wanted)
