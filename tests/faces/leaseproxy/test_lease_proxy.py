"""The lease proxy for scripts: every answer, and what those need who wait, vanish or come again."""

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

from tests.faces.boskos.ground import (
    Answer,
    Ground,
    answer_of,
    ground,
    received,
    refused,
    said,
    spelled,
)

JSON = "application/json"
WAIT_SECONDS = 15.0


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A server with slots, whose acquires give up after 2 seconds."""
    options = ("--lease-proxy-seconds-max", "2")
    with ground(tmp_path_factory.mktemp("proxy"), "safe", None, *options) as one:
        yield one


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A server whose acquires wait for long."""
    with ground(tmp_path_factory.mktemp("patient")) as one:
        yield one


def acquire(there: Ground, kind: str, count: int = 1) -> list[str]:
    """Acquire leases that are to be had."""
    answer = there.call("POST", f"/lease/acquire?type={kind}&count={count}")
    assert answer.status == 200, answer
    names: list[str] = json.loads(answer.body)["names"]
    return names


def release(there: Ground, *names: str) -> Answer:
    """Release leases."""
    return there.call("POST", "/lease/release", json.dumps({"names": names}).encode())


def test_growing_types(tmp_path: Path) -> None:
    """A type that may have more slots makes them for whoever waits, through either door."""
    config = """resources:
- {type: None, min-count: 0, max-count: 3}
- {type: Worked, state: dirty, min-count: 1, max-count: 2}
"""
    options = ("--lease-proxy-seconds-max", "1")
    with ground(tmp_path, "safe", config, *options) as there:
        names = acquire(there, "None", 2)
        assert len(set(names)) == 2
        third = acquire(there, "None")
        assert there.call("POST", "/lease/acquire?type=None").status == 500
        assert there.call("POST", "/lease/acquire?type=None&count=4").status == 500
        assert release(there, *names, *third).status == 204
        needs = {"needs": [{"pool": "None", "units": 3}], "key": "native"}
        assert there.native("POST", "/v1/leases", needs)["state"] == "granted"
        assert there.native("GET", "/v1/pools/None")["slots"] == {"leased": 3}
        # What comes dirty must be cleaned first; nobody makes more than there may be.
        assert there.call("POST", "/lease/acquire?type=Worked&count=2").status == 500
        assert there.native("GET", "/v1/pools/Worked")["slots"] == {"dirty": 2}
        changed = there.native("PUT", "/v1/pools/Worked", {"hold": 60, "pacing": None})
        assert changed["hold"] == 60


def waiting(there: Ground, kind: str) -> int:
    """How many wait for a type."""
    waits: int = there.native("GET", f"/v1/pools/{kind}")["waiting"]
    return waits


def until_waiting(there: Ground, kind: str, count: int) -> None:
    """Ask until so many wait."""
    end = monotonic() + WAIT_SECONDS
    while waiting(there, kind) != count:
        assert monotonic() < end, f"{waiting(there, kind)} wait"


def free(there: Ground, kind: str) -> int:
    """How many slots of a type are free."""
    current = json.loads(there.call("GET", f"/metric?type={kind}", None).body)["current"]
    slots: int = current.get("free", 0)
    return slots


def test_acquire_and_release(there: Ground) -> None:
    """Names as JSON; a release says nothing, once or twice, and leaves the slots free."""
    kind, names = there.own()
    answer = there.call("POST", f"/lease/acquire?type={kind}&count=2", None)
    assert answer == said(f'{{"names":["{names[0]}","{names[1]}"]}}', JSON)
    assert acquire(there, kind) == [names[2]]
    for _ in range(2):
        assert release(there, *names) == Answer(204, {}, "")
    assert release(there) == there.call("POST", "/lease/release", b"{}") == Answer(204, {}, "")
    assert free(there, kind) == 3


def test_count_zero(there: Ground) -> None:
    """Nothing of anything is always to be had."""
    assert there.call("POST", "/lease/acquire?type=nobody&count=0") == said('{"names":[]}', JSON)


