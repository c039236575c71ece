"""The port of Boskos against people who have no business there, and mistakes of those who have."""

import json
import os
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from moorage.config import load
from moorage.config.errors import ConfigError
from moorage.serve.boskos import STRANGE_LENGTH_MAX, STRANGE_MAX, passwords_read
from tests.e2e.support.server import NotStarted
from tests.faces.boskos.ground import Answer, Ground, empty, ground, refused

WRONG = refused(403, "HTTP Basic credentials are missing or wrong.")
SECONDS_MAX = 0.3
"""Far more than any answer here takes, and half of what one long body once took."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A server as it is by default."""
    with ground(tmp_path_factory.mktemp("strangers")) as one:
        yield one


def native_lease(there: Ground, kind: str, **more: Any) -> dict[str, Any]:
    """Hold one slot by a native lease."""
    wanted = {"needs": [{"pool": kind, "units": 1}], "key": f"native-{kind}", "ttl": 1, **more}
    found: dict[str, Any] = there.native("POST", "/v1/leases", wanted)
    assert found["state"] == "granted"
    return found


def audit(there: Ground) -> list[dict[str, Any]]:
    """Return the audit entries, the oldest first."""
    entries: list[dict[str, Any]] = there.native("GET", "/v1/audit")["entries"]
    return entries[::-1]


def test_native_leases_are_out_of_reach(there: Ground) -> None:
    """Whoever can reach the port learns names and owners there, but cannot end a native lease."""
    kind, _ = there.own()
    lease = native_lease(there, kind, ttl=600)
    (name,), owner = lease["slots"][kind], lease["owner"]
    assert there.post("/reset", type=kind, state="leased", expire="-1s", dest="free").body == "{}"
    told = f"owner mismatch request by {owner}, currently owned by {owner} by a native lease"
    release = there.post("/release", name=name, owner=owner, dest="free")
    assert release == refused(401, f"Done failed: {name} - free (from {owner}): {told}")
    update = there.post("/update", name=name, owner=owner, state="leased")
    assert update == refused(401, f"Update failed: {name} - leased ({owner}): {told}")
    assert there.native("GET", f"/v1/leases/{lease['id']}")["state"] == "granted"
    assert audit(there) == []
    there.native("DELETE", f"/v1/leases/{lease['id']}")


def test_a_setting_lets_them_in(tmp_path: Path) -> None:
    """With boskos_native_leases everything is within reach, as in Boskos; audit rows tell of it."""
    with ground(tmp_path, "safe", None, "--boskos-native-leases") as there:
        kind, _ = there.own()
        lease = native_lease(there, kind, ttl=600, needs=[{"pool": kind, "units": 2}])
        (name, other), owner = lease["slots"][kind], lease["owner"]
        assert there.post("/release", name=name, owner=owner, dest="dirty") == empty()
        assert there.native("GET", f"/v1/leases/{lease['id']}")["slots"] == {kind: [other]}
        assert there.post("/release", name=other, owner=owner, dest="free") == empty()
        assert there.native("GET", f"/v1/leases/{lease['id']}")["state"] == "ended"
        row, later = audit(there)
        assert (row["action"], row["target"]) == ("slot.release", f"{kind}/{name}")
        assert later["target"] == f"{kind}/{other}"
        assert (row["who"], row["role"]) == ("127.0.0.1", "boskos")
        assert row["before"] == {"owner": owner, "lease": lease["id"], "state": "leased"}
        assert row["after"] == {"state": "dirty"}


def test_resets_are_audited(there: Ground) -> None:
    """Each resource that a reaper takes leaves a row: from whom, by whom. Releases leave none."""
    kind, names = there.own()
    before = len(audit(there))
    for owner in ("one", "two"):
        assert there.acquire(kind, owner, dest="busy") is not None
    assert there.post("/reset", type=kind, state="busy", expire="1h", dest="dirty").body == "{}"
    assert len(audit(there)) == before
    taken = json.loads(
        there.post("/reset", type=kind, state="busy", expire="-1s", dest="dirty").body
    )
    assert sorted(taken.values()) == ["one", "two"]
    rows = audit(there)[before:]
    assert {row["target"]: row["before"]["owner"] for row in rows} == {
        f"{kind}/{name}": owner for name, owner in taken.items()
    }
    assert {(row["action"], row["who"], row["role"]) for row in rows} == {
        ("slot.reset", "127.0.0.1", "boskos")
    }
    left = ({*names} - {*taken}).pop()
    assert there.acquire(kind, "three") == left
    there.release(left, "three")
    assert len(audit(there)) == before + 2


