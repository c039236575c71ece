"""The lease proxy for scripts: its responses, and clients that wait, disconnect or repeat."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.faces.boskos.boskos_server import (
    Answer,
    BoskosServer,
    error_answer,
    http_request,
    parse_answer,
    read_all,
    serve_boskos,
    success_answer,
)

JSON = "application/json"
WAIT_SECONDS = 15.0


@pytest.fixture(scope="module")
def boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Yield a server with slots, whose acquires give up after 2 seconds."""
    options = ("--lease-proxy-seconds-max", "2")
    with serve_boskos(tmp_path_factory.mktemp("proxy"), "safe", None, *options) as one:
        yield one


def acquire(boskos: BoskosServer, kind: str, count: int = 1) -> list[str]:
    """Acquire available leases; return their names."""
    answer = boskos.call("POST", f"/lease/acquire?type={kind}&count={count}")
    assert answer.status == 200, answer
    names: list[str] = json.loads(answer.body)["names"]
    return names


def release(boskos: BoskosServer, *names: str) -> Answer:
    """Release leases."""
    return boskos.call("POST", "/lease/release", json.dumps({"names": names}).encode())


def test_dynamic_types(tmp_path: Path) -> None:
    """A dynamic type makes slots for requests of the lease proxy and of the native API."""
    config = """resources:
- {type: None, min-count: 0, max-count: 3}
- {type: Worked, state: dirty, min-count: 1, max-count: 2}
"""
    options = ("--lease-proxy-seconds-max", "1")
    with serve_boskos(tmp_path, "safe", config, *options) as boskos:
        names = acquire(boskos, "None", 2)
        assert len(set(names)) == 2
        third = acquire(boskos, "None")
        assert boskos.call("POST", "/lease/acquire?type=None").status == 500
        assert boskos.call("POST", "/lease/acquire?type=None&count=4").status == 500
        assert release(boskos, *names, *third).status == 204
        needs = {"needs": [{"pool": "None", "units": 3}], "key": "native"}
        assert boskos.native("POST", "/v1/leases", needs)["state"] == "granted"
        assert boskos.native("GET", "/v1/pools/None")["slots"] == {"leased": 3}
        # New dirty slots must be cleaned first, and the maximum is never exceeded.
        assert boskos.call("POST", "/lease/acquire?type=Worked&count=2").status == 500
        assert boskos.native("GET", "/v1/pools/Worked")["slots"] == {"dirty": 2}
        changed = boskos.native("PUT", "/v1/pools/Worked", {"hold": 60, "pacing": None})
        assert changed["hold"] == 60


def waiting_count(boskos: BoskosServer, kind: str) -> int:
    """Return the number of requests that wait for a type."""
    waits: int = boskos.native("GET", f"/v1/pools/{kind}")["waiting"]
    return waits


def until_waiting(boskos: BoskosServer, kind: str, count: int) -> None:
    """Poll until this many requests wait."""
    end = monotonic() + WAIT_SECONDS
    while waiting_count(boskos, kind) != count:
        assert monotonic() < end, f"{waiting_count(boskos, kind)} requests wait"


def free_count(boskos: BoskosServer, kind: str) -> int:
    """Return the number of free slots of a type."""
    current = json.loads(boskos.call("GET", f"/metric?type={kind}", None).body)["current"]
    slots: int = current.get("free", 0)
    return slots


def test_acquire_and_release(boskos: BoskosServer) -> None:
    """Names are returned as JSON; a release has no body and may be repeated."""
    kind, names = boskos.new_type()
    answer = boskos.call("POST", f"/lease/acquire?type={kind}&count=2", None)
    assert answer == success_answer(f'{{"names":["{names[0]}","{names[1]}"]}}', JSON)
    assert acquire(boskos, kind) == [names[2]]
    for _ in range(2):
        assert release(boskos, *names) == Answer(204, {}, "")
    assert release(boskos) == boskos.call("POST", "/lease/release", b"{}") == Answer(204, {}, "")
    assert free_count(boskos, kind) == 3


def test_count_zero(boskos: BoskosServer) -> None:
    """A request for no units always succeeds, even of an unknown type."""
    assert boskos.call("POST", "/lease/acquire?type=nobody&count=0") == success_answer(
        '{"names":[]}', JSON
    )


