"""What the copy of all hosts keeps of each: enough to decide, and not much more."""

import json

from hypothesis import given

from moorage.integrations.metal3 import failures, hosts
from moorage.integrations.metal3.mirror import without_details
from moorage.integrations.metal3.rules import fields_of
from tests.integrations.metal3.govern.odd_hosts import WHOLE, Host, odd_hosts, with_value

NICS = [{"name": f"eth{number}", "mac": "00:00:5e:00:53:01"} for number in range(100)]


def test_details_take_no_memory() -> None:
    """Interfaces are not kept; vendor and architecture are."""
    path = ("status", "hardware", "nics")
    kept = without_details(with_value(WHOLE, path, NICS))
    assert len(json.dumps(kept)) <= len(json.dumps(WHOLE))
    assert fields_of(kept) == fields_of(WHOLE)


@given(odd_hosts())
def test_nothing_that_decides_is_lost(host: Host) -> None:
    """Whatever a host contains, it is judged alike without its details."""
    kept = without_details(host)
    assert kept["metadata"] == host["metadata"]
    assert fields_of(kept) == fields_of(host)
    assert (hosts.start_of(kept), hosts.work_of(kept)) == (
        hosts.start_of(host),
        hosts.work_of(host),
    )
    assert failures.cannot_start(kept) == failures.cannot_start(host)
    assert failures.mark_of(kept) == failures.mark_of(host)
