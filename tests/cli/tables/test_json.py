"""Every command that prints data has `--json`, for its errors, too."""

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import cli
from moorage.client.run.exit_codes import UNREACHABLE, USAGE
from tests.cli.test_help import examples, leaves

ALL = [*leaves(cli)]

WITHOUT = {
    "agent run": "runs until it is stopped",
    "agent wait": "prints nothing: it waits",
    "client.sh": "prints code for a shell",
    "completion": "prints code for a shell",
    "export boskos": "prints objects for kubectl",
    "ironic govern": "runs until it is stopped",
    "lease cat": "prints names of slots for scripts, in formats of its own",
    "metal3 govern": "runs until it is stopped",
    "metal3 install": "prints manifests for kubectl",
    "metal3 uninstall": "reports what it does, as it does it",
    "metal3 wait": "prints one line when it ends: it waits",
    "metal3 webhook": "runs until it is stopped",
    "notify": "runs until it is stopped",
    "reshape move-host": "prints a plan, which is JSON",
    "reshape numa": "prints a plan, which is JSON",
    "reshape pci": "prints a plan, which is JSON",
    "reshape rename-class": "prints a plan, which is JSON",
    "reshape split": "prints a plan, which is JSON",
    "run": "its output is that of the command it runs",
    "serve": "runs until it is stopped",
    "trap": "prints code for a shell",
}
"""Commands without `--json`, and why."""

PATIENT = {"watch", "ironic report", "ironic rollout", "lease acquire", "lease release"}
"""Commands that try again until a server answers, need another one first, or find nothing to do."""

NOWHERE = "http://127.0.0.1:1"


def found(words: Sequence[str]) -> click.Command:
    """Return a command."""
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


def has(words: Sequence[str], option: str) -> bool:
    """Return whether a command has an option."""
    return any(option in parameter.opts for parameter in found(words).params)


WITH_JSON = [words for words in ALL if has(words, "--json")]


def invoked(*words: str) -> Result:
    """Run a command in this process, with a server that does not answer."""
    where = {"MOORAGE_URL": NOWHERE, "MOORAGE_TOKEN": "none"}
    return CliRunner().invoke(cli, words, prog_name="moorage", env=where)


def error_of(result: Result) -> dict[str, object]:
    """Return the error that a command has printed, its only line, and check its exit code."""
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    error: dict[str, object] = json.loads(line)["error"]
    assert set(error) == {"code", "message", "exit_code"}
    assert error["exit_code"] == result.exit_code
    return error


def test_only_commands_without_data_have_no_json() -> None:
    """Any other command has the option; the list of exceptions has no command too many."""
    assert {" ".join(words) for words in ALL if words not in WITH_JSON} == {*WITHOUT}


@pytest.mark.parametrize("words", WITH_JSON, ids=" ".join)
def test_wrong_usage_is_json(words: tuple[str, ...]) -> None:
    """An option that does not exist is one line of JSON with the exit code 2, for each command."""
    error = error_of(invoked(*words, "--json", "--no-such-option"))
    assert (error["code"], error["exit_code"]) == ("usage", USAGE)
    assert "--no-such-option" in str(error["message"])


@pytest.mark.parametrize(
    "words", [("--no-such-option", "--json"), ("pool", "nosuch", "--json"), ("nosuch", "--json")]
)
def test_what_is_no_command_is_json(words: tuple[str, ...]) -> None:
    """So are options and commands that the program does not have."""
    assert error_of(invoked(*words))["code"] == "usage"


@pytest.mark.parametrize("words", WITH_JSON, ids=" ".join)
def test_an_unreachable_server_is_json(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example of each command that needs a server fails with the exit code 5, as JSON.

    A command that needs none prints JSON, or an error as JSON: what the example names is not there.
    """
    name = " ".join(words)
    if not has(words, "--url") or name in PATIENT:
        pytest.skip("needs no server, or waits for it")
    monkeypatch.chdir(tmp_path)
    line = examples(invoked(*words, "--help").stdout)[0]
    result = invoked(*words, "--json", *line[len(words) + 1 :])
    if result.exit_code == 0:
        json.loads(result.stdout)
        return
    error = error_of(result)
    assert error["code"] != "failed" or name == "db check"
    if error["code"] == "unreachable":
        assert error["exit_code"] == UNREACHABLE