@pytest.mark.parametrize("path", ["/lease/acquire?type=t0", "/lease/release"])
def test_other_methods(there: Ground, path: str) -> None:
    """Only POST."""
    expected = refused(405, "Method GET not allowed, POST requests only.")
    assert there.call("GET", path, None) == expected


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
def test_bad_queries(there: Ground, query: str, status: int, text: str) -> None:
    """What is wrong is told in the words of the original."""
    assert there.call("POST", f"/lease/acquire{query}") == refused(status, text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "malformed JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "the body must be a JSON object"),
        (b'{"names":["a"', "malformed JSON: Expecting ',' delimiter: line 1 column 14 (char 13)"),
        (b'{"names":"a"}', "names must be a list of strings"),
    ],
)
def test_bad_bodies(there: Ground, body: bytes, text: str) -> None:
    """A body that is no list of names is refused."""
    expected = refused(400, f"unmarshal request body: {text}")
    assert there.call("POST", "/lease/release", body) == expected


def test_other_paths(there: Ground) -> None:
    """Nothing else is here; untidy addresses are tidied up."""
    assert there.call("POST", "/lease/other") == refused(404, "404 page not found")
    moved = {"location": "/lease/acquire?type=a", "content-length": "0"}
    assert there.call("POST", "/lease//acquire?type=a") == Answer(301, moved, "")


def test_a_failing_name(there: Ground) -> None:
    """The first failure ends a release; those before it are told, and stay released."""
    kind, names = there.own()
    acquire(there, kind, 3)
    text = "Failed to release lease nobody: no resource name nobody\nReleased: "
    assert release(there, "nobody", names[0]) == refused(500, text)
    assert free(there, kind) == 0
    assert release(there, *names[:2], "nobody", names[2]) == refused(
        500, text + " ".join(names[:2])
    )
    assert free(there, kind) == 2


def test_the_first_clients_way(there: Ground) -> None:
    """A name in the query, without a body, is released, too."""
    kind, names = there.own()
    acquire(there, kind)
    assert there.call("POST", f"/lease/release?name={names[0]}") == Answer(204, {}, "")
    assert free(there, kind) == 3


def test_somebody_elses(there: Ground) -> None:
    """What somebody else holds by now is not taken from them, and that is no failure."""
    kind, names = there.own()
    assert there.acquire(kind, "him") == names[0]
    assert release(there, names[0]) == Answer(204, {}, "")
    assert free(there, kind) == 2


def test_time_over(there: Ground) -> None:
    """Who waits in vain is told so after the time that is set, and holds nothing."""
    kind, names = there.own()
    acquire(there, kind, 2)
    begun = monotonic()
    expected = refused(500, f'Failed to acquire lease "{kind}": resources not found')
    assert there.call("POST", f"/lease/acquire?type={kind}&count=2") == expected
    assert monotonic() - begun > 1.9
    assert (free(there, kind), waiting(there, kind)) == (1, 0)
    assert len(names) == 3


def test_more_than_there_are(there: Ground) -> None:
    """Nobody waits for more than there will ever be."""
    kind, _ = there.own()
    begun = monotonic()
    answer = there.call("POST", f"/lease/acquire?type={kind}&count=4")
    assert answer.status == 500
    assert answer.body.startswith(f'Failed to acquire lease "{kind}": ')
    assert monotonic() - begun < 1.5


def test_all_at_once(patient: Ground) -> None:
    """Two that want two of three never hold one each: one is served, then the other."""
    kind, names = patient.own()
    (first,) = acquire(patient, kind)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append(acquire(patient, kind, 2))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    until_waiting(patient, kind, 1)
    while not found:
        threads[0].join(0.01)
        threads[1].join(0.01)
    assert sorted(found[0]) == sorted(set(names) - {first})
    release(patient, first)
    assert waiting(patient, kind) == 1
    release(patient, *found[0])
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert len(found) == 2
    release(patient, *found[1])
    assert free(patient, kind) == 3


def hanging(there: Ground, kind: str, count: int) -> socket.socket:
    """Ask for leases and do not wait for the answer."""
    connection = there.connect()
    connection.sendall(spelled("POST", f"/lease/acquire?type={kind}&count={count}", b""))
    return connection


