"""The port of Boskos against unauthorized clients, and against mistakes in its configuration."""

import json
import os
import signal
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from moorage.config import ConfigError
from moorage.config.settings import load
from moorage.serve.boskos import STRANGE_LENGTH_MAX, STRANGE_MAX, passwords_read
from tests.e2e.support.server import NotStarted, serve
from tests.faces.boskos.boskos_server import (
    Answer,
    BoskosServer,
    empty_answer,
    error_answer,
    serve_boskos,
)

WRONG = error_answer(403, "HTTP Basic credentials are missing or wrong.")
SECONDS_MAX = 0.3
"""Far longer than any response here takes, and half the time that one long body once took."""


@pytest.fixture(scope="module")
def boskos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoskosServer]:
    """Yield a server with the default settings."""
    with serve_boskos(tmp_path_factory.mktemp("strangers")) as one:
        yield one


def native_lease(boskos: BoskosServer, kind: str, **more: Any) -> dict[str, Any]:
    """Take one slot with a native lease."""
    wanted = {"needs": [{"pool": kind, "units": 1}], "key": f"native-{kind}", "ttl": 1, **more}
    found: dict[str, Any] = boskos.native("POST", "/v1/leases", wanted)
    assert found["state"] == "granted"
    return found


def audit(boskos: BoskosServer) -> list[dict[str, Any]]:
    """Return the audit rows, oldest first."""
    entries: list[dict[str, Any]] = boskos.native("GET", "/v1/audit")["entries"]
    return entries[::-1]


def test_native_leases_cannot_be_changed(boskos: BoskosServer) -> None:
    """A client of the port sees names and owners of native leases, but cannot end them."""
    kind, _ = boskos.new_type()
    lease = native_lease(boskos, kind, ttl=600)
    (name,), owner = lease["slots"][kind], lease["owner"]
    assert boskos.post("/reset", type=kind, state="leased", expire="-1s", dest="free").body == "{}"
    mismatch = f"owner mismatch request by {owner}, currently owned by {owner} by a native lease"
    release = boskos.post("/release", name=name, owner=owner, dest="free")
    assert release == error_answer(401, f"Done failed: {name} - free (from {owner}): {mismatch}")
    update = boskos.post("/update", name=name, owner=owner, state="leased")
    assert update == error_answer(401, f"Update failed: {name} - leased ({owner}): {mismatch}")
    assert boskos.native("GET", f"/v1/leases/{lease['id']}")["state"] == "granted"
    assert audit(boskos) == []
    boskos.native("DELETE", f"/v1/leases/{lease['id']}")


def test_a_setting_permits_changes_of_native_leases(tmp_path: Path) -> None:
    """With `boskos_native_leases` they can be ended as in Boskos, which is audited."""
    with serve_boskos(tmp_path, "safe", None, "--boskos-native-leases") as boskos:
        kind, _ = boskos.new_type()
        lease = native_lease(boskos, kind, ttl=600, needs=[{"pool": kind, "units": 2}])
        (name, other), owner = lease["slots"][kind], lease["owner"]
        assert boskos.post("/release", name=name, owner=owner, dest="dirty") == empty_answer()
        assert boskos.native("GET", f"/v1/leases/{lease['id']}")["slots"] == {kind: [other]}
        assert boskos.post("/release", name=other, owner=owner, dest="free") == empty_answer()
        assert boskos.native("GET", f"/v1/leases/{lease['id']}")["state"] == "ended"
        row, later = audit(boskos)
        assert (row["action"], row["target"]) == ("slot.release", f"{kind}/{name}")
        assert later["target"] == f"{kind}/{other}"
        assert (row["who"], row["role"]) == ("127.0.0.1", "boskos")
        assert row["before"] == {"owner": owner, "lease": lease["id"], "state": "leased"}
        assert row["after"] == {"state": "dirty"}


def test_resets_are_audited(boskos: BoskosServer) -> None:
    """Each resource that a reaper resets has an audit row; releases have none."""
    kind, names = boskos.new_type()
    before = len(audit(boskos))
    for owner in ("one", "two"):
        assert boskos.acquire(kind, owner, dest="busy") is not None
    assert boskos.post("/reset", type=kind, state="busy", expire="1h", dest="dirty").body == "{}"
    assert len(audit(boskos)) == before
    taken = json.loads(
        boskos.post("/reset", type=kind, state="busy", expire="-1s", dest="dirty").body
    )
    assert sorted(taken.values()) == ["one", "two"]
    rows = audit(boskos)[before:]
    assert {row["target"]: row["before"]["owner"] for row in rows} == {
        f"{kind}/{name}": owner for name, owner in taken.items()
    }
    assert {(row["action"], row["who"], row["role"]) for row in rows} == {
        ("slot.reset", "127.0.0.1", "boskos")
    }
    left = ({*names} - {*taken}).pop()
    assert boskos.acquire(kind, "three") == left
    boskos.release(left, "three")
    assert len(audit(boskos)) == before + 2


