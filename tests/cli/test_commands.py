"""Commands with and without a running server: their output and exit codes."""

import json
import os
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moorage.serve.files import Files
from tests.cli.command import answer, moorage, refusal, write_private
from tests.e2e.support.server import serve
from tests.serve.wire import request, talk

TLS = Path(__file__).parents[1] / "serve"


@pytest.fixture(params=["server", "no server"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a folder with a settings file and a database, with or without a running server."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    if request.param == "no server":
        answer("db", "migrate", directory=tmp_path)
        yield tmp_path
    else:
        with serve(database):
            yield tmp_path


def test_tokens(folder: Path) -> None:
    """Tokens are created, listed and revoked with the same output, with and without a server."""
    before = len(answer("token", "list", directory=folder))
    wish = ["--name", "bob", "--role", "user", "--project", "p1"]
    made = answer("token", "create", *wish, directory=folder)
    assert made["token"].startswith("moorage_")
    listed = answer("token", "list", directory=folder)
    assert len(listed) == before + 1
    assert listed[-1] == {key: made[key] for key in made if key != "token"}
    times = {"created_at", "expires_at", "rotated_at", "revoked_at", "used_at"}
    assert set(made) == {"id", "name", "role", "project_id", "scope", "token"} | times
    assert answer("token", "revoke", made["id"], directory=folder)["revoked"] is True
    assert answer("token", "list", directory=folder)[-1]["revoked_at"] is not None
    assert made["id"] in refusal(7, "token", "revoke", made["id"], directory=folder)
    assert "project" in refusal(
        2, "token", "create", "--name", "a", "--role", "user", directory=folder
    )


def test_output_for_people(folder: Path) -> None:
    """Without `--json` the secret is the only output, and lists are tab-separated lines."""
    made = moorage("token", "create", "--name", "bob", "--role", "admin", directory=folder)
    assert made.stdout.startswith("moorage_")
    assert made.stdout.count("\n") == 1
    listed = moorage("token", "list", directory=folder).stdout.splitlines()
    assert listed[0] == "id\tname\trole\tfor\tcreated\tused\texpires\tstate"
    identity, *rest = listed[-1].split("\t")
    assert (*rest[:3], *rest[4:]) == ("bob", "admin", "-", "-", "-", "valid")
    assert moorage("token", "revoke", identity, directory=folder).stdout == f"revoked {identity}\n"


def test_epoch_raise(folder: Path) -> None:
    """Each call begins a new epoch and writes an audit row, with and without a server."""
    first = answer("db", "epoch", "raise", directory=folder)
    second = answer("db", "epoch", "raise", directory=folder)
    assert 1 < first["epoch"] < second["epoch"]
    assert first["revision"] == second["revision"]
    output = moorage("db", "epoch", "raise", directory=folder).stdout
    assert re.fullmatch(r"epoch \d+ begins after revision \d+\n", output)
    entries = answer("audit", directory=folder)
    assert [one["action"] for one in entries[:3]] == ["database.epoch_raise"] * 3
    assert entries[1]["after"] == second


def test_check_and_backup(folder: Path) -> None:
    """A sound database has no differences; a backup does not overwrite a file."""
    assert answer("db", "check", directory=folder) == {"differences": []}
    copy = folder / "copy.sqlite"
    assert answer("db", "backup", "copy.sqlite", directory=folder) == {"path": str(copy)}
    assert "exists" in refusal(2, "db", "backup", "copy.sqlite", directory=folder)


def test_a_check_without_a_server_trusts_the_rows_alone(tmp_path: Path) -> None:
    """The file that a start would begin with is not compared, so it is removed."""
    where = ("--database", f"sqlite:///{tmp_path}/moorage.sqlite")
    answer("db", "migrate", *where, directory=tmp_path)
    saved = tmp_path / "moorage.sqlite.catalog"
    saved.write_bytes(b"whatever")
    assert answer("db", "check", *where, directory=tmp_path) == {"differences": []}
    assert not saved.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("db", "check"),
        ("db", "epoch", "raise"),
        ("db", "backup", "copy.sqlite"),
        ("token", "list"),
        ("token", "create", "--name", "bob", "--role", "admin"),
        ("token", "revoke", "1"),
        ("audit",),
    ],
    ids=" ".join,
)
def test_a_missing_database_is_not_created(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Where there is no database a command fails and does not create one."""
    assert refusal(2, *command, directory=tmp_path) == (
        f"there is no database at {tmp_path}/moorage.sqlite;"
        " use --database, or change to its folder"
    )
    assert list(tmp_path.iterdir()) == []


def test_differences_are_reported_with_exit_code_1(tmp_path: Path) -> None:
    """A stored sum that differs from its rows is found, with and without a server."""
    database = tmp_path / "moorage.sqlite"
    uuid = "11111111-2222-4333-8444-555555555555"
    with serve(database, "--auth", "noauth2") as server:
        json_type = b"Content-Type: application/json\r\n"
        for method, path, body in (
            (b"POST", b"/resource_providers", {"name": "host", "uuid": uuid}),
            (
                b"PUT",
                f"/resource_providers/{uuid}/inventories".encode(),
                {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}},
            ),
        ):
            raw = json.dumps(body).encode()
            length = b"Content-Length: %d\r\n" % len(raw)
            (output,) = talk(server.url, request(method, path, json_type, length, body=raw))
            assert output.status == 200
    falsify(database)
    where = ["--database", f"sqlite:///{database}"]
    for started in (False, True):
        server_or_none = serve(database, "--auth", "noauth2") if started else None
        found = moorage("db", "check", "--json", *where)
        if server_or_none is not None:
            server_or_none.stop()
        assert found.returncode == 1
        (difference,) = json.loads(found.stdout)["differences"]
        assert uuid in difference


def falsify(database: Path) -> None:
    """Change a stored sum directly in the database."""
    import apsw

    connection = apsw.Connection(str(database))
    connection.execute("UPDATE provider SET inventories = json_set(inventories, '$.VCPU.used', 3)")
    connection.close()


def test_migrate_and_restore(tmp_path: Path) -> None:
    """A database is migrated and restored only while no server uses it."""
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    assert answer("db", "migrate", *where)["schema"] == "current"
    copy = str(tmp_path / "copy.sqlite")
    answer("db", "backup", copy, *where)
    kept = answer("db", "restore", copy, *where)["kept"]
    assert Path(kept).exists()
    with serve(tmp_path / "moorage.sqlite"):
        for command in (["migrate"], ["restore", copy]):
            assert "in use" in refusal(2, "db", *command, *where)
    assert "no such file" in refusal(2, "db", "restore", str(tmp_path / "none"), *where)


def test_commands_after_a_crash(tmp_path: Path) -> None:
    """Commands ignore the announcement file of a killed server and open the database themselves."""
    database = tmp_path / "moorage.sqlite"
    where = ["--database", f"sqlite:///{database}"]
    with serve(database) as server:
        os.kill(server.pid, 9)
        server.process.wait(10)
    assert Path(f"{database}.server").exists()
    (admin,) = answer("token", "list", *where)
    assert admin["role"] == "admin"


def test_options_and_variables_name_a_server(tmp_path: Path) -> None:
    """Options or variables name a server; the exit code shows why a command failed."""
    database = tmp_path / "moorage.sqlite"
    empty = tmp_path / "empty"
    empty.mkdir()
    with serve(database) as server:
        secret = Path(f"{database}.token").read_text().strip()
        named = {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": secret}
        assert len(answer("token", "list", directory=empty, **named)) == 1
        options = ["--url", server.url, "--token", secret]
        assert len(answer("token", "list", *options, directory=empty)) == 1
        assert "--token" in refusal(6, "token", "list", "--url", server.url, directory=empty)
        wrong = ["--url", server.url, "--token", "moorage_wrong"]
        assert "--token" in refusal(6, "token", "list", *wrong, directory=empty)
    refusal(5, "token", "list", "--url", server.url, "--token", secret, directory=empty)
    assert "URL" in refusal(2, "token", "list", "--url", "nothing", directory=empty)
    assert list(empty.iterdir()) == []


def test_a_token_is_sent_only_to_its_own_server(tmp_path: Path) -> None:
    """The token next to a database is sent only to the server of that database."""
    write_private(tmp_path / "moorage.sqlite.token", "moorage_secret\n")
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        with ThreadPoolExecutor() as thread:
            heard = thread.submit(respond_once, stranger)
            assert "--token" in refusal(6, "token", "list", "--url", url, *where)
        assert b"GET /v1/tokens" in heard.result()
        assert b"secret" not in heard.result()
    database = tmp_path / "own.sqlite"
    with serve(database) as server:
        own = ["--database", f"sqlite:///{database}", "--url", server.url]
        assert len(answer("token", "list", *own)) == 1


def test_the_token_of_a_postgresql_database_is_never_sent(tmp_path: Path) -> None:
    """The token of a PostgreSQL database is never sent to a server that `--url` names.

    Servers on PostgreSQL do not announce themselves, so the address may belong to a stranger.
    """
    database = "postgresql://db.example/moorage"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path))
        Files(database).token_write("moorage_secret")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        asked = ["token", "list", "--database", database, "--url", url]
        with ThreadPoolExecutor() as thread:
            heard = thread.submit(respond_once, stranger)
            assert "--token" in refusal(6, *asked, XDG_STATE_HOME=str(tmp_path))
        assert b"secret" not in heard.result()


REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"


def respond_once(listening: socket.socket, answered: bytes = REFUSED) -> bytes:
    """Accept one connection, send this response and return the request."""
    connection, _ = listening.accept()
    with connection:
        heard = connection.recv(65_536)
        connection.sendall(answered)
        return heard


def test_a_server_that_is_not_moorage(tmp_path: Path) -> None:
    """A response that is not Moorage's is reported in one line."""
    with socket.create_server(("127.0.0.1", 0)) as stranger, ThreadPoolExecutor() as thread:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        strange = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        heard = thread.submit(respond_once, stranger, strange)
        output = refusal(1, "pool", "show", "p", "--url", url, directory=tmp_path)
        assert "the response is not a Pool" in output
        assert b"GET /v1/pools/p" in heard.result()


def test_a_server_with_https(tmp_path: Path) -> None:
    """The command line trusts only the certificate of the server that announced itself."""
    database = tmp_path / "moorage.sqlite"
    where = ["--database", f"sqlite:///{database}"]
    tls = ["--tls-cert", str(TLS / "tls-cert.pem"), "--tls-key", str(TLS / "tls-key.pem")]
    with serve(database, *tls) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert len(answer("token", "list", *where)) == 1
        assert "certificate" in refusal(5, "token", "list", "--url", server.url, *where)


def test_commands_with_noauth2(tmp_path: Path) -> None:
    """At a server with `noauth2` the command line acts as administrator."""
    database = tmp_path / "moorage.sqlite"
    with serve(database):  # leaves an administrator's token next to the database
        pass
    with serve(database, "--auth", "noauth2"):
        assert len(answer("token", "list", "--database", f"sqlite:///{database}")) == 1


def test_audit(folder: Path) -> None:
    """The newest audit rows come first, with and without a server."""
    made = answer("token", "create", "--name", "bob", "--role", "reader", directory=folder)
    answer("db", "backup", "copy.sqlite", directory=folder)
    backup, token = answer("audit", "--limit", "2", directory=folder)
    assert (backup["action"], backup["target"]) == ("database.backup", str(folder / "copy.sqlite"))
    assert (token["action"], token["target"]) == ("token.create", made["id"])
    assert token["after"] == {"name": "bob", "role": "reader", "project_id": None}
    lines = moorage("audit", directory=folder).stdout.splitlines()
    assert lines[0] == "at\twho\trole\taction\ttarget\tchange"
    assert lines[1].split("\t")[3:5] == ["database.backup", f"{folder}/copy.sqlite"]
    assert lines[2].endswith("\tname: bob; role: reader")
    assert answer("audit", "--since", "1h", directory=folder)[:2] == [backup, token]
    assert answer("audit", made["id"], directory=folder) == [token]


def test_a_failed_backup_is_audited(folder: Path) -> None:
    """A failed backup has its own audit row, so that no reader looks for the missing copy."""
    (folder / "copy.sqlite").write_text("precious")
    assert "exists" in refusal(2, "db", "backup", "copy.sqlite", directory=folder)
    failed, begun = answer("audit", "--limit", "2", directory=folder)
    assert [failed["action"], begun["action"]] == ["database.backup_failed", "database.backup"]
    assert failed["target"] == begun["target"] == str(folder / "copy.sqlite")
    assert "exists" in failed["after"]["reason"]


def test_a_restore_is_audited(tmp_path: Path) -> None:
    """The restored database has an audit row that names the copy of the old one."""
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    answer("db", "migrate", *where)
    answer("db", "backup", str(tmp_path / "copy"), *where)
    kept = answer("db", "restore", str(tmp_path / "copy"), *where)["kept"]
    (newest,) = answer("audit", "--limit", "1", *where)
    assert (newest["action"], newest["role"]) == ("database.restore", "local")
    assert (newest["target"], newest["after"]) == (str(tmp_path / "copy"), {"kept": kept})


def test_watch(tmp_path: Path) -> None:
    """Changes are printed one per line, as text or JSON; a refusal ends the command."""
    database = tmp_path / "moorage.sqlite"
    where = ["--database", f"sqlite:///{database}"]
    assert "no server" in refusal(5, "watch", *where)
    with serve(database, "--auth", "noauth2") as server:
        body = b'{"name": "CUSTOM_A"}'
        output = talk(server.url, request(b"PUT", b"/traits/CUSTOM_A"))
        length = b"Content-Length: %d\r\n" % len(body)
        kind = b"Content-Type: application/json\r\n"
        output += talk(server.url, request(b"POST", b"/resource_classes", length, kind, body=body))
        assert [answer.status for answer in output] == [201, 201]
        printed = moorage("watch", "--after", "1.0", "--count", "2", *where).stdout.splitlines()
        assert [line.split("\t")[:3] for line in printed] == [
            ["1.1", "trait", "CUSTOM_A"],
            ["1.2", "resource_class", "CUSTOM_A"],
        ]
        only = ["--after", "1.0", "--kind", "resource_class", "--count", "1", "--json"]
        change = json.loads(moorage("watch", *only, *where).stdout)
        assert (change["cursor"], change["value"]["name"]) == ("1.2", "CUSTOM_A")
        assert "again" in refusal(1, "watch", "--after", "9.0", *where)
        assert "cursor" in refusal(2, "watch", "--after", "x", *where)


def test_explain(tmp_path: Path) -> None:
    """Each condition is printed with what remains after it; exit code 1 means no candidates."""
    where = ["--database", f"sqlite:///{tmp_path}/moorage.sqlite"]
    with serve(tmp_path / "moorage.sqlite", "--auth", "noauth2"):
        done = moorage("explain", "VCPU=4", "--required", "HW_CPU_X86_AVX2", *where)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("VCPU\n  0\t")
        question = tmp_path / "question.json"
        question.write_text('{"groups": [{"suffix": "_A", "resources": {"VCPU": 1}}]}')
        done = moorage("explain", "--question", str(question), "--json", *where)
        assert done.returncode == 1
        assert json.loads(done.stdout)["parts"][0]["suffix"] == "_A"
        zone = "00000000-0000-4000-8000-000000000001"
        question.write_text(
            '{"groups": [{"resources": {"VCPU": 1}, "required": ["HW_NUMA_ROOT", ["HW_NIC_SRIOV"]],'
            f' "member_of": ["{zone}", ["{zone}"]]}}]}}'
        )
        assert moorage("explain", "--question", str(question), *where).returncode == 1
        query = "allocation_candidates?resources1=VCPU%3A4&required1=in:HW_NIC_SRIOV&limit=9"
        done = moorage("explain", "--query", f"GET http://h/{query} HTTP/1.1", *where)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.startswith("group 1\n  0\t")
        assert moorage("explain", "VCPU:4", *where).returncode == 1
        assert "root_require" in refusal(2, "explain", "--query", "root_require=A", *where)
        assert "the query is empty" in refusal(2, "explain", "--query", " ", *where)
        question.write_text('{"groups": [{"resources": {"VCPU": 1}, "requird": []}]}')
        assert "requird" in refusal(2, "explain", "--question", str(question), *where)
        again = ("explain", "--query", "resources=VCPU:1", "--required", "A")
        assert "--required" in refusal(2, *again, *where)
        for wrong in ([], ["VCPU"], ["VCPU=x"], ["VCPU:1=2"], ["VCPU=1", "VCPU=2"], ["NO_CLASS=1"]):
            refusal(2, "explain", *wrong, *where)
        question.write_text("[]")
        assert "question" in refusal(2, "explain", "--question", str(question), *where)
        assert "exactly one" in refusal(2, "explain", "VCPU=1", "--question", str(question), *where)


def test_small_commands(tmp_path: Path) -> None:
    """`version`, `completion` and `--help` need no server; wrong usage ends with exit code 2."""
    assert set(answer("version")) == {"moorage", "python"}
    assert moorage("version").stdout.startswith("moorage ")
    for shell in ("bash", "zsh", "fish"):
        assert "_MOORAGE_COMPLETE" in moorage("completion", shell).stdout
    assert moorage("--help").returncode == 0
    for wrong in (["nothing"], ["token", "create"], ["serve", "--policy", "none"]):
        done = moorage(*wrong, directory=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
