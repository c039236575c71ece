"""What the shell offers for a word, asked as the scripts of `moorage completion` ask."""

import os
import socket
import sys
from pathlib import Path

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from tests.cli.command import moorage
from tests.e2e.support.server import serve


def offered(*words: str, directory: Path, **environment: str) -> list[str]:
    """Return `TYPE,VALUE` for each thing that is offered for the last word."""
    line = " ".join(["moorage", *words])
    done = moorage(
        directory=directory,
        _MOORAGE_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words)),
        **environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()  # an empty line is nothing


def test_pools_and_leases(tmp_path: Path) -> None:
    """Names and ids that there are, wherever a command takes one; not for a pool to be made."""
    with serve(tmp_path / "moorage.sqlite", "--auth", "noauth2") as server:
        admission = Admission(Transport(server.url, "admin"))
        for name in ("cloud-a", "cloud-b", "site"):
            admission.pool_put(name, PoolWanted(limit=1, generation=0))
        held = admission.ask(LeaseWanted(needs=[NeedWanted(pool="site")], key="one"))
        known = {"directory": tmp_path, "MOORAGE_URL": server.url, "MOORAGE_TOKEN": "admin"}
        both = ["plain,cloud-a", "plain,cloud-b"]
        assert offered("pool", "show", "cl", **known) == both
        assert offered("lease", "list", "--pool", "cl", **known) == both
        assert offered("simulate", "--replay", "cl", **known) == both
        assert offered("run", "--pool", "cl", **known) == both
        assert offered("pool", "create", "cl", **known) == []
        assert offered("lease", "show", held.id[:3], **known) == [f"plain,{held.id}"]
        assert offered("lease", "outcome", held.id[:3], **known) == [f"plain,{held.id}"]
        del known["MOORAGE_URL"]
        assert offered("pool", "show", "--url", server.url, "si", **known) == ["plain,site"]
        beside = f"sqlite:///{tmp_path}/moorage.sqlite"
        assert offered("pool", "show", "--database", beside, "si", **known) == ["plain,site"]


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--file"),
        ("db", "backup"),
        ("db", "restore"),
        ("explain", "--question"),
        ("lease", "status", "--handle"),
        ("pool", "list", "--config"),
        ("run", "--token-file"),
        ("run", "--pool", "p", "--", "make", "-f"),
        ("simulate", "--pool"),
        ("simulate", "--svg"),
        ("simulate", "--trace"),
    ],
)
def test_files(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The shell completes their names itself."""
    assert offered(*words, "fi", directory=tmp_path) == ["file,fi"]


def test_commands(tmp_path: Path) -> None:
    """After `--` come programs of the PATH, and paths."""
    for name, mode in (("deploy-all", 0o755), ("deploy-notes", 0o644), ("other", 0o755)):
        (tmp_path / name).touch(mode)
    path = {"directory": tmp_path, "PATH": f"{tmp_path}:/nowhere:{os.environ['PATH']}"}
    run = ("run", "--pool", "p", "--")
    assert offered(*run, "deploy", **path) == ["plain,deploy-all"]
    assert f"plain,{Path(sys.executable).name}" in offered(*run, "python", **path)
    assert offered(*run, "./depl", **path) == ["file,./depl"]


def test_who_cannot_be_asked_offers_nothing(tmp_path: Path) -> None:
    """No server, one that refuses, and one that never answers: no line, and no error."""
    assert offered("pool", "show", "", directory=tmp_path) == []
    nobody = {"directory": tmp_path, "MOORAGE_URL": "http://127.0.0.1:1"}
    assert offered("pool", "show", "", **nobody) == []
    with serve(tmp_path / "moorage.sqlite") as server:
        stranger = {"directory": tmp_path, "MOORAGE_URL": server.url, "MOORAGE_TOKEN": "wrong"}
        assert offered("pool", "show", "", **stranger) == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert offered("pool", "show", "", directory=tmp_path, MOORAGE_URL=url) == []
