"""`moorage token`, and which files next to a database are trusted."""

import socket
from pathlib import Path

import pytest

from tests.cli.command import answer, moorage, refusal, write_private
from tests.e2e.support.server import serve


def test_a_token_that_expires_and_is_rotated(tmp_path: Path) -> None:
    """A token may have an end, a scope and a successor, with and without a server."""
    database = tmp_path / "moorage.sqlite"
    janitor = ["--name", "sweeper", "--role", "janitor", "--for", "pool=ci/a", "--for", "pool=b/*"]
    with serve(database):
        made = answer("token", "create", *janitor, "--expires-in", "90d", directory=tmp_path)
        assert made["scope"] == {"pool": ["b/*", "ci/a"]}
        assert made["expires_at"] > made["created_at"]
        new = answer("token", "rotate", made["id"], "--grace", "1h", directory=tmp_path)
        assert new["token"] != made["token"]
        assert (new["name"], new["role"], new["scope"]) == ("sweeper", "janitor", made["scope"])
        _, old, _ = answer("token", "list", directory=tmp_path)
        assert old["rotated_at"] is not None
        assert old["expires_at"] < made["expires_at"]
        assert made["id"] in refusal(7, "token", "rotate", made["id"], directory=tmp_path)
    lines = moorage("token", "list", directory=tmp_path).stdout.splitlines()
    assert lines[0] == "id\tname\trole\tfor\tcreated\tused\texpires\tstate"
    assert lines[2].split("\t")[1:4] == ["sweeper", "janitor", "pool=b/*,pool=ci/a"]
    assert lines[2].endswith("\trotated")
    again = answer("token", "rotate", new["id"], "--grace", "0s", directory=tmp_path)
    assert (again["role"], again["scope"]) == ("janitor", made["scope"])
    states = {one["id"]: one for one in answer("token", "list", directory=tmp_path)}
    assert states[new["id"]]["expires_at"] == states[new["id"]]["rotated_at"]
    shown = moorage("token", "list", directory=tmp_path).stdout
    assert f"{new['id']}\t" in shown
    assert next(line for line in shown.splitlines() if line.startswith(new["id"])).endswith(
        "expired"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--role", "janitor"], "needs a scope"),
        (["--role", "governor"], "needs a scope"),
        (["--role", "janitor", "--for", "project=p"], "needs a scope"),
        (["--role", "janitor", "--for", "pool"], "FIELD=NAME"),
        (["--role", "janitor", "--for", "pool=a*"], "PREFIX/*"),
        (["--role", "janitor", "--for", "pool=/*"], "PREFIX/*"),
        (["--role", "janitor", "--for", "pool=a", "--project", "p"], "must not have a project"),
        (["--role", "operator", "--for", "pool=a"], "has no scope"),
        (["--role", "operator", "--project", "p"], "must not have a project"),
        (["--role", "user"], "needs a project"),
        (["--role", "admin", "--expires-in", "soon"], "soon"),
    ],
)
def test_wrong_tokens_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    """The error says how role, project and scope must be changed, and no token is created."""
    answer("db", "migrate", directory=tmp_path)
    done = moorage("token", "create", "--name", "x", *words, directory=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert answer("token", "list", directory=tmp_path) == []


def test_a_token_of_a_governor(tmp_path: Path) -> None:
    """It names pools."""
    answer("db", "migrate", directory=tmp_path)
    words = ("--name", "gate", "--role", "governor", "--for", "pool=deploy")
    made = answer("token", "create", *words, directory=tmp_path)
    assert (made["role"], made["scope"]) == ("governor", {"pool": ["deploy"]})


def test_an_announcement_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    """Neither the user's token nor the one in the token file is sent to the server it names."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        planted = tmp_path / "moorage.sqlite.server"
        planted.write_text(f'{{"url": "{url}", "pid": 1, "auth": "token"}}')
        planted.chmod(0o666)
        write_private(tmp_path / "moorage.sqlite.token", "moorage_beside\n")
        for variables in ({}, {"MOORAGE_TOKEN": "moorage_told"}):
            for command, code in (
                (["token", "list"], 2),
                (["pool", "list"], 2),
                (["top", "--once"], 2),
                (["lease", "acquire", "--pool", "p", "--handle", "h"], 2),
                (["run", "--pool", "p", "--", "true"], 125),
            ):
                line = refusal(code, *command, directory=tmp_path, **variables)
                assert "moorage.sqlite.server is not used: everybody can write to" in line
                assert "--url" in line
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_a_token_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    """Others may know such a token; the error says how to correct the file's mode."""
    with serve(tmp_path / "moorage.sqlite"):
        token = tmp_path / "moorage.sqlite.token"
        assert len(answer("token", "list", directory=tmp_path)) == 1
        token.chmod(0o640)
        line = refusal(2, "token", "list", directory=tmp_path)
        assert f"{token} has the mode 0640" in line
        assert f"chmod 600 {token}" in line
        token.chmod(0o600)
        assert len(answer("token", "list", directory=tmp_path)) == 1


def test_a_backup_is_written_with_the_rights_of_the_caller(tmp_path: Path) -> None:
    """The command copies a local server's database itself; a remote server writes the copy."""
    database, kept = tmp_path / "moorage.sqlite", tmp_path / "kept"
    kept.mkdir()
    with serve(database, "--backup-directory", str(kept)) as server:
        copy = tmp_path / "copy.sqlite"
        assert answer("db", "backup", "copy.sqlite", directory=tmp_path) == {"path": str(copy)}
        assert copy.stat().st_mode & 0o777 == 0o600
        newest = answer("audit", "--limit", "1", directory=tmp_path)[0]
        assert (newest["action"], newest["target"]) == ("database.backup", str(copy))
        assert "exists" in refusal(2, "db", "backup", "copy.sqlite", directory=tmp_path)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        token = (tmp_path / "moorage.sqlite.token").read_text().strip()
        there = ["--url", server.url, "--token", token]
        output = answer("db", "backup", "monday", *there, directory=elsewhere)
        assert output == {"path": str(kept / "monday")}
        assert "not a valid name for a backup" in refusal(
            2, "db", "backup", "../x", *there, directory=elsewhere
        )
    assert answer("db", "check", "--database", f"sqlite:///{copy}") == {"differences": []}
    assert answer("db", "check", "--database", f"sqlite:///{kept}/monday") == {"differences": []}
