"""Watching over HTTP: long poll and stream return the same changes, and report missing ones."""

import http.client
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from moorage.client.decoding import change_decode
from moorage.service.feed.change_rows import STORED_IN_MICROSECONDS
from moorage.wire.changes import VALUES, Change
from moorage.wire.defaults import PROXY_TTL_SECONDS
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native

EVENTS = "text/event-stream"
LATEST = {"OpenStack_API_Version": "placement latest"}
UUID = "11111111-2222-4333-8444-555555555555"
CONSUMER = "99999999-2222-4333-8444-555555555555"


def change_everything(native: Native) -> None:
    """Change an object of every kind but slots, which belong to pools of files."""
    native.ask("POST", "/resource_providers", {"name": "all", "uuid": UUID}, **LATEST)
    native.ask("POST", "/resource_classes", {"name": "CUSTOM_A"}, **LATEST)
    old = {"OpenStack_API_Version": "placement 1.2"}
    native.ask("PUT", "/resource_classes/CUSTOM_A", {"name": "CUSTOM_B"}, **old)
    native.ask("PUT", "/traits/CUSTOM_T", **LATEST)
    path = f"/resource_providers/{UUID}"
    offered = {"resource_provider_generation": 0, "inventories": {"CUSTOM_B": {"total": 8}}}
    native.ask("PUT", f"{path}/inventories", offered, **LATEST)
    tagged = {"resource_provider_generation": 1, "traits": ["CUSTOM_T"]}
    native.ask("PUT", f"{path}/traits", tagged, **LATEST)
    claim = {
        "allocations": {UUID: {"resources": {"CUSTOM_B": 2}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    native.ask("PUT", f"/allocations/{CONSUMER}", claim, **LATEST)
    assert native.ask("DELETE", f"/allocations/{CONSUMER}", **LATEST).status == 204
    plan = {"rename": {UUID: "renamed"}}
    assert native.ask("POST", "/v1/reshapes", {"plan": plan}).status == 201
    template = {"pool": {"limit": 1}, "idle": 60, "pools_max": 1}
    assert native.ask("PUT", "/v1/pool-templates/all-*", template).status == 200
    native.ask("PUT", "/v1/pools/all", {"limit": 1})
    native.ask("PUT", "/v1/pool-templates/all-*", {"pool": {"limit": 1}})
    asked = {"needs": [{"pool": "all"}], "key": "all"}
    lease = native.ask("POST", "/v1/leases", asked).body["id"]
    native.ask("POST", f"/v1/leases/{lease}/outcome", {"result": "ok"})
    start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251  # by the clock of the real server
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    booking = {"needs": [{"pool": "all"}], "key": str(uuid.uuid4()), "force": True, **times}
    assert native.ask("POST", "/v1/bookings", booking).status == 201
    native.ask("PUT", "/v1/groups/rack", {"desired": {"CUSTOM_B": {"percent": 50}}})
    native.ask("PUT", f"/v1/agents/{CONSUMER}", {"group": "rack"})
    reporters = "/v1/reporter-groups/all"
    native.ask("PUT", f"{reporters}/members/a", {"instance": CONSUMER})
    native.ask("POST", f"{reporters}/pins", {"nodes": [UUID], "member": "a"})
    part = str(uuid.uuid5(uuid.UUID(CONSUMER), "numa0"))
    classes = {"CUSTOM_B": {"eligible": 8}}
    registered = {
        "boot_id": "boot",
        "facts": {"hostname": "machine"},
        "parts": [{"provider": part, "name": "numa0", "classes": classes}],
    }
    native.ask("POST", f"/v1/agents/{CONSUMER}/register", registered)
    failure = {"code": "none", "message": "", "attempts": 1, "since": "2026-01-01T00:00:00Z"}
    reported = {
        "boot_id": "boot",
        "report_generation": 1,
        "desired_generation_seen": 1,
        "phase": "done",
        "actual": {part: {"CUSTOM_B": 2}},
        "failure": failure,
    }
    assert native.ask("PUT", f"/v1/agents/{CONSUMER}/report", reported).status == 200


ELSEWHERE = {"slot", "import"}
"""Kinds of pools with slots, and of a ledger that is imported: see the tests of both."""


@contextmanager
def stream(native: Native, query: str, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """Open a stream; yield its events as they arrive."""
    parts = urlsplit(native.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    sent = {"X-Auth-Token": native.secret, "Accept": EVENTS}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", f"/v1/watch?{query}", headers=sent)
    response = connection.getresponse()
    assert response.status == 200
    assert response.headers["content-type"] == EVENTS

    def events() -> Iterator[dict[str, str]]:
        event: dict[str, str] = {}
        while line := response.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                event[name] = value
            else:
                yield event
                event = {}

    yield events()
    connection.close()


def poll_all(native: Native, after: str, limit: int) -> tuple[list[dict[str, Any]], str]:
    """Long-poll all changes after a cursor, `limit` at a time; return them and the last cursor."""
    found: list[dict[str, Any]] = []
    while True:
        result = native.ask("GET", f"/v1/watch?after={after}&limit={limit}&wait=0").body
        found += result["changes"]
        if result["next"] == after:
            return found, after
        after = result["next"]


def stream_changes(native: Native, query: str, count: int, **headers: str) -> list[dict[str, Any]]:
    """Return the first `count` changes of a stream, each with its cursor."""
    found: list[dict[str, Any]] = []
    with stream(native, query, **headers) as events:
        while len(found) < count:
            event = next(events)
            if "data" in event:
                found.append({**json.loads(event["data"]), "cursor": event["id"]})
    return found


def test_long_poll_and_stream_agree(native: Native) -> None:
    """Both return every change once and in order, whatever the limit or cursor."""
    change_everything(native)
    whole, end = poll_all(native, "1.0", 500)
    assert {change["kind"] for change in whole} == set(VALUES) - ELSEWHERE
    (*_, consumer) = (one for one in whole if one["kind"] == "consumer")
    assert consumer["value"] is None
    for limit in (1, 3):
        assert poll_all(native, "1.0", limit) == (whole, end)
    for limit in (1, 3, 500):
        result = stream_changes(native, f"after=1.0&limit={limit}", len(whole))
        cursors = [change.pop("cursor") for change in result]
        assert result == whole
        assert cursors[-1] == end
    for n in (0, len(whole) // 2, len(whole) - 2):
        assert poll_all(native, cursors[n], 2) == (whole[n + 1 :], end)
        resumed = stream_changes(native, "after=1.0", len(whole) - n - 1, Last_Event_ID=cursors[n])
        assert [one["cursor"] for one in resumed] == cursors[n + 1 :]


def test_values_have_their_types(native: Native) -> None:
    """Each kind's value has exactly the members of its dataclass."""
    change_everything(native)
    seen = set()
    for result in poll_all(native, "1.0", 500)[0]:
        change: Change = change_decode(result)
        if result["value"] is not None:
            assert msgspec.to_builtins(change.value) == result["value"]
            assert isinstance(change.value, VALUES[change.kind])
            seen.add(change.kind)
    assert seen == set(VALUES) - ELSEWHERE


def test_values_have_the_form_of_other_responses(native: Native) -> None:
    """Times and durations in changes and audit rows have the same form as in other responses."""
    pacing = {"interval": 0.5, "burst": 2, "jitter": 0.25}
    wanted = {"limit": 3, "ttl": 90.5, "hold": 1200.0, "cooldown": 0.001, "pacing": pacing}
    after = native.ask("GET", "/v1/watch?wait=0").body["next"]
    pool = native.ask("PUT", "/v1/pools/told", wanted).body
    wish = {"needs": [{"pool": "told"}], "key": "told"}
    lease = native.ask("POST", "/v1/leases", wish).body
    native.ask("POST", "/resource_providers", {"name": "told"}, **LATEST)
    changes = native.ask("GET", f"/v1/watch?after={after}").body["changes"]
    (first, *_) = (one["value"] for one in changes if one["kind"] == "pool")
    spec = first.pop("spec")
    assert {name: pool[name] for name in spec} == spec
    assert spec["pacing"] == pacing
    assert (first["created_at"], first["updated_at"]) == (pool["created_at"], pool["updated_at"])
    (result,) = (one["value"] for one in changes if one["kind"] == "lease")
    assert (result["ttl"], result["hold"]) == (lease["ttl"], lease["hold"]) == (90.5, 1200.0)
    # Service time and the wall clock differ.
    for name in ("asked_at", "granted_at", "hold_until"):
        assert abs(seconds_between(result[name], lease[name])) < 2, name
    (provider,) = (one["value"] for one in changes if one["kind"] == "provider")
    assert 0 <= seconds_between(lease["asked_at"], provider["created_at"]) < 60
    entries = native.ask("GET", "/v1/audit?limit=1").body["entries"]
    assert (entries[0]["action"], entries[0]["before"]) == ("pool.put", None)
    assert entries[0]["after"] == spec


def test_no_audit_row_has_microseconds(native: Native) -> None:
    """Whatever the action: a duration of a day is 86,400."""
    change_everything(native)
    for entry in native.ask("GET", "/v1/audit?limit=500").body["entries"]:
        for state in (entry["before"], entry["after"]):
            raw = too_long(state) if isinstance(state, dict) else set()
            assert raw == set(), entry
    assert too_long({"ttl": 60_000_000}) == {"ttl"}


def too_long(state: dict[str, Any]) -> set[str]:
    """Return the durations of a state that are longer than any default."""
    names = STORED_IN_MICROSECONDS & state.keys()
    return {name for name in names if (state[name] or 0) > 10 * PROXY_TTL_SECONDS}


def seconds_between(one: str, other: str) -> float:
    """Return how much later the second time is; both are in UTC."""
    assert one[-1] == other[-1] == "Z"
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


def test_a_long_poll_waits_for_a_change(native: Native) -> None:
    """It is answered with the change as soon as there is one, or without any when time is up."""
    now = native.ask("GET", "/v1/watch?wait=0").body
    assert now["changes"] == []
    again = native.ask("GET", f"/v1/watch?after={now['next']}&wait=0.05").body
    assert again == now
    result: list[Any] = []
    path = f"/v1/watch?after={now['next']}&wait=30&kinds=provider"
    waiting = threading.Thread(target=lambda: result.append(native.ask("GET", path).body))
    waiting.start()
    native.ask("PUT", "/traits/CUSTOM_WAITED", **LATEST)
    uuid = native.provider("awaited")
    waiting.join()
    assert [change["key"] for change in result[0]["changes"]] == [uuid]


def test_a_stream_sends_each_change(native: Native) -> None:
    """A stream without a cursor starts now, sends that cursor, and then each change."""
    with stream(native, "kinds=provider,trait") as events:
        begun = next(events)
        assert set(begun) == {"id"}
        for n in range(3):
            uuid = native.provider(f"streamed-{n}")
            event = next(events)
            while "data" not in event:
                event = next(events)
            assert json.loads(event["data"])["key"] == uuid
    after = native.ask("GET", f"/v1/watch?after={begun['id']}&wait=0").body["changes"]
    assert len(after) == 3


@pytest.mark.parametrize("accept", ["application/json", EVENTS])
@pytest.mark.parametrize("after", ["2.0", "1.999999", "1.999999.3", "0.0"])
def test_cursors_of_another_history_are_gone(native: Native, accept: str, after: str) -> None:
    """410 names the oldest valid cursor, also for a stream."""
    result = native.ask("GET", f"/v1/watch?after={after}", Accept=accept)
    assert (result.status, result.body["code"], result.body["oldest"]) == (
        410,
        "changes_gone",
        "1.0",
    )
    assert result.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("after=x", "cursor"),
        ("after=1.1.1.1", "cursor"),
        ("kinds=provider,king", "king"),
        ("wait=61", "60"),
        ("wait=-1", "60"),
        ("wait=nan", "60"),
        ("limit=0", "1000"),
        ("limit=1001", "1000"),
        ("until=1.0", "until"),
    ],
)
def test_bad_queries_are_refused(native: Native, query: str, word: str) -> None:
    """400 names what is wrong."""
    result = native.ask("GET", f"/v1/watch?{query}")
    assert result.status == 400
    assert word in result.body["detail"]


def test_the_server_ends_its_streams_when_it_stops(tmp_path: Path) -> None:
    """Streams and long polls do not keep a stopping server alive; both end properly."""
    with serve(tmp_path / "ledger", "--no-access-log") as server:
        native = Native(server.url, tmp_path / "ledger")
        with stream(native, "") as events:
            next(events)
            parts = urlsplit(native.url)
            poll = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
            poll.request(
                "GET", "/v1/watch?wait=60&kinds=trait", headers={"X-Auth-Token": native.secret}
            )
            native.provider("seen by the stream")
            assert "data" in next(events)
            code = server.stop()
            rest = list(events)
        answer = poll.getresponse()
        assert (answer.status, json.loads(answer.read())["changes"]) == (200, [])
        poll.close()
    assert code == 0
    assert all("data" not in event for event in rest)
    assert not [line for line in server.said if "ERROR" in line or "Traceback" in line]


def test_cursors_from_before_a_restore(tmp_path: Path) -> None:
    """Cursors from before a restore are refused, because their changes may have been undone."""
    from tests.cli.command import answer

    database = tmp_path / "ledger"
    where = ["--database", f"sqlite:///{database}"]
    with serve(database, "--no-access-log") as server:
        native = Native(server.url, database)
        native.provider("kept")
        answer("db", "backup", str(tmp_path / "copy"), *where)
        native.provider("lost")
        cursor = native.ask("GET", "/v1/watch?wait=0").body["next"]
    assert cursor == "1.2"
    answer("db", "restore", str(tmp_path / "copy"), *where)
    with serve(database, "--no-access-log") as server:
        native = Native(server.url, database)
        gone = native.ask("GET", f"/v1/watch?after={cursor}")
        oldest = gone.body["oldest"]
        epoch, revision = map(int, oldest.split("."))
        assert gone.status == 410 and epoch > 1 and revision == 0
        whole, end = poll_all(native, oldest, 10)
        assert (len(whole), end) == (1, f"{epoch}.1")


@pytest.mark.parametrize("role", ["reader", "service"])
def test_a_revocation_ends_a_stream(native: Native, role: str) -> None:
    """Changes after the revocation are not sent: the stream ends with the reason."""
    secret = native.token(role)
    token = native.ask("GET", "/v1/tokens?limit=1000").body["tokens"][-1]["id"]
    with stream(native, "kinds=trait", X_Auth_Token=secret) as events:
        next(events)
        native.ask("PUT", f"/traits/CUSTOM_BEFORE_{role.upper()}", **LATEST)
        event = next(events)
        while "data" not in event:
            event = next(events)
        assert json.loads(event["data"])["key"] == f"CUSTOM_BEFORE_{role.upper()}"
        assert native.ask("DELETE", f"/v1/tokens/{token}").status == 204
        native.ask("PUT", f"/traits/CUSTOM_AFTER_{role.upper()}", **LATEST)
        rest = [one for one in events if "data" in one]
    (last,) = rest
    assert last["event"] == "problem"
    problem = json.loads(last["data"])
    assert (problem["status"], problem["code"]) == (401, "unauthenticated")


def test_a_revocation_ends_a_long_poll(native: Native) -> None:
    """Long polls of changes and of leases are answered with 401."""
    native.ask("PUT", "/v1/pools/polled", {"limit": 1})
    wish = {"needs": [{"pool": "polled"}], "key": "holder"}
    holder = native.ask("POST", "/v1/leases", wish).body["id"]
    secret = native.token("service", name="waiter")
    token = native.ask("GET", "/v1/tokens?limit=1000").body["tokens"][-1]["id"]
    ticket = native.ask("POST", "/v1/leases", {**wish, "key": "ticket"}, token=secret).body["id"]
    now = native.ask("GET", "/v1/watch?wait=0").body["next"]
    parts = urlsplit(native.url)
    waiting = []
    for path in (f"/v1/watch?after={now}&wait=30&kinds=trait", f"/v1/leases/{ticket}?wait=30"):
        poll = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=40)
        poll.request("GET", path, headers={"X-Auth-Token": secret})
        waiting.append(poll)
    # This is answered after those two requests, which were sent before: they wait by now.
    assert native.ask("GET", f"/v1/leases/{ticket}").body["state"] == "waiting"
    assert native.ask("DELETE", f"/v1/tokens/{token}").status == 204
    native.ask("PUT", "/traits/CUSTOM_POLLED", **LATEST)
    native.ask("DELETE", f"/v1/leases/{holder}")
    for poll in waiting:
        answer = poll.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (401, "unauthenticated")
        poll.close()