def with_password(there: Ground, path: str, pair: str, scheme: str = "Basic") -> Answer:
    """Call with HTTP Basic."""
    shown = b64encode(pair.encode()).decode()
    return there.call("POST", path, b"", f"Authorization: {scheme} {shown}")


def test_passwords(tmp_path: Path) -> None:
    """With a password file, only who sends one of its pairs gets anything; HUP reads it again."""
    file = tmp_path / "passwords"
    file.write_text("ci:s3cr:et\n\njanitor:oth\u00e9r\n")
    options = ("--boskos-password-file", str(file))
    with ground(tmp_path, "safe", None, *options) as there:
        kind, _ = there.own()
        path = f"/acquire?type={kind}&state=free&dest=busy&owner=me"
        assert there.call("POST", path) == WRONG
        assert there.call("GET", "/anything", None) == WRONG
        assert there.call("POST", f"/lease/acquire?type={kind}") == WRONG
        for pair in ("ci:s3cr", "ci:s3cr:et2", "ci", ":", "", "other:oth\u00e9r"):
            assert with_password(there, path, pair) == WRONG, pair
        assert there.call("POST", path, b"", "Authorization: Basic %%%") == WRONG
        assert with_password(there, path, "ci:s3cr:et", "Bearer") == WRONG
        for pair, scheme in (("ci:s3cr:et", "Basic"), ("janitor:oth\u00e9r", "basic")):
            assert with_password(there, path, pair, scheme).status == 200
        assert with_password(there, f"/lease/acquire?type={kind}", "ci:s3cr:et").status == 200
        reset = f"/reset?type={kind}&state=busy&expire=-1s&dest=free"
        assert len(json.loads(with_password(there, reset, "janitor:oth\u00e9r").body)) == 2
        assert {row["who"] for row in audit(there)} == {"janitor@127.0.0.1"}

        file.write_text("no pair\n")
        os.kill(there.server.pid, signal.SIGHUP)
        there.server.wait_for("HUP: cannot reload the passwords")
        assert with_password(there, path, "ci:s3cr:et").status == 200
        file.write_text("ci:new\n")
        os.kill(there.server.pid, signal.SIGHUP)
        there.server.wait_for("HUP: the password file was reloaded")
        assert with_password(there, path, "ci:s3cr:et") == WRONG
        assert with_password(there, path, "ci:new").status == 200
        assert not [line for line in there.server.said if "s3cr" in line or "ci:new" in line]


@pytest.mark.parametrize("text", ["", "\n", "ci\n", "ci:\n", ":x\n", "ci:x\nnope\n", "\xff"])
def test_a_password_file_that_cannot_be_used(tmp_path: Path, text: str) -> None:
    """It ends the start, and nothing of what it says is told."""
    file = tmp_path / "passwords"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="boskos_password_file: ") as refusal:
        passwords_read(str(file))
    assert "ci" not in str(refusal.value).replace(str(tmp_path), "")
    with pytest.raises(ConfigError, match="No such file"):
        passwords_read(str(tmp_path / "none"))


def test_who_may_listen_where(tmp_path: Path) -> None:
    """Off loopback there is a password, or the operator says expressly that there is none."""
    file = tmp_path / "passwords"
    file.write_text("ci:secret\n")
    anywhere = {"boskos_listen": "0.0.0.0:0"}
    with pytest.raises(ConfigError, match="add --insecure-boskos"):
        load(anywhere, {})
    with pytest.raises(ConfigError, match="add --insecure-boskos"):
        load({**anywhere, "insecure_noauth2": True}, {})
    with pytest.raises(ConfigError, match="add --insecure-noauth2"):
        load({"listen": "0.0.0.0:0", "auth": "noauth2", "insecure_boskos": True}, {})
    for permitted in ({"insecure_boskos": True}, {"insecure": True}):
        load({**anywhere, **permitted}, {})
    load({**anywhere, "boskos_password_file": str(file)}, {})
    with pytest.raises(ConfigError, match="boskos_password_file: needs boskos_listen"):
        load({"boskos_password_file": str(file)}, {})
    with pytest.raises(NotStarted, match="has no line USER:PASSWORD"):
        file.write_text("")
        with ground(tmp_path, "safe", None, "--boskos-password-file", str(file)):
            pass


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 65_536,
        b'{"a":"' + b"x" * 65_000,
        b'{"names":[' + b'"a",' * 16_000 + b"1]}",
        b'{"a":' * 13_000,
        b'{"a":' + b"1" * 65_000 + b"}",
    ],
    ids=["brackets", "unfinished", "many", "deep", "digits"],
)
def test_no_body_holds_the_process(there: Ground, body: bytes) -> None:
    """The longest bodies, of the slowest kinds, are answered within what one once took."""
    kind, _ = there.own()
    name = there.acquire(kind)
    for path in (f"/update?name={name}&owner=me&state=busy", "/lease/release"):
        begun = perf_counter()
        assert there.call("POST", path, body).status in (400, 204)  # unknown names are no fault
        assert perf_counter() - begun < SECONDS_MAX


