"""`moorage run` and the handle commands by the command line: the same code, the same options."""

import os
import subprocess
from pathlib import Path

import click
import pytest

from moorage.cli.main import cli
from moorage.client.run.options import COMMANDS
from tests.cli.command import COMMAND, SECONDS, answer, moorage, private, refusal
from tests.e2e.support.server import serve


def found(name: str) -> click.Command:
    """Return a command of the command line by its full name."""
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_single_file_is_here(name: str) -> None:
    """With the same options: both are made from one table."""
    options, meaning = COMMANDS[name]
    command = found(name)
    assert command.help == meaning
    named = {opt for p in command.params if isinstance(p, click.Option) for opt in p.opts}
    assert named == {name for one in options if not one.positional for name in one.names}
    arguments = [p.name for p in command.params if isinstance(p, click.Argument)]
    assert arguments[: 1 if name == "run" else None] == (
        ["command"] if name == "run" else [one.word for one in options if one.positional]
    )


def test_the_server_of_our_own_database_is_found(tmp_path: Path) -> None:
    """In the folder of a server neither address nor token need be named."""
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        told = 'echo "$MOORAGE_LEASE_POOL"; exit 3'
        done = moorage("run", "-p", "demo", "--", "sh", "-c", told, directory=tmp_path)
        assert (done.returncode, done.stdout) == (3, "demo\n"), done.stderr
        got = moorage("lease", "acquire", "--pool", "demo", "--handle", "h", directory=tmp_path)
        assert (got.returncode, got.stdout) == (0, f"{tmp_path}/h\n"), got.stderr
        (held,) = answer("lease", "status", "--handle", "h", directory=tmp_path)["leases"]
        assert held["state"] == "granted"
        printed = moorage("trap", "--handle", "h", directory=tmp_path).stdout
        assert "-m moorage lease release --handle h" in printed
        assert moorage("lease", "release", "--handle", "h", directory=tmp_path).returncode == 0
        assert moorage("lease", "status", "--handle", "h", directory=tmp_path).returncode == 3


def test_without_a_server_it_is_a_dry_run(tmp_path: Path) -> None:
    """The command runs, with its exit code; one line says that nothing was asked for."""
    done = moorage("run", "--pool", "p", "sh", "-c", "echo $0; exit 4", directory=tmp_path)
    assert (done.returncode, done.stdout) == (4, "sh\n")
    assert done.stderr.count("\n") == 1
    assert "dry run" in done.stderr


def test_a_server_can_be_required(tmp_path: Path) -> None:
    """Then a folder without a database is no dry run; one with a database is, as ever, asked."""
    run = ("run", "--pool", "demo", "--unreachable-after", "0", "--", "echo", "ran")
    for words, variables in ((("--require",), {}), ((), {"MOORAGE_REQUIRE": "1"})):
        line = refusal(125, run[0], *words, *run[1:], directory=tmp_path, **variables)
        assert "MOORAGE_URL" in line
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        done = moorage(*run, directory=tmp_path, MOORAGE_REQUIRE="1")
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_while_no_process_serves_nothing_starts(tmp_path: Path) -> None:
    """A database whose server was stopped, or that is on a PostgreSQL, is no dry run."""
    run = ["run", "--pool", "demo", "--unreachable-after", "0", "--", "echo", "ran"]
    keep = ["lease", "acquire", "--pool", "demo", "--unreachable-after", "0", "--handle", "h"]
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
    missing = f"no server is running on {tmp_path}/moorage.sqlite"
    assert missing in refusal(123, *run, directory=tmp_path)
    assert missing in refusal(5, *keep, directory=tmp_path)
    best = moorage("run", "--best-effort", *run[1:], directory=tmp_path)
    assert (best.returncode, best.stdout) == (0, "ran\n")
    assert "best effort" in best.stderr
    (tmp_path / "moorage.sqlite").unlink()
    assert missing in refusal(123, *run, directory=tmp_path)  # its token is there
    shared = "postgresql://nobody:secret@127.0.0.1:1/none"
    said = refusal(123, *run, directory=tmp_path, MOORAGE_DATABASE=shared)
    assert "MOORAGE_URL" in said
    assert "secret" not in said


def test_the_first_server_that_comes_up_is_asked(tmp_path: Path) -> None:
    """Whoever waits beside a database goes on when it is served again, wherever that is."""
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
    with subprocess.Popen(
        [*COMMAND, "run", "--pool", "demo", "--", "echo", "ran"],
        cwd=tmp_path,
        env=inherited,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert "no server is running" in process.stderr.readline()
            with serve(tmp_path / "moorage.sqlite"):
                out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "ran\n"), err


