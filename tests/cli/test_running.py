"""`moorage run` and the handle commands of the command line share the single file's options."""

import os
import subprocess
from pathlib import Path

import click
import pytest

from moorage.cli.main import cli
from moorage.client.commands import COMMANDS
from tests.cli.command import COMMAND, SECONDS, answer, moorage, refusal, write_private
from tests.e2e.support.server import serve

SIGN_IN = "set one with --token-file or MOORAGE_TOKEN, or sign in with `moorage login URL`"


def command_named(name: str) -> click.Command:
    """Return a command of the command line by its full name."""
    command: click.Command = cli
    for word in name.split():
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_single_file_exists(name: str) -> None:
    """It has the same options, because both are made from one table."""
    options, meaning = COMMANDS[name]
    command = command_named(name)
    assert command.help == meaning
    named = {opt for p in command.params if isinstance(p, click.Option) for opt in p.opts}
    assert named == {name for one in options if not one.positional for name in one.names}
    arguments = [p.name for p in command.params if isinstance(p, click.Argument)]
    assert arguments[: 1 if name == "run" else None] == (
        ["command"] if name == "run" else [one.word for one in options if one.positional]
    )


def test_the_server_of_the_local_database_is_found(tmp_path: Path) -> None:
    """In the folder of a server, neither its address nor a token must be given."""
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        output = 'echo "$MOORAGE_LEASE_POOL"; exit 3'
        done = moorage("run", "-p", "demo", "--", "sh", "-c", output, directory=tmp_path)
        assert (done.returncode, done.stdout) == (3, "demo\n"), done.stderr
        got = moorage("lease", "acquire", "--pool", "demo", "--handle", "h", directory=tmp_path)
        assert (got.returncode, got.stdout) == (0, f"{tmp_path}/h\n"), got.stderr
        (held,) = answer("lease", "status", "--handle", "h", directory=tmp_path)["leases"]
        assert held["state"] == "granted"
        printed = moorage("trap", "--handle", "h", directory=tmp_path).stdout
        assert "-m moorage lease release --handle h" in printed
        assert moorage("lease", "release", "--handle", "h", directory=tmp_path).returncode == 0
        assert moorage("lease", "status", "--handle", "h", directory=tmp_path).returncode == 3


def test_a_dry_run_without_a_server(tmp_path: Path) -> None:
    """If it may, the command runs and keeps its exit code; one line says that it is a dry run."""
    words = ("run", "--unlimited-without-server", "--pool", "p", "sh", "-c", "echo $0; exit 4")
    done = moorage(*words, directory=tmp_path)
    assert (done.returncode, done.stdout) == (4, "sh\n")
    assert done.stderr.count("\n") == 1
    assert "dry run" in done.stderr


def test_nothing_runs_without_a_server(tmp_path: Path) -> None:
    """A folder without a database is an error; a local server is used, whatever else may be."""
    run = ("run", "--pool", "demo", "--unreachable-after", "0", "--", "echo", "ran")
    assert "MOORAGE_URL" in refusal(125, *run, directory=tmp_path)
    with serve(tmp_path / "moorage.sqlite"):
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        done = moorage(*run, directory=tmp_path, MOORAGE_UNLIMITED_WITHOUT_SERVER="1")
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_without_a_running_server_the_command_does_not_start(tmp_path: Path) -> None:
    """A stopped server or a PostgreSQL database without an address is an error, not a dry run."""
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
    assert missing in refusal(123, *run, directory=tmp_path)  # its token file remains
    shared = "postgresql://nobody:secret@127.0.0.1:1/none"
    message = refusal(123, *run, directory=tmp_path, MOORAGE_DATABASE=shared)
    assert "MOORAGE_URL" in message
    assert "secret" not in message


def test_a_waiting_command_finds_a_new_server(tmp_path: Path) -> None:
    """A command that waits next to a database continues as soon as any server serves it."""
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


def test_best_effort_always_ignores_wrong_settings(tmp_path: Path) -> None:
    """`--best-effort-always` runs the command even if the settings cannot be read.

    `--best-effort` does not, because that is no outage.
    """
    command = ("run", "--best-effort-always", "--pool", "p", "--", "sh", "-c", "echo ran; exit 3")
    (tmp_path / "moorage.toml").write_text("nonsense = 1\n")
    for environment in ({}, {"MOORAGE_CONFIG": "/nonexistent"}, {"MOORAGE_AUTH": "zzz"}):
        done = moorage(*command, directory=tmp_path, **environment)
        assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr
        assert "best effort" in done.stderr
        refusal(125, "run", "--best-effort", *command[2:], directory=tmp_path, **environment)