@pytest.mark.parametrize("path", ["/lease/acquire?type=t0", "/lease/release"])
def test_other_methods(boskos: BoskosServer, path: str) -> None:
    """Only POST is accepted."""
    expected = error_answer(405, "Method GET not allowed, POST requests only.")
    assert boskos.call("GET", path, None) == expected


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", 400, "type is required"),
        ("?count=1", 400, "type is required"),
        ("?type=t0&count=-1", 400, 'parameter "count" is not valid: -1'),
        ("?type=t0&count=+1", 400, 'parameter "count" is not valid:  1'),
        ("?type=t0&count=1.5", 400, 'parameter "count" is not valid: 1.5'),
        (
            "?type=t0&count=18446744073709551616",
            400,
            'parameter "count" is not valid: 18446744073709551616',
        ),
        ("?type=no%22", 404, 'Failed to acquire lease "no\\"": resource type not found'),
    ],
)
def test_bad_queries(boskos: BoskosServer, query: str, status: int, text: str) -> None:
    """Errors have the text of the original service."""
    assert boskos.call("POST", f"/lease/acquire{query}") == error_answer(status, text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "malformed JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "the body must be a JSON object"),
        (b'{"names":["a"', "malformed JSON: Expecting ',' delimiter: line 1 column 14 (char 13)"),
        (b'{"names":"a"}', "names must be a list of strings"),
    ],
)
def test_bad_bodies(boskos: BoskosServer, body: bytes, text: str) -> None:
    """A body that is not a list of names is refused."""
    expected = error_answer(400, f"unmarshal request body: {text}")
    assert boskos.call("POST", "/lease/release", body) == expected


def test_other_paths(boskos: BoskosServer) -> None:
    """Other paths are not found; paths that are not clean are redirected."""
    assert boskos.call("POST", "/lease/other") == error_answer(404, "404 page not found")
    moved = {"location": "/lease/acquire?type=a", "content-length": "0"}
    assert boskos.call("POST", "/lease//acquire?type=a") == Answer(301, moved, "")


def test_a_failing_name(boskos: BoskosServer) -> None:
    """The first failure ends a release; names released before it are reported and stay free."""
    kind, names = boskos.new_type()
    acquire(boskos, kind, 3)
    text = "Failed to release lease nobody: no resource name nobody\nReleased: "
    assert release(boskos, "nobody", names[0]) == error_answer(500, text)
    assert free_count(boskos, kind) == 0
    assert release(boskos, *names[:2], "nobody", names[2]) == error_answer(
        500, text + " ".join(names[:2])
    )
    assert free_count(boskos, kind) == 2


def test_release_by_query(boskos: BoskosServer) -> None:
    """A name in the query, without a body, is also released."""
    kind, names = boskos.new_type()
    acquire(boskos, kind)
    assert boskos.call("POST", f"/lease/release?name={names[0]}") == Answer(204, {}, "")
    assert free_count(boskos, kind) == 3


def test_a_release_by_another_client_has_no_effect(boskos: BoskosServer) -> None:
    """A slot that has another holder stays with it, and the release succeeds."""
    kind, names = boskos.new_type()
    assert boskos.acquire(kind, "him") == names[0]
    assert release(boskos, names[0]) == Answer(204, {}, "")
    assert free_count(boskos, kind) == 2


def test_a_request_that_waits_too_long_fails(boskos: BoskosServer) -> None:
    """A request that cannot be served fails after the maximum wait, and occupies nothing."""
    kind, names = boskos.new_type()
    acquire(boskos, kind, 2)
    begun = monotonic()
    expected = error_answer(500, f'Failed to acquire lease "{kind}": resources not found')
    assert boskos.call("POST", f"/lease/acquire?type={kind}&count=2") == expected
    assert monotonic() - begun > 1.9
    assert (free_count(boskos, kind), waiting_count(boskos, kind)) == (1, 0)
    assert len(names) == 3


def test_more_units_than_a_type_can_have(boskos: BoskosServer) -> None:
    """A request for more units than a type can have fails at once."""
    kind, _ = boskos.new_type()
    begun = monotonic()
    answer = boskos.call("POST", f"/lease/acquire?type={kind}&count=4")
    assert answer.status == 500
    assert answer.body.startswith(f'Failed to acquire lease "{kind}": ')
    assert monotonic() - begun < 1.5