def with_password(boskos: BoskosServer, path: str, pair: str, scheme: str = "Basic") -> Answer:
    """Send a request with HTTP Basic credentials."""
    shown = b64encode(pair.encode()).decode()
    return boskos.call("POST", path, b"", f"Authorization: {scheme} {shown}")


def test_passwords(tmp_path: Path) -> None:
    """With a password file only its credentials give access; SIGHUP reloads the file."""
    file = tmp_path / "passwords"
    file.write_text("ci:s3cr:et\n\njanitor:oth\u00e9r\n")
    options = ("--boskos-password-file", str(file))
    with serve_boskos(tmp_path, "safe", None, *options) as boskos:
        kind, _ = boskos.new_type()
        path = f"/acquire?type={kind}&state=free&dest=busy&owner=me"
        assert boskos.call("POST", path) == WRONG
        assert boskos.call("GET", "/anything", None) == WRONG
        assert boskos.call("POST", f"/lease/acquire?type={kind}") == WRONG
        for pair in ("ci:s3cr", "ci:s3cr:et2", "ci", ":", "", "other:oth\u00e9r"):
            assert with_password(boskos, path, pair) == WRONG, pair
        assert boskos.call("POST", path, b"", "Authorization: Basic %%%") == WRONG
        assert with_password(boskos, path, "ci:s3cr:et", "Bearer") == WRONG
        for pair, scheme in (("ci:s3cr:et", "Basic"), ("janitor:oth\u00e9r", "basic")):
            assert with_password(boskos, path, pair, scheme).status == 200
        assert with_password(boskos, f"/lease/acquire?type={kind}", "ci:s3cr:et").status == 200
        reset = f"/reset?type={kind}&state=busy&expire=-1s&dest=free"
        assert len(json.loads(with_password(boskos, reset, "janitor:oth\u00e9r").body)) == 2
        assert {row["who"] for row in audit(boskos)} == {"janitor@127.0.0.1"}

        file.write_text("no pair\n")
        os.kill(boskos.server.pid, signal.SIGHUP)
        boskos.server.wait_for("HUP: cannot reload the passwords")
        assert with_password(boskos, path, "ci:s3cr:et").status == 200
        file.write_text("ci:new\n")
        os.kill(boskos.server.pid, signal.SIGHUP)
        boskos.server.wait_for("HUP: the password file was reloaded")
        assert with_password(boskos, path, "ci:s3cr:et") == WRONG
        assert with_password(boskos, path, "ci:new").status == 200
        assert not [line for line in boskos.server.said if "s3cr" in line or "ci:new" in line]


@pytest.mark.parametrize("text", ["", "\n", "ci\n", "ci:\n", ":x\n", "ci:x\nnope\n", "\xff"])
def test_invalid_password_files(tmp_path: Path, text: str) -> None:
    """The server does not start, and the error does not show the file's contents."""
    file = tmp_path / "passwords"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="boskos_password_file: ") as refusal:
        passwords_read(str(file))
    assert "ci" not in str(refusal.value).replace(str(tmp_path), "")
    with pytest.raises(ConfigError, match="No such file"):
        passwords_read(str(tmp_path / "none"))


