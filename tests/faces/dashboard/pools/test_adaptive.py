"""The page of a pool with an adaptive limit says what its test has decided, and why."""

from typing import Any

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.v1.leasing import ask, lease_action, make_pool
from tests.faces.v1.native import Native


def failed(native: Native, mode: str) -> tuple[str, dict[str, Any]]:
    """Return a pool of ten units, of which three jobs have failed, and what the API says of it."""
    pool = make_pool(native, limit=10, adaptive={"floor": 2, "ceiling": 20, "mode": mode})
    native.ask("POST", f"/v1/pools/{pool}:pause", {"reason": "test"})
    leases = [ask(native, pool).body["id"] for _ in range(10)]
    native.ask("POST", f"/v1/pools/{pool}:resume")
    for lease in leases[:3]:
        lease_action(native, lease, "outcome", result="failed")
    found: dict[str, Any] = native.ask("GET", f"/v1/pools/{pool}").body
    return pool, found


def test_a_limit_that_acts(native: Native) -> None:
    """The limit has moved; the one that an operator has set, and the evidence, are shown."""
    pool, found = failed(native, "act")
    test = found["adaptive_test"]
    assert (found["limit"], test["limit"], test["configured"]) == (7, 7, 10)
    text = signed_in(native, "reader").get(f"/ui/pools/{pool}").document.text
    assert "acts, from 2 to 20" in text
    assert test["last"]["text"] in text
    assert "cut the limit from 10 to 7: too many starts fail: 0 ok, 3 failed, 0 throttled" in text
    assert "because the limit was just changed" in text


def test_a_limit_that_advises(native: Native) -> None:
    """The limit is as it was, and the page says what it would be."""
    pool, found = failed(native, "advise")
    assert (found["limit"], found["adaptive_test"]["limit"]) == (10, 7)
    text = signed_in(native, "reader").get(f"/ui/pools/{pool}").document.text
    assert "advises, from 2 to 20" in text
    assert "would cut the limit from 10 to 7" in text


def test_other_pools_say_nothing_of_it(native: Native) -> None:
    """They have no test."""
    text = signed_in(native, "reader").get(f"/ui/pools/{make_pool(native)}").document.text
    assert "Adaptive limit" not in text
