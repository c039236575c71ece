"""The pages say which leases are asked to stop, and for which ticket."""

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.v1.leasing import ask, make_pool
from tests.faces.v1.native import Native


def test_a_lease_that_is_asked_to_stop(native: Native) -> None:
    """The ticket says only how many are; before it comes, none is."""
    pool = make_pool(native, limit=2)
    ask(native, pool)
    ask(native, pool, preemptible=600)
    browser = signed_in(native, "reader")
    assert "asked to stop" not in browser.get(f"/ui/pools/{pool}").document.text
    ticket = ask(native, pool, priority=1).body["id"]
    page = browser.get(f"/ui/pools/{pool}").document.text
    assert page.count("asked to stop") == 2  # the lease, and the reason of the ticket
    leases = browser.get(f"/ui/leases?pool={pool}").document.text
    assert leases.count(f"asked to stop for {ticket[:18]}") == 1
