"""Leases of the lease proxy that are not released in time, and the settings of their pools."""

import json

from tests.faces.boskos.boskos_server import BoskosServer
from tests.faces.leaseproxy.test_lease_proxy import (
    acquire,
    free_count,
    release,
    start_acquire,
    until_free,
    until_waiting,
)


def test_a_late_release_does_not_affect_the_next_holder(safe_boskos: BoskosServer) -> None:
    """A late release of an expired lease must not release a name that has a new holder."""
    kind, names = safe_boskos.new_type()
    safe_boskos.native("PUT", f"/v1/pools/{kind}", {"hold": 0.2, "pacing": None})
    acquire(safe_boskos, kind, 3)
    until_free(safe_boskos, kind, 3)
    safe_boskos.native("PUT", f"/v1/pools/{kind}", {"hold": 3600, "pacing": None})
    acquire(safe_boskos, kind, 3)
    assert release(safe_boskos, *names).status == 204
    assert free_count(safe_boskos, kind) == 0
    assert release(safe_boskos, *names).status == 204
    assert free_count(safe_boskos, kind) == 3


def _held(safe_boskos: BoskosServer, kind: str) -> str:
    """Return the id of the only live lease of a type."""
    (one,) = safe_boskos.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
    return str(one["id"])


def test_a_dead_holder_does_not_cripple_its_slot(safe_boskos: BoskosServer) -> None:
    """Revoked with the word that its holder is gone, its slot serves the next jobs as before.

    The control: without the word, the next release counts as that of the dead holder; the answer,
    the lease and the slot say so, and the word can still be said. Then that release is put right.
    """
    kind, names = safe_boskos.new_type()
    acquire(safe_boskos, kind, 3)
    dead = _held(safe_boskos, kind)
    answer = safe_boskos.native("POST", f"/v1/leases/{dead}/revoke", {"holder_is_gone": True})
    assert (answer["cause"], answer["late_releases"]) == ("revoked", [])
    for _ in range(3):
        acquire(safe_boskos, kind, 3)
        assert release(safe_boskos, *names).status == 204
        assert free_count(safe_boskos, kind) == 3
    acquire(safe_boskos, kind, 3)
    dead = _held(safe_boskos, kind)
    answer = safe_boskos.native("POST", f"/v1/leases/{dead}/revoke", {"reason": "?"})
    assert [(one["slot"], one["leases"]) for one in answer["late_releases"]] == [
        (name, [dead]) for name in names
    ]
    acquire(safe_boskos, kind, 3)
    present = _held(safe_boskos, kind)
    assert release(safe_boskos, names[0]).status == 204
    assert free_count(safe_boskos, kind) == 0
    seen = safe_boskos.native("GET", f"/v1/leases/{present}")["late_releases"]
    assert [(one["slot"], one["leases"], one["until"] is None) for one in seen] == [
        (names[0], [dead, present], True),
        (names[1], [dead], False),
        (names[2], [dead], False),
    ]
    slots = safe_boskos.native("GET", f"/v1/pools/{kind}:slots")["slots"]
    assert [len(one["late_releases"]) for one in slots] == [1, 1, 1]
    safe_boskos.native("POST", f"/v1/leases/{dead}/revoke", {"holder_is_gone": True})
    assert free_count(safe_boskos, kind) == 1, "its release is put right"
    assert release(safe_boskos, *names[1:]).status == 204
    assert free_count(safe_boskos, kind) == 3
    rows = safe_boskos.native("GET", f"/v1/audit?target={dead}")["entries"]
    assert [one["action"] for one in rows] == ["lease.revoke", "lease.revoke"]


def test_leases_of_the_proxy_may_have_a_ttl(safe_boskos: BoskosServer) -> None:
    """A pool may have a TTL for leases of the proxy, which no caller renews."""
    kind, _ = safe_boskos.new_type()
    response = safe_boskos.native("PUT", f"/v1/pools/{kind}", {"proxy_ttl": 0.3})
    assert response["proxy_ttl"] == 0.3
    acquire(safe_boskos, kind, 3)
    until_free(safe_boskos, kind, 3)


def test_a_full_line_is_answered_with_retry_after(safe_boskos: BoskosServer) -> None:
    """A request that finds the line full is to be repeated: 503 with Retry-After."""
    kind, _ = safe_boskos.new_type()
    safe_boskos.native("PUT", f"/v1/pools/{kind}", {"queue_max": 1})
    names = acquire(safe_boskos, kind, 3)
    with start_acquire(safe_boskos, kind, 1):
        until_waiting(safe_boskos, kind, 1)
        answer = safe_boskos.call("POST", f"/lease/acquire?type={kind}")
        assert (answer.status, answer.headers.get("retry-after")) == (503, "1")
        assert answer.body.startswith(f'Failed to acquire lease "{kind}": ')
    release(safe_boskos, *names)


def test_a_pool_with_slots_and_a_hold_is_paced(safe_boskos: BoskosServer) -> None:
    """As with a limit, the default pacing is the hold divided by the number of slots."""
    kind, names = safe_boskos.new_type()
    response = safe_boskos.native("PUT", f"/v1/pools/{kind}", {"hold": 600})
    assert response["pacing"] == {"interval": 200.0, "burst": 1, "jitter": 0.0}
    assert safe_boskos.native("PUT", f"/v1/pools/{kind}", {"hold": 600}) == response
    assert acquire(safe_boskos, kind) == [names[0]]
    with start_acquire(safe_boskos, kind, 1):
        until_waiting(safe_boskos, kind, 1)
        first = safe_boskos.native("GET", f"/v1/pools/{kind}")["first"]
        assert first["waiting"]["code"] == "pacing"
    response = safe_boskos.native("PUT", f"/v1/pools/{kind}", {"hold": 600, "pacing": None})
    assert response["pacing"] is None


def test_the_most_units_of_a_request(safe_boskos: BoskosServer) -> None:
    """One request gets at most 1000 units, since the response has a name for each."""
    safe_boskos.native("PUT", "/v1/pools/large", {"limit": 2_000_000_000})
    for count in (1_001, 2_000_000_000, (1 << 64) - 1):
        answer = safe_boskos.call("POST", f"/lease/acquire?type=large&count={count}")
        assert answer.status == 500
        assert "1000 units at most" in answer.body
    assert safe_boskos.call("POST", "/lease/acquire?type=none&count=1001").status == 404
    answer = safe_boskos.call("POST", "/lease/acquire?type=large&count=1000")
    assert len(json.loads(answer.body)["names"]) == 1_000
    assert safe_boskos.native("GET", "/v1/pools/large")["occupied"] == 1_000
