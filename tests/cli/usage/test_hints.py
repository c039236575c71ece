"""Verbs of other programs are answered with the command that is meant."""

import json

import pytest
from click.testing import CliRunner

from moorage.cli.hints import OURS, VERBS
from moorage.cli.main import cli
from tests.cli.test_help import leaves

HINTS = {
    "help": "'moorage --help'",
    "help pool create": "'moorage pool create --help'",
    "pool help": "'moorage pool --help'",
    "get pools": "'moorage pool list' or 'moorage pool show'",
    "get pool builds": "'moorage pool show'",
    "describe provider node-1": "'moorage provider show'",
    "pool describe builds": "'moorage pool show'",
    "list leases": "'moorage lease list'",
    "rm lease x": "'moorage lease revoke'",
    "get fleet": "'moorage fleet'",
    "providers": "'moorage provider list'",
    "pools list": "'moorage pool list'",
    "consumers show": "'moorage consumer show'",
    "get": "the noun comes first",
    "pool slot list gpu": "'moorage pool slots'",
    "pool slot ls": "'moorage pool slots'",
    "describe nonsense": "the noun comes first",
}


@pytest.mark.parametrize("line", HINTS)
def test_the_hint_names_the_command(line: str) -> None:
    """On one line, and as JSON if that is asked for."""
    done = CliRunner().invoke(cli, line.split(), prog_name="moorage")
    assert done.exit_code == 2
    (said,) = done.output.splitlines()
    assert said.startswith("moorage: No such command ") and HINTS[line] in said
    done = CliRunner().invoke(cli, [*line.split(), "--json"], prog_name="moorage")
    error = json.loads(done.output)["error"]
    assert (error["code"], HINTS[line] in error["message"]) == ("usage", True)


@pytest.mark.parametrize(
    "line", ["pool lst", "nonsense", "pass", "agents nonsense", "pool slot nonsense", "--nonsense"]
)
def test_what_nobody_knows(line: str) -> None:
    """It gets what it got: a similar name, or the help."""
    done = CliRunner().invoke(cli, line.split(), prog_name="moorage")
    assert done.exit_code == 2
    assert "--help'" in done.output and done.output.count("\n") == 1


def test_no_hint_is_about_a_command_that_there_is() -> None:
    """Otherwise it would never be seen; and each verb of ours is one."""
    words = [*leaves(cli)]
    assert {one[0] for one in words}.isdisjoint({*VERBS, *OURS, "help"})
    assert {verb for verbs in VERBS.values() for verb in verbs} <= {one[-1] for one in words}
