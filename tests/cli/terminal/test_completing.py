"""Shell completion, called as the scripts of `moorage completion` call it."""

import os
import socket
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client.admission import Admission
from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.wire.admin import TokenWanted
from moorage.wire.admission import LeaseWanted, NeedWanted, PoolWanted
from moorage.wire.ledger import InventoryWanted, ProvidersWanted, ProviderWanted
from tests.cli.command import moorage
from tests.e2e.support.server import serve


def completions(*words: str, directory: Path, **environment: str) -> list[str]:
    """Return `TYPE,VALUE` of each completion of the last word."""
    line = " ".join(["moorage", *words])
    done = moorage(
        directory=directory,
        _MOORAGE_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words)),
        **environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()  # drops empty lines


def test_pools_and_leases(tmp_path: Path) -> None:
    """Existing names and ids are offered wherever a command takes one, but not for a new pool."""
    with serve(tmp_path / "moorage.sqlite", "--auth", "noauth2") as server:
        admission = Admission(Transport(server.url, "admin"))
        for name in ("cloud-a", "cloud-b", "site"):
            admission.pool_put(name, PoolWanted(limit=1, generation=0))
        held = admission.ask(LeaseWanted(needs=[NeedWanted(pool="site")], key="one"))
        known = {"directory": tmp_path, "MOORAGE_URL": server.url, "MOORAGE_TOKEN": "admin"}
        both = ["plain,cloud-a", "plain,cloud-b"]
        assert completions("pool", "show", "cl", **known) == both
        assert completions("lease", "list", "--pool", "cl", **known) == both
        assert completions("simulate", "--replay", "cl", **known) == both
        assert completions("run", "--pool", "cl", **known) == both
        assert completions("pool", "create", "cl", **known) == []
        assert completions("lease", "show", held.id[:3], **known) == [f"plain,{held.id}"]
        assert completions("lease", "outcome", held.id[:3], **known) == [f"plain,{held.id}"]
        del known["MOORAGE_URL"]
        assert completions("pool", "show", "--url", server.url, "si", **known) == ["plain,site"]
        beside = f"sqlite:///{tmp_path}/moorage.sqlite"
        assert completions("pool", "show", "--database", beside, "si", **known) == ["plain,site"]


def test_names_of_the_fleet_and_tokens(tmp_path: Path) -> None:
    """Resource classes, groups of agents and ids of valid tokens are offered, too."""
    database = tmp_path / "moorage.sqlite"
    with serve(database) as server:
        secret = Path(f"{database}.token").read_text().strip()
        ledger = Ledger(Transport(server.url, secret))
        offer = {"CUSTOM_GOLD": InventoryWanted(total=1), "VCPU": InventoryWanted(total=1)}
        host = ProviderWanted(uuid=str(uuid4()), name="host", inventories=offer)
        ledger.providers_upsert(ProvidersWanted(providers=[host], create_vocabulary=True))
        made = ledger.token_create(TokenWanted(name="t", role="reader"))
        known = {"directory": tmp_path, "MOORAGE_URL": server.url, "MOORAGE_TOKEN": secret}
        assert completions("fleet", "--class", "CUS", **known) == ["plain,CUSTOM_GOLD"]
        assert completions("fleet", "--by", "a", **known) == ["plain,aggregate"]
        assert completions("token", "revoke", made.id[:5], **known) == [f"plain,{made.id}"]
        ledger.token_revoke(made.id)
        assert completions("token", "revoke", made.id[:5], **known) == []


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
    """File names are left to the shell to complete."""
    assert completions(*words, "fi", directory=tmp_path) == ["file,fi"]


def test_commands(tmp_path: Path) -> None:
    """After `--`, programs of the PATH and paths are offered."""
    for name, mode in (("deploy-all", 0o755), ("deploy-notes", 0o644), ("other", 0o755)):
        (tmp_path / name).touch(mode)
    path = {"directory": tmp_path, "PATH": f"{tmp_path}:/nowhere:{os.environ['PATH']}"}
    run = ("run", "--pool", "p", "--")
    assert completions(*run, "deploy", **path) == ["plain,deploy-all"]
    assert f"plain,{Path(sys.executable).name}" in completions(*run, "python", **path)
    assert completions(*run, "./depl", **path) == ["file,./depl"]


def test_without_an_answer_nothing_is_offered(tmp_path: Path) -> None:
    """No server, a refusal or a server that does not answer: no completion and no error."""
    assert completions("pool", "show", "", directory=tmp_path) == []
    nobody = {"directory": tmp_path, "MOORAGE_URL": "http://127.0.0.1:1"}
    assert completions("pool", "show", "", **nobody) == []
    with serve(tmp_path / "moorage.sqlite") as server:
        stranger = {"directory": tmp_path, "MOORAGE_URL": server.url, "MOORAGE_TOKEN": "wrong"}
        assert completions("pool", "show", "", **stranger) == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert completions("pool", "show", "", directory=tmp_path, MOORAGE_URL=url) == []
