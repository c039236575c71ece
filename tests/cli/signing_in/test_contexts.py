"""`moorage login` and `moorage context`, and that all commands then find the server."""

import json
import shlex
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, answer, moorage, refusal
from tests.client.screen import Screen
from tests.client.single import finished
from tests.e2e.support.server import serve
from tests.faces.v1.native import Native


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Native]:
    """Return a caller of a server that is nowhere near the folders of the tests."""
    database = tmp_path_factory.mktemp("far") / "moorage.sqlite"
    with serve(database) as server:
        yield Native(server.url, database)


@pytest.fixture
def token(native: Native, tmp_path: Path) -> str:
    """Return a file with the administrator's token."""
    path = tmp_path / "token"
    path.write_text(native.secret)
    return str(path)


def test_from_login_to_every_kind_of_command(native: Native, token: str, tmp_path: Path) -> None:
    """Operators' commands, leases and the single file find the server of the current context."""
    where = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    made = answer("login", native.url, "--name", "far", "--token-file", token, **where)
    assert (made["context"], made["current"], made["caller"]) == ("far", True, "admin")
    file = tmp_path / "config/moorage/contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert native.secret not in file.read_text()

    answer("pool", "create", "contexts", "--limit", "1", directory=tmp_path, **where)
    assert answer("whoami", directory=tmp_path, **where)["url"] == native.url
    run = ("run", "--pool", "contexts", "--", "sh", "-c", "echo $MOORAGE_LEASE_POOL")
    done = moorage(*run, directory=tmp_path, **where)
    assert (done.returncode, done.stdout) == (0, "contexts\n"), done.stderr
    done = finished(*run, **where)
    assert (done.returncode, done.stdout) == (0, "contexts\n"), done.stderr
    done = finished("run", "--context", "far", *run[1:], MOORAGE_URL="http://127.0.0.1:1", **where)
    assert (done.returncode, done.stdout) == (0, "contexts\n"), done.stderr
    assert "no answer from 127.0.0.1:1" in refusal(
        5, "pool", "list", directory=tmp_path, MOORAGE_URL="http://127.0.0.1:1", **where
    ), "the control: a variable goes before the current context"
    assert "no server found" in refusal(5, "pool", "list", "--database", "sqlite:///x", **where)


def test_contexts_are_listed_chosen_and_deleted(native: Native, token: str, tmp_path: Path) -> None:
    """The list shows no secret; what is gone is not current."""
    where = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert "`moorage login URL`" in moorage("context", "list", **where).stderr
    assert "no current context" in refusal(7, "context", "show", **where)
    for name in ("one", "two"):
        answer("login", native.url, "--name", name, "--token-file", token, **where)
    lines = moorage("context", "list", **where).stdout.splitlines()
    assert lines == [
        "current\tcontext\tserver\ttoken",
        f"-\tone\t{native.url}\t{token}",
        f"*\ttwo\t{native.url}\t{token}",
    ]
    assert answer("context", "use", "one", **where) == {"current": "one"}
    assert answer("context", "show", **where)["context"] == "one"
    assert answer("context", "delete", "one", **where) == {"context": "one", "deleted": True}
    assert [one["context"] for one in answer("context", "list", **where)] == ["two"]
    assert "no current context" in refusal(7, "context", "show", **where)
    assert answer("context", "show", "two", **where)["current"] is False
    assert answer("context", "use", "two", **where) == {"current": "two"}
    assert answer("context", "use", "--none", **where) == {"current": None}
    for words in (("use", "nix"), ("delete", "nix"), ("show", "nix")):
        assert "there is no context nix; there are: two" in refusal(7, "context", *words, **where)
    assert "name a context" in refusal(2, "context", "use", **where)


