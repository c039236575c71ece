"""Behaviour for clients of Boskos: waiting, restarts, dynamic types, use with the native API."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.config import ConfigError
from moorage.config.settings import load
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import NotStarted, serve
from tests.faces.boskos.boskos_server import BoskosServer, error_answer, serve_boskos

WAIT_SECONDS = 15.0


def wait_until(condition: Callable[[], object]) -> None:
    """Check a condition repeatedly; fail if it does not become true in time."""
    eventually(lambda: condition() or None, WAIT_SECONDS)


def states_of_growing(boskos: BoskosServer) -> list[str]:
    """Return the states of the slots of the dynamic type `growing`."""
    answer = boskos.call("GET", "/metric?type=growing", None)
    if answer.status == 404:
        return []
    found = json.loads(answer.body)["current"]
    return [state for state, n in found.items() for _ in range(n)]


def test_priority_by_request_id(boskos: BoskosServer) -> None:
    """A request id keeps a place in the line; once served, the id starts at the end again."""
    kind, names = boskos.new_type()
    for _ in names:
        boskos.acquire(kind, "him")
    assert boskos.acquire(kind, request_id="id-1") is None
    boskos.release(names[0], "him")
    assert boskos.acquire(kind) is None
    assert boskos.acquire(kind, request_id="id-2") is None
    assert boskos.acquire(kind, request_id="id-1") == names[0]
    boskos.release(names[0])
    assert boskos.acquire(kind, request_id="id-1") is None
    assert boskos.acquire(kind, request_id="id-2") == names[0]


def test_round_robin(boskos: BoskosServer) -> None:
    """The resource that has been free for the longest time is next."""
    kind, names = boskos.new_type()
    seen = []
    for _ in range(6):
        name = boskos.acquire(kind)
        assert name is not None
        boskos.release(name)
        seen.append(name)
    assert seen == [*names, *names]


def test_dynamic_types(boskos: BoskosServer) -> None:
    """A dynamic type has its minimum at once, and grows with each new request id.

    When a slot is deleted for good, it is replaced for the tickets that wait; in strict mode only
    for requests with new ids.
    """
    kept = json.loads(boskos.call("GET", "/metric?type=kept", None).body)
    assert kept["current"] == {"free": 2}
    assert states_of_growing(boskos) == []
    words = {"type": "growing", "state": "free", "dest": "busy", "owner": "o"}
    first = boskos.post("/acquire", **words, request_id="id-1")
    assert first.status == 404
    assert states_of_growing(boskos) == ["dirty"]
    boskos.post("/acquire", **words, request_id="id-1")
    boskos.post("/acquire", **words)
    assert states_of_growing(boskos) == ["dirty"]
    boskos.post("/acquire", **words, request_id="id-2")
    boskos.post("/acquire", **words, request_id="id-3")
    assert states_of_growing(boskos) == ["dirty", "dirty"]
    name = boskos.acquire("growing", "cleaner", state="dirty", dest="cleaning")
    assert name is not None and re.fullmatch(r"[0-9a-f-]{36}", name)
    boskos.release(name, "cleaner", "free")
    answer = boskos.post("/acquire", **words, request_id="id-1")
    assert '"expiration-date":"' in answer.body
    assert boskos.post("/release", name=name, owner="o", dest="tombstone").status == 200
    left = ["dirty"] if boskos.strict else ["dirty", "dirty"]
    wait_until(lambda: states_of_growing(boskos) == left)


def test_an_empty_dynamic_type(boskos: BoskosServer) -> None:
    """Strict: a type without resources does not exist. Safe: the first request creates one."""
    words = {"type": "new", "state": "free", "dest": "busy", "owner": "o"}
    answer = boskos.post("/acquire", **words, request_id="id")
    if boskos.strict:
        text = 'Acquire failed: resource type "new" does not exist'
        assert answer == error_answer(404, text)
        answer = boskos.post("/acquire", **words, request_id="id")
    assert answer.status == 200


def test_a_lost_answer(safe_boskos: BoskosServer, strict_boskos: BoskosServer) -> None:
    """Safe: a repeated request returns the same resource. Strict: it returns another one."""
    kind, names = safe_boskos.new_type()
    assert [safe_boskos.acquire(kind, request_id="id") for _ in range(3)] == [names[0]] * 3
    kind, names = strict_boskos.new_type()
    assert [strict_boskos.acquire(kind, request_id="id") for _ in range(3)] == names


def test_acquire_by_state_with_a_missing_name(
    safe_boskos: BoskosServer, strict_boskos: BoskosServer
) -> None:
    """If a name is missing, strict keeps the others without reporting them; safe keeps none."""
    for boskos, held in ((strict_boskos, 1), (safe_boskos, 0)):
        kind, names = boskos.new_type()
        answer = boskos.post(
            "/acquirebystate", state="free", dest="d", owner="o", names=f"{names[0]},nobody"
        )
        text = "AcquireByState: no available resource free, try again later."
        assert answer == error_answer(404, text)
        owners = json.loads(boskos.call("GET", f"/metric?type={kind}", None).body)["owner"]
        assert owners.get("o", 0) == held


def test_a_resource_is_a_native_lease(boskos: BoskosServer) -> None:
    """An acquired resource is a native lease of its owner that can be revoked.

    Native leases of others cannot be changed through Boskos.
    """
    kind, names = boskos.new_type()
    assert boskos.acquire(kind, "me", dest="cleaning") == names[0]
    leases = boskos.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
    assert [(one["owner"], one["slots"]) for one in leases] == [("boskos:me", {kind: [names[0]]})]
    path = f"/v1/leases/{leases[0]['id']}"
    wait_until(lambda: boskos.native("GET", path)["expires_at"] is None)  # it has been read
    boskos.native("POST", f"/v1/leases/{leases[0]['id']}/revoke", {"reason": "maintenance"})
    metric = json.loads(boskos.call("GET", f"/metric?type={kind}", None).body)
    assert metric["owner"] == {"": 3}
    assert boskos.post("/update", name=names[0], owner="me", state="cleaning").status == 401
    body = {"needs": [{"pool": kind, "units": 2}], "key": f"native-{kind}"}
    lease = boskos.native("POST", "/v1/leases", body)
    held = lease["slots"][kind]
    metric = json.loads(boskos.call("GET", f"/metric?type={kind}", None).body)
    assert metric["current"] == {"free": 1, "leased": 2}
    owner = next(name for name in metric["owner"] if name)
    assert boskos.post("/release", name=held[0], owner=owner, dest="free").status == 401
    assert boskos.native("GET", f"/v1/leases/{lease['id']}")["slots"] == {kind: held}
    boskos.native("DELETE", f"/v1/leases/{lease['id']}")
    metric = json.loads(boskos.call("GET", f"/metric?type={kind}", None).body)
    assert metric["owner"] == {"": 3}


def test_a_paused_pool(boskos: BoskosServer) -> None:
    """A paused pool is no error for clients: nothing is available."""
    kind, names = boskos.new_type()
    boskos.native("POST", f"/v1/pools/{kind}:pause")
    assert boskos.acquire(kind) is None
    assert boskos.acquire(kind, request_id="id") is None
    boskos.native("POST", f"/v1/pools/{kind}:resume")
    assert boskos.acquire(kind, request_id="id") == names[0]


def test_metrics(boskos: BoskosServer) -> None:
    """Resources are counted by known states, others as `other`; acquire times are measured."""
    kind, names = boskos.new_type()
    boskos.acquire(kind, request_id="id", dest="busy")
    boskos.acquire(kind, dest="my own state")
    response = boskos.metrics()
    expected = {"busy": 1, "free": 1, "other": 1}
    for state in (
        "busy",
        "cleaning",
        "dirty",
        "free",
        "leased",
        "toBeDeleted",
        "tombstone",
        "other",
    ):
        count = float(expected.get(state, 0))
        assert f'boskos_resources{{state="{state}",type="{kind}"}} {count}\n' in response
    words = f'dest="busy",has_request_id="true",le="1",state="free",type="{kind}"'
    assert f"boskos_acquire_duration_seconds_bucket{{{words}}} 1.0\n" in response
    assert f'has_request_id="false",state="free",type="{kind}"}} 1.0\n' in response
    assert len(names) == 3


def test_killed_and_started_again(tmp_path: Path) -> None:
    """Safe: after SIGKILL resources keep their owners, and tickets their order."""
    with serve_boskos(tmp_path) as boskos:
        kind, names = boskos.new_type()
        for _ in names:
            boskos.acquire(kind, "him")
        for n in (1, 2, 3):
            assert boskos.acquire(kind, request_id=f"id-{n}") is None
        boskos.server.stop(signal.SIGKILL)
    with serve_boskos(tmp_path) as boskos:
        for name in names[:2]:
            boskos.release(name, "him")
        assert boskos.acquire(kind, request_id="id-3") is None
        assert boskos.acquire(kind, request_id="id-2") is not None
        assert boskos.acquire(kind, request_id="id-3") is None
        assert boskos.acquire(kind, request_id="id-1") is not None
        boskos.release(names[2], "him")
        assert boskos.acquire(kind, request_id="id-3") is not None


def test_configuration_is_followed(tmp_path: Path) -> None:
    """A changed file is applied; an invalid or missing one changes nothing and is logged."""
    file = tmp_path / "boskos.yaml"

    def states(boskos: BoskosServer, kind: str) -> dict[str, int]:
        answer = boskos.call("GET", f"/metric?type={kind}", None)
        found: dict[str, int] = json.loads(answer.body)["current"] if answer.status == 200 else {}
        return found

    with serve_boskos(tmp_path, "safe", "resources:\n- {type: a, names: [one, two]}\n") as boskos:
        assert boskos.acquire("a", "me") == "one"
        file.write_text("resources:\n- {type: a, names: [UPPER]}\n")
        wait_until(
            lambda: any(".0.names.0(UPPER) is invalid" in line for line in boskos.server.said)
        )
        assert states(boskos, "a") == {"busy": 1, "free": 1}
        file.write_text("resources:\n- {type: b, names: [two, three]}\n")
        wait_until(lambda: states(boskos, "b") == {"free": 2})
        assert states(boskos, "a") == {"busy": 1}
        boskos.release("one")
        wait_until(lambda: states(boskos, "a") == {})
        assert boskos.post("/acquire", type="a", state="free", dest="d", owner="o").status == 404
        file.unlink()
        wait_until(lambda: any("stays in force" in line for line in boskos.server.said))
        assert states(boskos, "b") == {"free": 2}
        file.write_text("resources:\n- {type: b, names: [two, three, four]}\n")
        wait_until(lambda: states(boskos, "b") == {"free": 3})
        assert sum("stays in force" in line for line in boskos.server.said) == 1


def test_bad_configuration_at_the_start(tmp_path: Path) -> None:
    """A server does not start with an invalid configuration, and says all that is wrong with it.

    tests/service/compat/test_boskos_config.py has the messages of other files.
    """
    problems = "[.0.type: must be set, .0.names.1(a) is a duplicate]"
    try:
        with serve_boskos(tmp_path, "safe", "resources:\n- {names: [a, a]}\n"):
            raise AssertionError("the server has started")
    except NotStarted as error:
        assert f"{tmp_path}/boskos.yaml: {problems}" in str(error)


def test_only_on_loopback(tmp_path: Path) -> None:
    """Boskos does not authenticate its clients, so other addresses must be permitted explicitly."""
    try:
        with serve_boskos(tmp_path, "safe", None, "--boskos-listen", "0.0.0.0:0"):
            raise AssertionError("the server has started")
    except NotStarted as error:
        assert "boskos_listen: Boskos does not authenticate its clients" in str(error)
    with serve_boskos(
        tmp_path, "safe", None, "--boskos-listen", "0.0.0.0:0", "--insecure-boskos"
    ) as boskos:
        assert boskos.acquire("t0") is not None


def test_settings_that_need_each_other(tmp_path: Path) -> None:
    """A configuration without an address to serve it on is an error."""
    with pytest.raises(NotStarted, match="boskos_config: needs boskos_listen"):
        serve(tmp_path / "m.sqlite", "--boskos-config", "boskos.yaml")
    with pytest.raises(ConfigError, match="boskos_listen: 'nowhere' is not HOST:PORT"):
        load({"boskos_listen": "nowhere"}, {})


def test_requests_with_other_host_names_are_refused(boskos: BoskosServer) -> None:
    """DNS rebinding must not let a page in a browser reach a port on the loopback address."""
    with boskos.connect() as connection:
        connection.sendall(b"POST /acquire HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 421 ")
