"""A command imports its own module: importing those of all commands takes longer than most run."""

import subprocess
import sys

import click
import pytest

from moorage.cli.main import HOMES, cli
from moorage.client.run.options import COMMANDS

IMPORTED = """
import sys, click
from moorage.cli.main import cli
for name in sys.argv[1:]:
    cli.get_command(click.Context(cli), name)
print(*sys.modules)
"""

ALL = {*HOMES, "run"}


def imported(*names: str) -> set[str]:
    """Return the modules of commands that are there once these commands were asked for."""
    command = [sys.executable, "-c", IMPORTED, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return ALL & {
        name.removeprefix("moorage.cli.commands.")
        for name in done.stdout.split()
        if name.startswith("moorage.cli.commands.")
    }


def test_only_what_is_asked_for_is_imported() -> None:
    """None for a command line without a command, one for a server; all, if there is no such one."""
    assert imported() == set()
    assert imported("serve") == {"serve"}
    assert imported("run") == {"run"}
    assert imported("no such command") == ALL


@pytest.mark.parametrize("name", [*HOMES, *(name for name in COMMANDS if " " not in name)])
def test_a_command_has_the_name_that_it_is_asked_for_by(name: str) -> None:
    """And is among those that `--help` lists."""
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    assert command.name == name
    assert name in cli.list_commands(context)


def test_a_name_that_is_none_is_refused_with_a_suggestion() -> None:
    """Of all commands, whether they have been imported or not."""
    with pytest.raises(click.UsageError) as refused:
        cli.resolve_command(click.Context(cli), ["simulat"])
    assert "Did you mean 'simulate'" in refused.value.format_message()
