"""How leases of the lease proxy end that are not released in time, and what pools say of them."""

import json
from collections.abc import Iterator

import pytest

from tests.faces.boskos.ground import Ground, ground
from tests.faces.leaseproxy.test_lease_proxy import (
    acquire,
    free,
    hanging,
    release,
    until_free,
    until_waiting,
)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A server whose acquires wait for long."""
    with ground(tmp_path_factory.mktemp("ends")) as one:
        yield one


def test_a_late_release_is_no_release_of_the_next_holder(patient: Ground) -> None:
    """Who held until the hold was over releases a name that another has by now."""
    kind, names = patient.own()
    patient.native("PUT", f"/v1/pools/{kind}", {"hold": 0.2, "pacing": None})
    acquire(patient, kind, 3)
    until_free(patient, kind, 3)
    patient.native("PUT", f"/v1/pools/{kind}", {"hold": 3600, "pacing": None})
    acquire(patient, kind, 3)
    assert release(patient, *names).status == 204
    assert free(patient, kind) == 0
    assert release(patient, *names).status == 204
    assert free(patient, kind) == 3


def test_leases_may_be_bounded(patient: Ground) -> None:
    """A pool may end leases whose callers are never heard of again."""
    kind, _ = patient.own()
    told = patient.native("PUT", f"/v1/pools/{kind}", {"proxy_ttl": 0.3})
    assert told["proxy_ttl"] == 0.3
    acquire(patient, kind, 3)
    until_free(patient, kind, 3)


def test_a_full_line_is_full_for_now(patient: Ground) -> None:
    """Who finds too many waiting is to come again."""
    kind, _ = patient.own()
    patient.native("PUT", f"/v1/pools/{kind}", {"queue_max": 1})
    names = acquire(patient, kind, 3)
    with hanging(patient, kind, 1):
        until_waiting(patient, kind, 1)
        answer = patient.call("POST", f"/lease/acquire?type={kind}")
        assert (answer.status, answer.headers.get("retry-after")) == (503, "1")
        assert answer.body.startswith(f'Failed to acquire lease "{kind}": ')
    release(patient, *names)


def test_a_pool_with_slots_and_a_hold_is_paced(patient: Ground) -> None:
    """As one with a limit is: at the hold divided by its slots, unless somebody says otherwise."""
    kind, names = patient.own()
    told = patient.native("PUT", f"/v1/pools/{kind}", {"hold": 600})
    assert told["pacing"] == {"interval": 200.0, "burst": 1, "jitter": 0.0}
    assert patient.native("PUT", f"/v1/pools/{kind}", {"hold": 600}) == told
    assert acquire(patient, kind) == [names[0]]
    with hanging(patient, kind, 1):
        until_waiting(patient, kind, 1)
        first = patient.native("GET", f"/v1/pools/{kind}")["first"]
        assert first["waiting"]["code"] == "pacing"
    told = patient.native("PUT", f"/v1/pools/{kind}", {"hold": 600, "pacing": None})
    assert told["pacing"] is None


def test_a_request_has_so_many_units_at_most(patient: Ground) -> None:
    """However large a pool is: the names of all its units would be too much for one answer."""
    patient.native("PUT", "/v1/pools/large", {"limit": 2_000_000_000})
    for count in (1_001, 2_000_000_000, (1 << 64) - 1):
        answer = patient.call("POST", f"/lease/acquire?type=large&count={count}")
        assert answer.status == 500
        assert "1000 units at most" in answer.body
    assert patient.call("POST", "/lease/acquire?type=none&count=1001").status == 404
    answer = patient.call("POST", "/lease/acquire?type=large&count=1000")
    assert len(json.loads(answer.body)["names"]) == 1_000
    assert patient.native("GET", "/v1/pools/large")["occupied"] == 1_000
