"""What is in a pool, what was in it, and rehearsals, over HTTP."""

import pytest

from tests.faces.v1.leasing import ask, lease_action, make_pool, refused
from tests.faces.v1.native import Native


def test_contents_are_windowed_and_counted(native: Native) -> None:
    """The windows are cut; the sums count everything. The line is in its own order."""
    pool = make_pool(native, limit=3)
    held = [ask(native, pool).body["id"] for _ in range(3)]
    low = ask(native, pool).body["id"]
    high = ask(native, pool, priority=5).body["id"]
    path = f"/v1/pools/{pool}:contents"
    whole = native.ask("GET", path).body
    assert [one["id"] for one in whole["leases"]] == held
    assert [one["id"] for one in whole["tickets"]] == [high, low]
    cut = native.ask("GET", f"{path}?leases=1&tickets=1").body
    assert [one["id"] for one in cut["leases"] + cut["tickets"]] == [held[0], high]
    for one in (whole, cut):
        assert (one["granted"], one["granted_units"]) == (3, 3)
        assert (one["waiting"], one["waiting_units"]) == (2, 2)
        assert one["pool"]["occupied"] == 3
    assert whole["as_of"] == native.ask("GET", "/v1/pools").body["as_of"]


@pytest.mark.parametrize("query", ["leases=0", "tickets=1001", "leases=x", "limit=3"])
def test_windows_have_bounds(native: Native, query: str) -> None:
    """Their limits are those of all lists."""
    answer = native.ask("GET", f"/v1/pools/{make_pool(native)}:contents?{query}")
    assert answer.status == 400


def test_only_owners_see_tokens(native: Native) -> None:
    """A reader sees the leases of others without their tokens and records, as in the list."""
    pool = make_pool(native)
    ask(native, pool)
    reader = native.token("reader")
    path = f"/v1/pools/{pool}:contents"
    assert native.ask("GET", path).body["leases"][0]["token"] is not None
    assert native.ask("GET", path, token=reader).body["leases"][0]["token"] is None


def test_history_and_rehearsal(native: Native) -> None:
    """A pool remembers what has ended; with a limit of 2 nobody would have waited."""
    pool = make_pool(native)
    first = ask(native, pool).body["id"]
    second = ask(native, pool).body["id"]
    for lease in (first, second):
        assert native.ask("DELETE", f"/v1/leases/{lease}").status == 200
    history = native.ask("GET", f"/v1/pools/{pool}:history?since=3600&points=10").body
    assert history["units"] == 1
    assert len(history["points"]) == 10
    assert max(one["occupied_high"] for one in history["points"]) == 1
    assert max(one["waiting"] for one in history["points"]) == 1
    assert sum(one["granted"] for one in history["points"]) == 2
    assert 0 < history["covered_seconds"] < 60, "it is no older than the pool"
    body = {"scenes": [{"limit": 1, "pacing": None}, {"limit": 2, "pacing": None}]}
    answer = native.ask("POST", f"/v1/pools/{pool}:rehearse", body)
    assert answer.status == 200, answer
    actual, *scenes = [answer.body["actual"], *answer.body["scenes"]]
    assert actual["jobs"] == 2
    assert [one["waiting"] for one in scenes] == [1, 0]
    assert [one["running"] for one in scenes] == [1, 2]
    assert native.ask("GET", f"/v1/pools/{pool}").body["occupied"] == 0, "nothing changes"


@pytest.mark.parametrize(
    "body",
    [
        {"scenes": []},
        {"scenes": [{"limit": 1}] * 9},
        {"scenes": [{"limit": 0}]},
        {"scenes": [{"limit": 1, "pacing": {"interval": -1}}]},
        {"scenes": [{"limit": 1}], "since": -1},
        {"scenes": [{"limit": 1, "other": 1}]},
    ],
)
def test_impossible_rehearsals_are_refused(native: Native, body: dict[str, object]) -> None:
    """Each refusal says what to change."""
    pool = make_pool(native)
    ask(native, pool)
    answer = native.ask("POST", f"/v1/pools/{pool}:rehearse", body)
    assert answer.status == 400, answer


def test_without_a_past_there_is_no_rehearsal(native: Native) -> None:
    """A pool whose leases all live has no jobs to replay; an unknown one is not found."""
    pool = make_pool(native)
    lease = ask(native, pool).body["id"]
    body = {"scenes": [{"limit": 1}]}
    answer = native.ask("POST", f"/v1/pools/{pool}:rehearse", body)
    assert answer.status == 200, answer
    assert [one["jobs"] for one in (answer.body["actual"], *answer.body["scenes"])] == [0, 0]
    assert native.ask("GET", f"/v1/pools/{pool}:history?points=1001").status == 400
    for path, method in ((":history", "GET"), (":contents", "GET"), (":rehearse", "POST")):
        answer = native.ask(method, f"/v1/pools/none{path}", body if method == "POST" else None)
        assert refused(answer) == (404, "pool_not_found")
    assert lease_action(native, lease, "revoke", reason="test").status == 200