def test_addresses_need_authentication(tmp_path: Path) -> None:
    """Other addresses than loopback need a password file or an explicit option."""
    file = tmp_path / "passwords"
    file.write_text("ci:secret\n")
    anywhere = {"boskos_listen": "0.0.0.0:0"}
    with pytest.raises(ConfigError, match="add --insecure-boskos"):
        load(anywhere, {})
    with pytest.raises(ConfigError, match="add --insecure-boskos"):
        load({**anywhere, "insecure_noauth2": True}, {})
    with pytest.raises(ConfigError, match="add --insecure-noauth2"):
        load({"listen": "0.0.0.0:0", "auth": "noauth2", "insecure_boskos": True}, {})
    load({**anywhere, "insecure_boskos": True}, {})
    load({**anywhere, "boskos_password_file": str(file)}, {})
    with pytest.raises(NotStarted, match="boskos_password_file: needs boskos_listen"):
        serve(tmp_path / "m.sqlite", "--boskos-password-file", str(file))
    with pytest.raises(NotStarted, match="has no line USER:PASSWORD"):
        file.write_text("")
        with serve_boskos(tmp_path, "safe", None, "--boskos-password-file", str(file)):
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
def test_no_body_blocks_the_process(boskos: BoskosServer, body: bytes) -> None:
    """The longest bodies of the slowest kinds must not block the process for long."""
    kind, _ = boskos.new_type()
    name = boskos.acquire(kind)
    for path in (f"/update?name={name}&owner=me&state=busy", "/lease/release"):
        begun = perf_counter()
        assert boskos.call("POST", path, body).status in (
            400,
            204,
        )  # unknown names are not an error
        assert perf_counter() - begun < SECONDS_MAX


def test_sizes_of_bodies_are_limited(boskos: BoskosServer) -> None:
    """More than 64 KiB are refused before they are read, and so are more than 1,000 names."""
    kind, _ = boskos.new_type()
    name = boskos.acquire(kind)
    path = f"/update?name={name}&owner=me&state=busy"
    assert boskos.call("POST", path, b"{}".ljust(65_536)).status == 200
    for where in (path, "/lease/release"):
        answer = boskos.call("POST", where, b"{}".ljust(65_537))
        assert answer.status == 413
        assert "65536 bytes" in answer.body
    many = json.dumps({"names": ["a"] * 1_001}).encode()
    assert boskos.call("POST", "/lease/release", many).status == 400
    names = ",".join("a" * 1_001)
    query = f"/acquirebystate?state=free&dest=busy&owner=me&names={names}"
    assert boskos.call("POST", query) == error_answer(400, "more than 1000 names are given")


def test_owners_without_control_characters(boskos: BoskosServer) -> None:
    """An owner with an escape sequence is refused, because operators' terminals would show it."""
    kind, _ = boskos.new_type()
    answer = boskos.post("/acquire", type=kind, state="free", dest="busy", owner="\x1b[31mme")
    assert answer.status == 400
    assert "U+001B" in answer.body
    assert boskos.acquire(kind, "jöb") is not None


def test_series_of_state_names_are_limited(tmp_path: Path) -> None:
    """A limited number of short state names have their own series; all others share one.

    Clients choose these names, so they must not fill the metrics; each acquire is still counted.
    """

    def series(boskos: BoskosServer) -> dict[str, float]:
        begin = "boskos_acquire_duration_seconds_count"
        lines = [line for line in boskos.metrics().splitlines() if line.startswith(begin)]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    more = 5
    with serve_boskos(tmp_path) as boskos:
        kind, _ = boskos.new_type()

        def take(dest: str) -> None:
            name = boskos.acquire(kind, dest=dest)
            assert name is not None
            boskos.release(name)

        take("x" * (STRANGE_LENGTH_MAX + 1))
        assert [name for name in series(boskos) if 'dest="other"' in name] == list(series(boskos))
        for n in range(STRANGE_MAX + more):
            take(f"state-{n}")
        take("state-0")
        take("busy")
        found = series(boskos)
        assert sum(found.values()) == STRANGE_MAX + more + 3
        assert len(found) == STRANGE_MAX + 2  # plus the shared one and that of "busy"
        (shared,) = [count for name, count in found.items() if 'dest="other"' in name]
        assert shared == more + 1
        (again,) = [count for name, count in found.items() if 'dest="state-0"' in name]
        assert again == 2


def test_sizes_of_queries_are_limited(boskos: BoskosServer) -> None:
    """Parsing a part takes time, so too many parts would block the process."""
    kind, _ = boskos.new_type()
    asked = f"/reset?type={kind}&state=busy&dest=free"
    assert boskos.call("POST", f"{asked}&expire=" + "0s" * 500).status == 200
    answer = boskos.call("POST", f"{asked}&expire=" + "0s" * 501)
    assert (answer.status, answer.body[:30]) == (400, 'time: invalid duration "0s0s0s')
    assert boskos.call("POST", f"{asked}&expire=1h" + "&a=b" * 996).status == 200
    for path in (f"{asked}&expire=1h", f"/lease/acquire?type={kind}&count=0"):
        answer = boskos.call("POST", path + "&a=b" * 1_000)
        assert answer == error_answer(400, "more than 1000 query parameters are given")