def test_requests_get_all_units_at_once(safe_boskos: BoskosServer) -> None:
    """Each request gets all of its units at once, so two requests cannot block each other."""
    kind, names = safe_boskos.new_type()
    (first,) = acquire(safe_boskos, kind)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(acquire(safe_boskos, kind, 2)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    until_waiting(safe_boskos, kind, 1)
    while not found:
        threads[0].join(0.01)
        threads[1].join(0.01)
    assert sorted(found[0]) == sorted(set(names) - {first})
    release(safe_boskos, first)
    assert waiting_count(safe_boskos, kind) == 1
    release(safe_boskos, *found[0])
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert len(found) == 2
    release(safe_boskos, *found[1])
    assert free_count(safe_boskos, kind) == 3


def start_acquire(boskos: BoskosServer, kind: str, count: int) -> socket.socket:
    """Send a request for leases without waiting for the response."""
    connection = boskos.connect()
    connection.sendall(http_request("POST", f"/lease/acquire?type={kind}&count={count}", b""))
    return connection


def test_a_disconnected_client_is_withdrawn(safe_boskos: BoskosServer) -> None:
    """A closed connection leaves the line at once, and the requests behind it are served."""
    kind, _ = safe_boskos.new_type()
    (first,) = acquire(safe_boskos, kind)
    gone = start_acquire(safe_boskos, kind, 3)
    until_waiting(safe_boskos, kind, 1)
    behind = start_acquire(safe_boskos, kind, 1)
    until_waiting(safe_boskos, kind, 2)
    gone.close()
    with behind:
        behind.shutdown(socket.SHUT_WR)
        until_waiting(safe_boskos, kind, 0)
    release(safe_boskos, first)
    until_free(safe_boskos, kind, 3)


def until_free(boskos: BoskosServer, kind: str, count: int) -> None:
    """Poll until this many slots are free."""
    end = monotonic() + WAIT_SECONDS
    while free_count(boskos, kind) != count:
        assert monotonic() < end, f"{free_count(boskos, kind)} are free"


CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
print("sent", flush=True)
connection.recv(1)
"""


def test_a_killed_client_is_withdrawn(safe_boskos: BoskosServer) -> None:
    """A waiting client that is killed leaves the line; nothing is granted to it later."""
    kind, _ = safe_boskos.new_type()
    names = acquire(safe_boskos, kind, 3)
    port = safe_boskos.url.rpartition(":")[2]
    raw = http_request("POST", f"/lease/acquire?type={kind}&count=2", b"").decode()
    words = [sys.executable, "-c", CLIENT, port, raw.encode("unicode_escape").decode()]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None and client.stdout.readline() == b"sent\n"
        until_waiting(safe_boskos, kind, 1)
        client.send_signal(signal.SIGKILL)
    until_waiting(safe_boskos, kind, 0)
    release(safe_boskos, *names)
    assert free_count(safe_boskos, kind) == 3


def test_a_pool_without_slots(safe_boskos: BoskosServer) -> None:
    """The names of units are the lease's id with a number, and are released one by one."""
    safe_boskos.native("PUT", "/v1/pools/units", {"limit": 3})
    names = acquire(safe_boskos, "units", 3)
    lease = names[0].rpartition(".")[0]
    assert names == [f"{lease}.{n}" for n in range(3)]

    def occupied() -> int:
        count: int = safe_boskos.native("GET", "/v1/pools/units")["occupied"]
        return count

    for _ in range(2):
        assert release(safe_boskos, names[1]).status == 204
        assert occupied() == 2
    assert release(safe_boskos, f"{lease}.3").status == 500
    assert release(safe_boskos, f"{lease}.01").status == 500
    assert release(safe_boskos, names[0], names[2]).status == 204
    assert occupied() == 0
    assert release(safe_boskos, *names).status == 204
    assert acquire(safe_boskos, "units", 3) != names


def test_the_native_api_sees_it(safe_boskos: BoskosServer) -> None:
    """Units of the proxy are a native lease without a TTL, which may be revoked."""
    kind, names = safe_boskos.new_type()
    acquire(safe_boskos, kind, 2)
    end = monotonic() + WAIT_SECONDS
    while True:  # until it is known that the names were read
        (lease,) = safe_boskos.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
        if lease["expires_at"] is None:
            break
        assert monotonic() < end, lease
    assert (lease["owner"], lease["slots"], lease["ttl"], lease["expires_at"]) == (
        "lease-proxy",
        {kind: names[:2]},
        None,
        None,
    )
    safe_boskos.native("POST", f"/v1/leases/{lease['id']}/revoke", {})
    assert free_count(safe_boskos, kind) == 3
    assert release(safe_boskos, *names).status == 204


def test_a_stopping_server_answers_waiting_requests(tmp_path: Path) -> None:
    """A server that stops answers waiting requests with 503 and leaves no ticket in the line."""
    with serve_boskos(tmp_path) as boskos:
        kind, names = boskos.new_type()
        acquire(boskos, kind, 3)
        with start_acquire(boskos, kind, 1) as connection:
            until_waiting(boskos, kind, 1)
            assert boskos.server.stop() == 0
            answer = parse_answer(read_all(connection))
            assert answer.status == 503, "scripts must repeat the request"
            assert answer.headers["retry-after"].isdigit()
    with serve_boskos(tmp_path) as boskos:
        assert waiting_count(boskos, kind) == 0
        assert release(boskos, *names).status == 204


def test_killed_while_somebody_waits(tmp_path: Path) -> None:
    """A lease that was granted but not returned, because the server was killed, expires."""
    with serve_boskos(tmp_path) as boskos:
        kind, names = boskos.new_type()
        acquire(boskos, kind, 3)
        with start_acquire(boskos, kind, 1):
            until_waiting(boskos, kind, 1)
            boskos.server.stop(signal.SIGKILL)
    with serve_boskos(tmp_path) as boskos:
        assert release(boskos, *names).status == 204
        (lease,) = boskos.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
        assert lease["expires_at"] is not None  # it expires, because no client knows it