def test_best_effort_runs_whatever_the_settings_say(tmp_path: Path) -> None:
    """Settings that cannot be read end no command that is to run always; they are no outage."""
    command = ("run", "--best-effort-always", "--pool", "p", "--", "sh", "-c", "echo ran; exit 3")
    (tmp_path / "moorage.toml").write_text("nonsense = 1\n")
    for environment in ({}, {"MOORAGE_CONFIG": "/nonexistent"}, {"MOORAGE_AUTH": "zzz"}):
        done = moorage(*command, directory=tmp_path, **environment)
        assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr
        assert "best effort" in done.stderr
        refusal(125, "run", "--best-effort", *command[2:], directory=tmp_path, **environment)


def test_without_standard_error_the_command_runs(tmp_path: Path) -> None:
    """Whoever closes it hears nothing; the command runs."""
    words = [*COMMAND, "run", "--pool", "p", "--", "sh", "-c", "echo ran; exit 3"]
    done = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "ran\n")


def test_the_command_is_no_option_of_ours(tmp_path: Path) -> None:
    """What stands after -- is not ours: the help says that it is needed, its --json is its own."""
    usage = moorage("run", "--help").stdout.splitlines()[0]
    assert usage == "Usage: moorage run [OPTIONS] -- COMMAND [ARGUMENT]..."
    done = moorage("run", "--nonsense", "--", "true", "--json", directory=tmp_path)
    assert done.returncode == 125
    assert "{" not in done.stderr


def test_wrong_usage_is_one_of_our_own_failures(tmp_path: Path) -> None:
    """125 for `run`, 2 for the others; of wrong settings, too."""
    assert "no command" in refusal(125, "run", "--pool", "p", directory=tmp_path)
    assert moorage("run", "--nonsense", directory=tmp_path).returncode == 125
    assert moorage("lease", "renew", "--nonsense", directory=tmp_path).returncode == 2
    (tmp_path / "moorage.toml").write_text("nonsense = 1\n")
    assert "nonsense" in refusal(125, "run", "--pool", "p", "--", "true", directory=tmp_path)
    assert "nonsense" in refusal(2, "lease", "renew", "--handle", "h", directory=tmp_path)


@pytest.mark.parametrize("token", ["moorage_secret\nmoorage_secret", "moorage_secret\u2019s"])
def test_a_wrong_token_is_not_shown(tmp_path: Path, token: str) -> None:
    """Nor is it by the commands that look: one line names where it was read."""

    def said(*words: str, **variables: str) -> str:
        return refusal(2, *words, "--url", "http://127.0.0.1:1", directory=tmp_path, **variables)

    for words in (["pool", "list"], ["lease", "list"], ["watch"], ["token", "list"]):
        for line, source in (
            (said(*words, MOORAGE_TOKEN=token), "MOORAGE_TOKEN"),
            (said(*words, "--token", token), "--token"),
        ):
            assert line.startswith(f"{source} is not a token: ")
            assert "moorage_secret" not in line
    private(tmp_path / "moorage.sqlite.token", "moorage_secret moorage_secret\n")
    line = refusal(2, "pool", "list", directory=tmp_path)
    assert "moorage.sqlite.token is not a token: " in line
    assert "moorage_secret" not in line


def test_where_and_as_whom_is_told_plainly(tmp_path: Path) -> None:
    """A missing token and a wrong address are called so; white space around both is nothing."""
    run = ["run", "--pool", "demo", "--", "true"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serve(tmp_path / "moorage.sqlite") as server:
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        secret = (tmp_path / "moorage.sqlite.token").read_text()
        url = f"{server.url} "
        wanted = "the server requires a token; set one with MOORAGE_TOKEN or --token-file"
        said = refusal(121, *run, directory=elsewhere, MOORAGE_URL=url)
        assert said == f"no lease of demo: {wanted}"
        for words in (["pool", "list"], ["top", "--once"], ["lease", "list"]):
            said = refusal(1, *words, directory=elsewhere, MOORAGE_URL=url)
            assert said == "the server requires a token; set one with --token or MOORAGE_TOKEN"
        token = f" {secret}\n"
        for words in (run, ["pool", "list"]):
            done = moorage(*words, directory=elsewhere, MOORAGE_URL=url, MOORAGE_TOKEN=token)
            assert done.returncode == 0, done.stderr
        wrong = f"{server.url}/v1"
        for code, words in ((121, run), (1, ["pool", "list"])):
            said = refusal(
                code, *words, directory=elsewhere, MOORAGE_URL=wrong, MOORAGE_TOKEN=token
            )
            assert f"{wrong} is not a Moorage server" in said
            assert "http://HOST:PORT" in said
