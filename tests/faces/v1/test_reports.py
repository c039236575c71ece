"""Reports on pools over HTTP: the time that they are asked for, and the time that they cover."""

import pytest

from tests.faces.v1.native import Native


@pytest.mark.parametrize("since", ["0", "-1", "31622401", "1e300", "nan"])
def test_the_time_is_bounded(native: Native, pool: str, since: str) -> None:
    """A report on no time, or on more than the longest duration, is refused, with the bounds."""
    answer = native.ask("GET", f"/v1/pools/{pool}:report?since={since}")
    assert answer.status == 400
    assert "since" in answer.body["detail"]


def test_a_report_says_what_it_covers(native: Native, pool: str) -> None:
    """A report on a week covers the day that this server keeps; one on an hour covers that."""
    lease = native.ask("POST", "/v1/leases", {"needs": [{"pool": pool}], "key": pool}).body
    native.ask("DELETE", f"/v1/leases/{lease['id']}")
    for since, asked, covered in (("604800", 604_800, 86_400), ("3600", 3_600, 3_600)):
        found = native.ask("GET", f"/v1/pools/{pool}:report?since={since}").body
        assert (found["asked_seconds"], found["covered_seconds"]) == (asked, covered)
        assert (found["leases"], found["cut"], found["causes"]) == (1, False, {"released": 1})
    plain = native.ask("GET", f"/v1/pools/{pool}:report").body
    assert plain["asked_seconds"] == 86_400