def test_without_standard_error_the_command_runs(tmp_path: Path) -> None:
    """With standard error closed nothing is reported, but the command still runs."""
    words = [
        *COMMAND,
        "run",
        "--unlimited-without-server",
        "-p",
        "p",
        "sh",
        "-c",
        "echo ran; exit 3",
    ]
    done = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "ran\n")


def test_arguments_of_the_command_are_not_parsed(tmp_path: Path) -> None:
    """Arguments after `--` belong to the command, so its `--json` does not affect our errors."""
    usage = moorage("run", "--help").stdout.splitlines()[0]
    assert usage == "Usage: moorage run [OPTIONS] -- COMMAND [ARGUMENT]..."
    done = moorage("run", "--nonsense", "--", "true", "--json", directory=tmp_path)
    assert done.returncode == 125
    assert "{" not in done.stderr


def test_exit_codes_of_wrong_usage(tmp_path: Path) -> None:
    """Wrong usage or settings end with exit code 125 for `run` and 2 for the other commands."""
    assert "no command" in refusal(125, "run", "--pool", "p", directory=tmp_path)
    assert moorage("run", "--nonsense", directory=tmp_path).returncode == 125
    assert moorage("lease", "renew", "--nonsense", directory=tmp_path).returncode == 2
    (tmp_path / "moorage.toml").write_text("nonsense = 1\n")
    assert "nonsense" in refusal(125, "run", "--pool", "p", "--", "true", directory=tmp_path)
    assert "nonsense" in refusal(2, "lease", "renew", "--handle", "h", directory=tmp_path)


@pytest.mark.parametrize("token", ["moorage_secret\nmoorage_secret", "moorage_secret\u2019s"])
def test_a_wrong_token_is_not_shown(tmp_path: Path, token: str) -> None:
    """The error names where the token was read, but does not show it."""

    def message(*words: str, **variables: str) -> str:
        return refusal(2, *words, "--url", "http://127.0.0.1:1", directory=tmp_path, **variables)

    for words in (["pool", "list"], ["lease", "list"], ["watch"], ["token", "list"]):
        for line, source in (
            (message(*words, MOORAGE_TOKEN=token), "MOORAGE_TOKEN"),
            (message(*words, "--token", token), "--token"),
        ):
            assert line.startswith(f"{source} is not a token: ")
            assert "moorage_secret" not in line
    write_private(tmp_path / "moorage.sqlite.token", "moorage_secret moorage_secret\n")
    line = refusal(2, "pool", "list", directory=tmp_path)
    assert "moorage.sqlite.token is not a token: " in line
    assert "moorage_secret" not in line


def test_missing_tokens_and_wrong_addresses(tmp_path: Path) -> None:
    """A missing token and a wrong address are named; white space around both is ignored."""
    run = ["run", "--pool", "demo", "--", "true"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serve(tmp_path / "moorage.sqlite") as server:
        answer("pool", "create", "demo", "--limit", "1", directory=tmp_path)
        secret = (tmp_path / "moorage.sqlite.token").read_text()
        url = f"{server.url} "
        wanted = "the server requires a token; set one with MOORAGE_TOKEN or --token-file"
        message = refusal(121, *run, directory=elsewhere, MOORAGE_URL=url)
        assert message == f"no lease of demo: {wanted}"
        for words in (["pool", "list"], ["top", "--once"], ["lease", "list"]):
            message = refusal(6, *words, directory=elsewhere, MOORAGE_URL=url)
            assert message == f"the server requires a token; {SIGN_IN}"
        token = f" {secret}\n"
        for words in (run, ["pool", "list"]):
            done = moorage(*words, directory=elsewhere, MOORAGE_URL=url, MOORAGE_TOKEN=token)
            assert done.returncode == 0, done.stderr
        wrong = f"{server.url}/v1"
        for code, words in ((121, run), (1, ["pool", "list"])):
            message = refusal(
                code, *words, directory=elsewhere, MOORAGE_URL=wrong, MOORAGE_TOKEN=token
            )
            assert f"{wrong} is not a Moorage server" in message
            assert "http://HOST:PORT" in message


def test_agents_need_the_address_of_a_server(tmp_path: Path) -> None:
    """An agent runs on another machine than the database; both commands fail closed."""
    agent = ("--agent-id", "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55")
    run = ("agent", "run", "--reservoir", "hugepages", *agent)
    wait = ("agent", "wait", "--consumer", agent[1], "--timeout", "0", *agent)
    for words in (run, wait):
        assert "no server is set" in refusal(2, *words, directory=tmp_path)
    assert "must not start" in refusal(5, *wait, MOORAGE_URL="http://127.0.0.1:1")
    assert [*tmp_path.iterdir()] == []
