"""Acting for the holder of a lease: who may, what is audited, and the rights of a janitor."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused
from tests.faces.v1.native import Native, Response


def newest(native: Native) -> dict[str, Any]:
    """Return the newest audit row."""
    entry: dict[str, Any] = native.ask("GET", "/v1/audit?limit=1").body["entries"][0]
    return entry


def release(native: Native, lease: str, token: str) -> Response:
    """Release a lease."""
    return native.ask("DELETE", f"/v1/leases/{lease}", token=token)


def hold(native: Native, lease: str, token: str) -> Response:
    """Change the hold of a lease."""
    return native.ask("PATCH", f"/v1/leases/{lease}", {"hold": 600}, token=token)


def retry(native: Native, lease: str, token: str) -> Response:
    """Retry a lease."""
    return lease_action(native, lease, "retry", token=token, key=f"again-{lease}")


def outcome(native: Native, lease: str, token: str) -> Response:
    """Report the outcome of a lease."""
    return lease_action(native, lease, "outcome", token=token, result="failed", detail="late")


def revoke(native: Native, lease: str, token: str) -> Response:
    """Revoke a lease."""
    return lease_action(native, lease, "revoke", token=token, reason="late")


ACTS: dict[str, tuple[Callable[[Native, str, str], Response], Callable[[str, Response], Any]]] = {
    "lease.release": (release, lambda lease, answer: None),
    "lease.hold": (hold, lambda lease, answer: {"hold": 600.0}),
    "lease.retry": (
        retry,
        lambda lease, answer: {"lease": answer.body["id"], "key": f"again-{lease}"},
    ),
    "lease.outcome": (outcome, lambda lease, answer: {"result": "failed", "detail": "late"}),
    "lease.revoke": (revoke, lambda lease, answer: {"reason": "late"}),
}


@pytest.mark.parametrize("role", ["operator", "admin"])
@pytest.mark.parametrize("action", ACTS)
def test_acting_for_a_holder_is_audited(native: Native, pool: str, action: str, role: str) -> None:
    """The row has the actor, the lease's owner and the change; acts of the holder have none."""
    perform, after = ACTS[action]
    holder, other = native.token("user", "p1"), native.token(role, name=f"{role}-at-work")
    answer = native.ask("GET", "/v1/tokens?limit=1000").body["tokens"][-1]
    made = ask(native, pool, token=holder).body
    done = perform(native, made["id"], other)
    assert done.status in (200, 201), done
    row = newest(native)
    assert (row["action"], row["target"]) == (action, made["id"])
    assert (row["who"], row["role"], row["token_id"]) == (f"{role}-at-work", role, answer["id"])
    assert row["before"] == {"owner": "p1/user", "key": made["key"], "state": "granted"}
    assert row["after"] == after(made["id"], done)
    mine = make_pool(native)
    own = ask(native, mine, token=holder).body
    before = newest(native)
    if action != "lease.revoke":
        assert perform(native, own["id"], holder).status in (200, 201)
    assert newest(native) == before


def test_operations_without_an_effect_are_not_audited(native: Native, pool: str) -> None:
    """A repeated release or outcome has no row, and neither have operations on own leases."""
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
        lease_action(
            native, ask(native, pool, token=holder).body["id"], "renew", token=operator
        ).status
        == 200
    )
    assert newest(native) == before


def janitor(native: Native, *names: str, name: str = "sweeper") -> str:
    """Return a token of a janitor for some pools."""
    wanted = {"name": name, "role": "janitor", "scope": {"pool": [*names]}}
    secret: str = native.ask("POST", "/v1/tokens", wanted).body["token"]
    return secret


def test_operations_of_a_janitor(native: Native, pool: str) -> None:
    """It lists, reads, renews, releases and revokes; every end is audited, and it sees no token."""
    sweeper, holder = janitor(native, pool), native.token("user", "p1")
    made = ask(native, pool, token=holder).body
    address = f"/v1/leases/{made['id']}"
    (listed,) = native.ask("GET", f"/v1/leases?pool={pool}", token=sweeper).body["leases"]
    read = native.ask("GET", address, token=sweeper).body
    assert listed["id"] == read["id"] == made["id"]
    assert (listed["token"], read["token"]) == (None, None)
    renewed = lease_action(native, made["id"], "renew", token=sweeper)
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
    """It may neither read nor act; for a lease of several pools all must be in its scope."""
    other = make_pool(native)
    sweeper, holder = janitor(native, other, f"{pool}/*"), native.token("user", "p1")
    made = ask(native, pool, token=holder).body
    for answer in (
        native.ask("GET", f"/v1/leases/{made['id']}", token=sweeper),
        native.ask("GET", f"/v1/leases?pool={pool}", token=sweeper),
        release(native, made["id"], sweeper),
        revoke(native, made["id"], sweeper),
        lease_action(native, made["id"], "renew", token=sweeper),
    ):
        assert refused(answer) == (403, "forbidden")
        assert f"pool '{pool}' is not in the scope" in answer.body["detail"]
    assert refused(native.ask("GET", "/v1/leases", token=sweeper)) == (400, "invalid")
    third = make_pool(native)
    gang = ask(native, other, third, token=holder).body
    assert native.ask("GET", f"/v1/leases/{gang['id']}", token=sweeper).status == 200
    assert refused(release(native, gang["id"], sweeper)) == (403, "forbidden")
    assert native.ask("GET", f"/v1/leases/{gang['id']}").body["state"] == "granted"
    both = janitor(native, other, third)
    assert release(native, gang["id"], both).body["state"] == "ended"


def test_a_janitor_may_do_nothing_else(native: Native, pool: str) -> None:
    """It may do nothing else to these leases and nothing to the pools or the ledger."""
    sweeper = janitor(native, pool)
    made = ask(native, pool, token=native.token("user", "p1")).body
    for answer in (
        hold(native, made["id"], sweeper),
        retry(native, made["id"], sweeper),
        outcome(native, made["id"], sweeper),
        ask(native, pool, token=sweeper),
        native.ask("GET", f"/v1/pools/{pool}", token=sweeper),
        native.ask("PUT", f"/v1/pools/{pool}", {"limit": 9}, token=sweeper),
        native.ask("GET", "/v1/audit", token=sweeper),
        native.ask("GET", "/v1/watch", token=sweeper),
    ):
        assert refused(answer) == (403, "forbidden")
    latest = {"OpenStack_API_Version": "placement latest"}
    assert native.ask("GET", "/resource_providers", token=sweeper, **latest).status == 403


def test_a_janitor_with_an_owner_s_name(native: Native, pool: str) -> None:
    """A janitor with an owner's name gets no fencing token and keeps no ticket alive.

    Its operations are audited.
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


def test_tokens_cannot_have_names_of_boskos_clients(native: Native) -> None:
    """No token can have a name or project that looks like an owner of Boskos' leases."""
    for wanted in (
        {"name": "user", "role": "user", "project_id": "boskos:ci"},
        {"name": "boskos:ci", "role": "service"},
        {"name": "lease-proxy", "role": "service"},
    ):
        answer = native.ask("POST", "/v1/tokens", wanted)
        assert refused(answer) == (400, "invalid"), json.dumps(wanted)
