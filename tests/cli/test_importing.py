"""A command imports only its own module, because importing all takes longer than most commands."""

import subprocess
import sys

import click
import pytest

from moorage.cli.main import cli
from moorage.cli.names import HOMES, SUMMARIES, SUMMARY_MAX, operators_command
from moorage.client.commands import COMMANDS
from tests.cli.test_help import leaves

IMPORTED = """
import sys, click
from moorage.cli.main import cli
for name in sys.argv[1:]:
    cli.get_command(click.Context(cli), name)
print(*sys.modules)
"""

ALL = {"run", *(home.rpartition(".")[0] or name for name, home in HOMES.items())}


def imported(*names: str) -> set[str]:
    """Return the command modules that are imported after these commands were looked up."""
    command = [sys.executable, "-c", IMPORTED, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return ALL & {
        name.removeprefix("moorage.cli.commands.")
        for name in done.stdout.split()
        if name.startswith("moorage.cli.commands.")
    }


def test_a_command_imports_only_its_module() -> None:
    """No command imports none, one command imports its own, an unknown command imports all."""
    assert imported() == set()
    assert imported("serve") == {"serve"}
    assert imported("run") == {"run"}
    assert imported("no such command") == ALL


@pytest.mark.parametrize("name", [*HOMES, *(name for name in COMMANDS if " " not in name)])
def test_a_command_has_the_name_in_the_table(name: str) -> None:
    """The command's name is the one that it is looked up by, and `--help` lists it."""
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    assert command.name == name
    assert name in cli.list_commands(context)
    assert SUMMARIES.get(name) in (None, command.get_short_help_str(SUMMARY_MAX))
    assert (name in SUMMARIES) == (name in HOMES)


def test_an_unknown_command_is_refused_with_a_suggestion() -> None:
    """The suggestion considers all commands, imported or not."""
    with pytest.raises(click.UsageError) as refused:
        cli.resolve_command(click.Context(cli), ["simulat"])
    assert "Did you mean 'simulate'" in refused.value.format_message()


def test_without_the_server_every_command_is_known_by_its_name() -> None:
    """Exactly the commands that the client lacks are the operators'."""
    of_client = {words for words in leaves(cli) if operators_command([*words]) is None}
    assert of_client == {tuple(name.split()) for name in COMMANDS}
    for words in (["lease", "list", "--json"], ["agent", "group", "list"], ["pool"]):
        assert operators_command(words) == " ".join(words[: 1 if words[0] == "pool" else 2])
    for words in ([], ["lease"], ["agent", "--help"], ["serv"], ["--version"]):
        assert operators_command(words) is None