def test_who_goes_away_is_withdrawn(patient: Ground) -> None:
    """A closed connection is out of the line at once, and those behind it are served."""
    kind, _ = patient.own()
    (first,) = acquire(patient, kind)
    gone = hanging(patient, kind, 3)
    until_waiting(patient, kind, 1)
    behind = hanging(patient, kind, 1)
    until_waiting(patient, kind, 2)
    gone.close()
    with behind:
        behind.shutdown(socket.SHUT_WR)
        until_waiting(patient, kind, 0)
    release(patient, first)
    until_free(patient, kind, 3)


def until_free(there: Ground, kind: str, count: int) -> None:
    """Ask until so many slots are free."""
    end = monotonic() + WAIT_SECONDS
    while free(there, kind) != count:
        assert monotonic() < end, f"{free(there, kind)} are free"


CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
print("sent", flush=True)
connection.recv(1)
"""


def test_a_killed_client_is_withdrawn(patient: Ground) -> None:
    """SIGKILL of a waiting client takes it out of the line; nothing is granted to it later."""
    kind, _ = patient.own()
    names = acquire(patient, kind, 3)
    port = patient.url.rpartition(":")[2]
    raw = spelled("POST", f"/lease/acquire?type={kind}&count=2", b"").decode()
    words = [sys.executable, "-c", CLIENT, port, raw.encode("unicode_escape").decode()]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None and client.stdout.readline() == b"sent\n"
        until_waiting(patient, kind, 1)
        client.send_signal(signal.SIGKILL)
    until_waiting(patient, kind, 0)
    release(patient, *names)
    assert free(patient, kind) == 3


def test_a_pool_without_slots(patient: Ground) -> None:
    """Units without names are called by their lease, and are given back one by one."""
    patient.native("PUT", "/v1/pools/units", {"limit": 3})
    names = acquire(patient, "units", 3)
    lease = names[0].rpartition(".")[0]
    assert names == [f"{lease}.{n}" for n in range(3)]

    def occupied() -> int:
        count: int = patient.native("GET", "/v1/pools/units")["occupied"]
        return count

    for _ in range(2):
        assert release(patient, names[1]).status == 204
        assert occupied() == 2
    assert release(patient, f"{lease}.3").status == 500
    assert release(patient, f"{lease}.01").status == 500
    assert release(patient, names[0], names[2]).status == 204
    assert occupied() == 0
    assert release(patient, *names).status == 204
    assert acquire(patient, "units", 3) != names


def test_the_native_api_sees_it(patient: Ground) -> None:
    """What the proxy gives out is a live lease without a TTL, and may be revoked."""
    kind, names = patient.own()
    acquire(patient, kind, 2)
    (lease,) = patient.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
    assert (lease["owner"], lease["slots"], lease["ttl"], lease["expires_at"]) == (
        "lease-proxy",
        {kind: names[:2]},
        None,
        None,
    )
    patient.native("POST", f"/v1/leases/{lease['id']}/revoke", {})
    assert free(patient, kind) == 3
    assert release(patient, *names).status == 204


def test_stopping_lets_go(tmp_path: Path) -> None:
    """A server that is told to end answers who waits, and leaves nobody in the line."""
    with ground(tmp_path) as there:
        kind, names = there.own()
        acquire(there, kind, 3)
        with hanging(there, kind, 1) as connection:
            until_waiting(there, kind, 1)
            assert there.server.stop() == 0
            answer = answer_of(received(connection))
            assert answer.status == 503, "scripts repeat it"
            assert answer.headers["retry-after"].isdigit()
    with ground(tmp_path) as there:
        assert waiting(there, kind) == 0
        assert release(there, *names).status == 204


def test_killed_while_somebody_waits(tmp_path: Path) -> None:
    """What a client was not told of, because the server was killed, ends by itself."""
    with ground(tmp_path) as there:
        kind, names = there.own()
        acquire(there, kind, 3)
        with hanging(there, kind, 1):
            until_waiting(there, kind, 1)
            there.server.stop(signal.SIGKILL)
    with ground(tmp_path) as there:
        assert release(there, *names).status == 204
        (lease,) = there.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
        assert lease["expires_at"] is not None  # so it ends, though nobody knows of it