def test_bodies_have_an_end(there: Ground) -> None:
    """More than 64 KiB are refused before they are read, and so are more than 1,000 names."""
    kind, _ = there.own()
    name = there.acquire(kind)
    path = f"/update?name={name}&owner=me&state=busy"
    assert there.call("POST", path, b"{}".ljust(65_536)).status == 200
    for where in (path, "/lease/release"):
        answer = there.call("POST", where, b"{}".ljust(65_537))
        assert answer.status == 413
        assert "65536 bytes" in answer.body
    many = json.dumps({"names": ["a"] * 1_001}).encode()
    assert there.call("POST", "/lease/release", many).status == 400
    names = ",".join("a" * 1_001)
    query = f"/acquirebystate?state=free&dest=busy&owner=me&names={names}"
    assert there.call("POST", query) == refused(400, "more than 1000 names are given")


def test_owners_are_plain(there: Ground) -> None:
    """An owner with an escape sequence is refused: it would reach operators' terminals."""
    kind, _ = there.own()
    answer = there.post("/acquire", type=kind, state="free", dest="busy", owner="\x1b[31mme")
    assert answer.status == 400
    assert "U+001B" in answer.body
    assert there.acquire(kind, "jöb") is not None


def test_names_of_states_do_not_fill_the_metrics(tmp_path: Path) -> None:
    """Clients choose the names of states: only so many, and short ones, have a series of their own;
    all others share one, and nothing that was acquired is missing.
    """

    def series(there: Ground) -> dict[str, float]:
        begin = "boskos_acquire_duration_seconds_count"
        lines = [line for line in there.metrics().splitlines() if line.startswith(begin)]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    more = 5
    with ground(tmp_path) as there:
        kind, _ = there.own()

        def take(dest: str) -> None:
            name = there.acquire(kind, dest=dest)
            assert name is not None
            there.release(name)

        take("x" * (STRANGE_LENGTH_MAX + 1))
        assert [name for name in series(there) if 'dest="other"' in name] == list(series(there))
        for n in range(STRANGE_MAX + more):
            take(f"state-{n}")
        take("state-0")
        take("busy")
        found = series(there)
        assert sum(found.values()) == STRANGE_MAX + more + 3
        assert len(found) == STRANGE_MAX + 2  # with the shared one and that of "busy"
        (shared,) = [count for name, count in found.items() if 'dest="other"' in name]
        assert shared == more + 1
        (again,) = [count for name, count in found.items() if 'dest="state-0"' in name]
        assert again == 2


def test_queries_have_an_end(there: Ground) -> None:
    """Each part of a query or a duration takes a look, so many of them would hold the process."""
    kind, _ = there.own()
    asked = f"/reset?type={kind}&state=busy&dest=free"
    assert there.call("POST", f"{asked}&expire=" + "0s" * 500).status == 200
    answer = there.call("POST", f"{asked}&expire=" + "0s" * 501)
    assert (answer.status, answer.body[:30]) == (400, 'time: invalid duration "0s0s0s')
    assert there.call("POST", f"{asked}&expire=1h" + "&a=b" * 996).status == 200
    for path in (f"{asked}&expire=1h", f"/lease/acquire?type={kind}&count=0"):
        answer = there.call("POST", path + "&a=b" * 1_000)
        assert answer == refused(400, "more than 1000 query parameters are given")
