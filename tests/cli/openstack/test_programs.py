"""The programs that stand in for OpenStack Placement's; `tests/openstack` compares with them."""

import contextlib
import json
import os
import pwd
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.cli.openstack.privileges import become, become_owner
from moorage.cli.openstack.uwsgi import Asked, options_of
from moorage.config import ConfigError
from moorage.config.oslo_files import OsloFiles
from moorage.store.open import schema_of
from tests.e2e.support.server import Server, serve

CONF = """
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{folder}/theirs.sqlite
[moorage]
database = sqlite:///{folder}/ours.sqlite
"""
UWSGI = """
[uwsgi]
http = 127.0.0.1:0
module = placement.wsgi.api:application
processes = 5
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """Return a configuration with a database of its own."""
    file = tmp_path / "placement.conf"
    file.write_text(CONF.format(folder=tmp_path))
    return file


def words_of(program: str, *words: str) -> list[str]:
    """Return the command that runs a program, as its console script does."""
    start = f"import moorage.cli.openstack.{program} as program; program.main()"
    return [sys.executable, "-c", start, *words]


def run(
    conf: Path | None, program: str, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program until it exits, with an empty home."""
    given = [] if conf is None else ["--config-file", str(conf)]
    return subprocess.run(
        words_of(program, *given, *words),
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/nonexistent", **environment},
        cwd=conf.parent if conf is not None and conf.exists() else None,
    )


def test_from_no_database_to_a_current_one(tmp_path: Path, conf: Path) -> None:
    """Only Moorage's database is made; the original's is never opened."""
    before = run(conf, "manage", "db", "version")
    assert (before.returncode, before.stdout) == (0, "None\n")
    assert run(conf, "manage", "db", "online_data_migrations").returncode == 2
    assert run(conf, "status", "upgrade", "check").returncode == 255
    for _ in range(2):
        synced = run(conf, "manage", "db", "sync")
        assert (synced.returncode, synced.stdout, synced.stderr) == (0, "", "")
    newest = schema_of(f"sqlite:///{tmp_path}/ours.sqlite").newest
    assert run(conf, "manage", "db", "version").stdout == f"{newest}\n"
    assert run(conf, "manage", "db", "online_data_migrations").returncode == 0
    assert run(conf, "status", "upgrade", "check").returncode == 0
    assert not (tmp_path / "theirs.sqlite").exists()


def test_while_a_server_has_the_database(conf: Path) -> None:
    """A tool that deploys syncs the database before it starts the server again."""
    with serve(conf.parent / "ours.sqlite", "--placement-conf", str(conf)):
        for words in (("sync",), ("version",), ("stamp", "head"), ("online_data_migrations",)):
            done = run(conf, "manage", "db", *words)
            assert (done.returncode, done.stderr) == (0, ""), words
        assert run(conf, "status", "upgrade", "check").returncode == 0


def test_a_database_of_another_program_is_not_touched(tmp_path: Path, conf: Path) -> None:
    """Nor is one that nobody has chosen made in the working directory."""
    with sqlite3.connect(tmp_path / "ours.sqlite") as database:
        database.execute("CREATE TABLE alembic_version (version_num)")
    there = (tmp_path / "ours.sqlite").read_bytes()
    done = run(conf, "manage", "db", "sync")
    assert done.returncode == 1
    assert "the database of another program" in done.stderr
    assert (tmp_path / "ours.sqlite").read_bytes() == there
    conf.write_text(CONF.format(folder=tmp_path).partition("[moorage]")[0])
    done = run(conf, "manage", "db", "sync")
    assert done.returncode == 1
    assert "set database in the section [moorage]" in done.stderr
    assert not (tmp_path / "moorage.sqlite").exists()


def test_migrations_are_not_skipped(tmp_path: Path, conf: Path) -> None:
    """Only the version that is there can be stamped."""
    assert run(conf, "manage", "db", "stamp", "head").returncode == 1
    assert run(conf, "manage", "db", "sync").returncode == 0
    newest = schema_of(f"sqlite:///{tmp_path}/ours.sqlite").newest
    for version, code in (("head", 0), (newest, 0), ("b5c396305c25", 1)):
        assert run(conf, "manage", "db", "stamp", version).returncode == code


