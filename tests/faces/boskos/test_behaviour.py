"""What clients of Boskos live through: waiting, new starts, growing types, two faces at once."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from moorage.config import load
from moorage.config.errors import ConfigError
from tests.e2e.support.server import NotStarted
from tests.faces.boskos.ground import Ground, ground, refused

WAIT_SECONDS = 15.0


def until(condition: Callable[[], object]) -> None:
    """Ask again and again until something is so; it is a failure if it does not become so."""
    end = monotonic() + WAIT_SECONDS
    while not condition():
        assert monotonic() < end, "it did not come to that"


def growing(there: Ground) -> list[str]:
    """The states of the slots of the growing type."""
    answer = there.call("GET", "/metric?type=growing", None)
    if answer.status == 404:
        return []
    found = json.loads(answer.body)["current"]
    return [state for state, n in found.items() for _ in range(n)]


def test_priority_by_request_id(there: Ground) -> None:
    """Who waits with a request id is served before others, and once served is behind them."""
    kind, names = there.own()
    for _ in names:
        there.acquire(kind, "him")
    assert there.acquire(kind, request_id="id-1") is None
    there.release(names[0], "him")
    assert there.acquire(kind) is None
    assert there.acquire(kind, request_id="id-2") is None
    assert there.acquire(kind, request_id="id-1") == names[0]
    there.release(names[0])
    assert there.acquire(kind, request_id="id-1") is None
    assert there.acquire(kind, request_id="id-2") == names[0]


def test_round_robin(there: Ground) -> None:
    """The resource that has rested longest is the next."""
    kind, names = there.own()
    seen = []
    for _ in range(6):
        name = there.acquire(kind)
        assert name is not None
        there.release(name)
        seen.append(name)
    assert seen == [*names, *names]


def test_growing_types(there: Ground) -> None:
    """A dynamic type makes its least at once, and more for each new request id.

    When one is buried, others wait: strict, these must ask once more with new ids.
    """
    kept = json.loads(there.call("GET", "/metric?type=kept", None).body)
    assert kept["current"] == {"free": 2}
    assert growing(there) == []
    words = {"type": "growing", "state": "free", "dest": "busy", "owner": "o"}
    first = there.post("/acquire", **words, request_id="id-1")
    assert first.status == 404
    assert growing(there) == ["dirty"]
    there.post("/acquire", **words, request_id="id-1")
    there.post("/acquire", **words)
    assert growing(there) == ["dirty"]
    there.post("/acquire", **words, request_id="id-2")
    there.post("/acquire", **words, request_id="id-3")
    assert growing(there) == ["dirty", "dirty"]
    name = there.acquire("growing", "cleaner", state="dirty", dest="cleaning")
    assert name is not None and re.fullmatch(r"[0-9a-f-]{36}", name)
    there.release(name, "cleaner", "free")
    answer = there.post("/acquire", **words, request_id="id-1")
    assert '"expiration-date":"' in answer.body
    assert there.post("/release", name=name, owner="o", dest="tombstone").status == 200
    left = ["dirty"] if there.strict else ["dirty", "dirty"]
    until(lambda: growing(there) == left)


def test_empty_growing_type(tmp_path: Path) -> None:
    """Strict: no resources, no such type. Safe: the first request makes one, and is served."""
    more = "- type: new\n  min-count: 0\n  max-count: 1\n"
    for compat in ("strict", "safe"):
        folder = tmp_path / compat
        folder.mkdir()
        with ground(folder, compat, "resources:\n" + more) as there:
            words = {"type": "new", "state": "free", "dest": "busy", "owner": "o"}
            answer = there.post("/acquire", **words, request_id="id")
            if compat == "strict":
                text = 'Acquire failed: resource type "new" does not exist'
                assert answer == refused(404, text)
                answer = there.post("/acquire", **words, request_id="id")
            assert answer.status == 200


def test_a_lost_answer(safely: Ground, strictly: Ground) -> None:
    """Safe: a repeated request gets the same resource. Strict: it gets another one."""
    kind, names = safely.own()
    assert [safely.acquire(kind, request_id="id") for _ in range(3)] == [names[0]] * 3
    kind, names = strictly.own()
    assert [strictly.acquire(kind, request_id="id") for _ in range(3)] == names


def test_partly_by_state(safely: Ground, strictly: Ground) -> None:
    """When a name is missing, strict keeps what it could have, unsaid; safe has nothing."""
    for there, held in ((strictly, 1), (safely, 0)):
        kind, names = there.own()
        answer = there.post(
            "/acquirebystate", state="free", dest="d", owner="o", names=f"{names[0]},nobody"
        )
        text = "AcquireByState: no available resource free, try again later."
        assert answer == refused(404, text)
        owners = json.loads(there.call("GET", f"/metric?type={kind}", None).body)["owner"]
        assert owners.get("o", 0) == held


def test_one_lease_in_both_faces(there: Ground) -> None:
    """A held resource is a live lease of its owner, and revoking that frees it; the native leases
    of others stay out of reach.
    """
    kind, names = there.own()
    assert there.acquire(kind, "me", dest="cleaning") == names[0]
    leases = there.native("GET", f"/v1/leases?pool={kind}&state=granted")["leases"]
    assert [(one["owner"], one["slots"]) for one in leases] == [("boskos:me", {kind: [names[0]]})]
    assert leases[0]["expires_at"] is None
    there.native("POST", f"/v1/leases/{leases[0]['id']}/revoke", {"reason": "maintenance"})
    metric = json.loads(there.call("GET", f"/metric?type={kind}", None).body)
    assert metric["owner"] == {"": 3}
    assert there.post("/update", name=names[0], owner="me", state="cleaning").status == 401
    body = {"needs": [{"pool": kind, "units": 2}], "key": f"native-{kind}"}
    lease = there.native("POST", "/v1/leases", body)
    held = lease["slots"][kind]
    metric = json.loads(there.call("GET", f"/metric?type={kind}", None).body)
    assert metric["current"] == {"free": 1, "leased": 2}
    owner = next(name for name in metric["owner"] if name)
    assert there.post("/release", name=held[0], owner=owner, dest="free").status == 401
    assert there.native("GET", f"/v1/leases/{lease['id']}")["slots"] == {kind: held}
    there.native("DELETE", f"/v1/leases/{lease['id']}")
    metric = json.loads(there.call("GET", f"/metric?type={kind}", None).body)
    assert metric["owner"] == {"": 3}


def test_a_paused_pool(there: Ground) -> None:
    """What an operator forbids is no error to clients: nothing is available."""
    kind, names = there.own()
    there.native("POST", f"/v1/pools/{kind}:pause")
    assert there.acquire(kind) is None
    assert there.acquire(kind, request_id="id") is None
    there.native("POST", f"/v1/pools/{kind}:resume")
    assert there.acquire(kind, request_id="id") == names[0]


def test_metrics(there: Ground) -> None:
    """Resources by known states, all of them, others under one name; how long was waited."""
    kind, names = there.own()
    there.acquire(kind, request_id="id", dest="busy")
    there.acquire(kind, dest="my own state")
    told = there.metrics()
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
        assert f'boskos_resources{{state="{state}",type="{kind}"}} {count}\n' in told
    words = f'dest="busy",has_request_id="true",le="1",state="free",type="{kind}"'
    assert f"boskos_acquire_duration_seconds_bucket{{{words}}} 1.0\n" in told
    assert f'has_request_id="false",state="free",type="{kind}"}} 1.0\n' in told
    assert len(names) == 3


def test_killed_and_started_again(tmp_path: Path) -> None:
    """Safe: after kill -9 resources are whose they were, and waiting clients in their order."""
    with ground(tmp_path) as there:
        kind, names = there.own()
        for _ in names:
            there.acquire(kind, "him")
        for n in (1, 2, 3):
            assert there.acquire(kind, request_id=f"id-{n}") is None
        there.server.stop(signal.SIGKILL)
    with ground(tmp_path) as there:
        for name in names[:2]:
            there.release(name, "him")
        assert there.acquire(kind, request_id="id-3") is None
        assert there.acquire(kind, request_id="id-2") is not None
        assert there.acquire(kind, request_id="id-3") is None
        assert there.acquire(kind, request_id="id-1") is not None
        there.release(names[2], "him")
        assert there.acquire(kind, request_id="id-3") is not None


def test_configuration_is_followed(tmp_path: Path) -> None:
    """A changed file is applied; one that is of no use, or away, changes nothing, and is logged."""
    file = tmp_path / "boskos.yaml"

    def states(there: Ground, kind: str) -> dict[str, int]:
        answer = there.call("GET", f"/metric?type={kind}", None)
        found: dict[str, int] = json.loads(answer.body)["current"] if answer.status == 200 else {}
        return found

    with ground(tmp_path, "safe", "resources:\n- {type: a, names: [one, two]}\n") as there:
        assert there.acquire("a", "me") == "one"
        file.write_text("resources:\n- {type: a, names: [UPPER]}\n")
        until(lambda: any(".0.names.0(UPPER) is invalid" in line for line in there.server.said))
        assert states(there, "a") == {"busy": 1, "free": 1}
        file.write_text("resources:\n- {type: b, names: [two, three]}\n")
        until(lambda: states(there, "b") == {"free": 2})
        assert states(there, "a") == {"busy": 1}
        there.release("one")
        until(lambda: states(there, "a") == {})
        assert there.post("/acquire", type="a", state="free", dest="d", owner="o").status == 404
        file.unlink()
        until(lambda: any("stays in force" in line for line in there.server.said))
        assert states(there, "b") == {"free": 2}
        file.write_text("resources:\n- {type: b, names: [two, three, four]}\n")
        until(lambda: states(there, "b") == {"free": 3})
        assert sum("stays in force" in line for line in there.server.said) == 1


def test_bad_configuration_at_the_start(tmp_path: Path) -> None:
    """A server does not start with a configuration that cannot be used."""
    for text, reason in (
        ("resources: []\n", "empty config"),
        ("resources: [\n", "it is not YAML"),
        ("resources:\n- {names: [a, a]}\n", "[.0.type: must be set, .0.names.1(a) is a duplicate]"),
    ):
        try:
            with ground(tmp_path, "safe", text):
                raise AssertionError("it has started")
        except NotStarted as said:
            assert f"{tmp_path}/boskos.yaml: {reason}" in str(said)


def test_only_on_loopback(tmp_path: Path) -> None:
    """Boskos does not authenticate its clients, so other addresses must be permitted."""
    try:
        with ground(tmp_path, "safe", None, "--boskos-listen", "0.0.0.0:0"):
            raise AssertionError("it has started")
    except NotStarted as said:
        assert "boskos_listen: Boskos does not authenticate its clients" in str(said)
    with ground(
        tmp_path, "safe", None, "--boskos-listen", "0.0.0.0:0", "--insecure-boskos"
    ) as there:
        assert there.acquire("t0") is not None


def test_settings_that_go_together() -> None:
    """A configuration that nobody would be served with is a mistake."""
    with pytest.raises(ConfigError, match="boskos_config: needs boskos_listen"):
        load({"boskos_config": "boskos.yaml"}, {})
    with pytest.raises(ConfigError, match="boskos_listen: 'nowhere' is not HOST:PORT"):
        load({"boskos_listen": "nowhere"}, {})


def test_names_of_other_hosts(there: Ground) -> None:
    """A page in a browser cannot reach what listens on this machine alone by a name of its own."""
    with there.connect() as connection:
        connection.sendall(b"POST /acquire HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 421 ")