def test_a_login_that_fails_keeps_nothing(native: Native, token: str, tmp_path: Path) -> None:
    """Not for a wrong token, a server that is not there, nor a name of another server."""
    where = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    wrong = tmp_path / "wrong"
    wrong.write_text("moorage_wrong")
    refusal(6, "login", native.url, "--token-file", str(wrong), **where)
    refusal(5, "login", "http://127.0.0.1:1", "--token-file", token, **where)
    refusal(2, "login", "127.0.0.1:1", "--token-file", token, **where)
    refusal(2, "login", native.url, "--token-file", str(tmp_path / "none"), **where)
    refusal(2, "login", native.url, "--token-file", token, "--name", "-x y", **where)
    assert "no terminal" in refusal(2, "login", native.url, **where)
    assert not (tmp_path / "config").exists()
    answer("login", native.url, "--name", "far", "--token-file", token, **where)
    line = refusal(4, "login", "http://127.0.0.1:1", "--name", "far", **where)
    assert f"context far is for {native.url}" in line
    answer("login", native.url, "--name", "far", "--token-file", token, **where)


def test_a_server_that_is_gone_is_named_with_its_context(tmp_path: Path) -> None:
    """Nobody has typed its address in this command; one that was typed stands alone."""
    where = {"XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "moorage").mkdir(mode=0o700)
    file = tmp_path / "moorage" / "contexts.json"
    file.touch(0o600)
    gone = {"url": "http://127.0.0.1:1", "token": "moorage_t"}
    file.write_text(json.dumps({"current": "old", "contexts": {"old": gone}}))
    assert "no answer from 127.0.0.1:1 (context old): " in refusal(5, "pool", "list", **where)
    run = ("run", "--unreachable-after", "0s", "--pool", "p", "--", "true")
    assert "no answer from 127.0.0.1:1 (context old): " in moorage(*run, **where).stderr
    typed = refusal(5, "pool", "list", "--url", gone["url"], **where)
    assert "no answer from 127.0.0.1:1: " in typed


def test_a_token_is_asked_for_without_an_echo(native: Native, tmp_path: Path) -> None:
    """It is stored where only its owner can read it, and never shown."""
    line = shlex.join([*COMMAND, "login", native.url, "--name", "typed"])
    screen = Screen(f"{line}; echo code $?", XDG_CONFIG_HOME=str(tmp_path))
    screen.until("Token for")
    screen.type(f"{native.secret}\n")
    said = screen.until("code 0")
    assert "signed in to" in said and native.secret not in said
    file = tmp_path / "moorage/contexts.json"
    assert json.loads(file.read_text())["contexts"]["typed"]["token"] == native.secret
    where = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert answer("whoami", **where)["name"] == "admin"
    shown = moorage("context", "show", **where).stdout
    assert "stored" in shown and native.secret not in shown
    file.chmod(0o644)
    for words in (("whoami",), ("context", "list"), ("context", "delete", "typed")):
        assert "has the mode 0644" in refusal(2, *words, **where)
    assert "has the mode 0644" in refusal(125, "run", "--pool", "p", "--", "true", **where)


def test_a_token_is_not_stored_where_others_can_replace_it(
    native: Native, token: str, tmp_path: Path
) -> None:
    """The file is not even created: it would decide where the next token is sent."""
    folder = tmp_path / "config/moorage"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    where = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    line = refusal(2, "login", native.url, "--token-file", token, **where)
    assert "everybody can write to" in line
    assert not [*folder.iterdir()]
    folder.chmod(0o755)
    answer("login", native.url, "--token-file", token, **where)


def test_logins_at_once_lose_nothing(native: Native, token: str, tmp_path: Path) -> None:
    """Each replaces the file, and has read what the others wrote."""
    where = {"XDG_CONFIG_HOME": str(tmp_path)}
    names = [f"c{number}" for number in range(6)]

    def login(name: str) -> int:
        words = ("login", native.url, "--name", name, "--token-file", token)
        return moorage(*words, **where).returncode

    with ThreadPoolExecutor(len(names)) as pool:
        assert [*pool.map(login, names)] == [0] * len(names)
    assert [one["context"] for one in answer("context", "list", **where)] == names
    assert not [*(tmp_path / "moorage").glob("*.partial")]