def test_the_configuration_of_the_user(tmp_path: Path, conf: Path) -> None:
    """Without an option the files are those that the original finds."""
    home = tmp_path / "home"
    (home / ".placement" / "placement.conf.d").mkdir(parents=True)
    (home / ".placement" / "placement.conf").write_text(conf.read_text())
    own = tmp_path / "third.sqlite"
    (home / ".placement" / "placement.conf.d" / "more.conf").write_text(
        f"[moorage]\ndatabase = sqlite:///{own}\n"
    )
    done = run(None, "manage", "db", "sync", HOME=str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert own.exists()


@pytest.fixture
def started(tmp_path: Path, conf: Path) -> Iterator[Server]:
    """Yield the server that `uwsgi` starts."""
    (tmp_path / "uwsgi.ini").write_text(UWSGI)
    command = words_of("uwsgi", str(tmp_path / "uwsgi.ini"))
    with Server(command, {"OS_PLACEMENT_CONFIG_DIR": str(tmp_path), "HOME": "/nonexistent"}) as one:
        yield one


def test_uwsgi_starts_the_server(tmp_path: Path, started: Server) -> None:
    """With the configuration that the original reads, on the address of the file."""
    assert started.url.startswith("http://127.0.0.1:")
    assert (tmp_path / "ours.sqlite").exists()


@pytest.mark.parametrize(
    ("text", "options", "log", "user"),
    [
        ("http = [::1]:8780\n", ["--listen", "[::1]:8780"], None, None),
        (
            "http-socket = :8780\nlogto = /a\nlogto2 = /b\n",
            ["--listen", "0.0.0.0:8780"],
            "/b",
            None,
        ),
        (
            "https = 192.0.2.1:8780,/c.pem,/k.pem\n",
            ["--listen", "192.0.2.1:8780", "--tls-cert", "/c.pem", "--tls-key", "/k.pem"],
            None,
            None,
        ),
        ("http = :1\nuid = placement\n", ["--listen", "0.0.0.0:1"], None, "placement"),
    ],
)
def test_files_of_uwsgi(
    tmp_path: Path, text: str, options: list[str], log: str | None, user: str | None
) -> None:
    """The address, the certificate, the log and the user."""
    file = tmp_path / "uwsgi.ini"
    file.write_text(f"[uwsgi]\nmodule = placement.wsgi.api:application\n{text}")
    assert options_of(OsloFiles([str(file)])) == Asked(options, log, user)


@pytest.mark.parametrize(
    "text",
    [
        "[uwsgi]\nhttp = :8780\nmodule = nova.wsgi.osapi_compute:application\n",
        "[uwsgi]\nmodule = placement.wsgi.api:application\n",
        "[uwsgi]\nhttps = :8780\nmodule = placement.wsgi.api:application\n",
    ],
)
def test_wrong_files_of_uwsgi(tmp_path: Path, text: str) -> None:
    """Another application's, one without an address, one without a certificate."""
    file = tmp_path / "uwsgi.ini"
    file.write_text(text)
    with pytest.raises(ConfigError, match=str(file)):
        options_of(OsloFiles([str(file)]))


def in_a_child(work: Callable[[], None]) -> tuple[int, int, list[int], str]:
    """Do something in a child process; return its user, group, groups and home."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            work()
            found = os.geteuid(), os.getegid(), sorted(os.getgroups()), os.environ["HOME"]
            os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        found = json.loads(stream.read())
    os.waitpid(child, 0)
    return tuple(found)


def test_root_gives_its_privileges_up(tmp_path: Path) -> None:
    """To the user of uWSGI's file, or to the owner of the database's folder; others have none."""
    nobody, owned = pwd.getpwnam("nobody"), tmp_path / "owned"
    owned.mkdir()
    address = f"sqlite:///{owned}/m.sqlite"
    same = in_a_child(lambda: None)
    assert in_a_child(lambda: become_owner(address)) == same
    assert in_a_child(lambda: become_owner("postgresql://h/d")) == same
    if os.geteuid() != 0:
        assert in_a_child(lambda: become("nobody")) == same
        return
    for user in ("nobody", str(nobody.pw_uid)):
        found = in_a_child(lambda user=user: become(user))  # type: ignore[misc] # its default
        assert (found[:2], found[3]) == ((nobody.pw_uid, nobody.pw_gid), nobody.pw_dir)
        assert 0 not in found[2]
    os.chown(owned, 4711, 4712)
    assert in_a_child(lambda: become_owner(address))[:3] == (4711, 4712, [4712])
    with pytest.raises(KeyError):
        become("no-such-user")
