"""A command imports little, because imports are most of the processor time of its start.

It imports only its own module of commands. How many modules it imports in all, of Moorage and of
others, stands in `imports.toml`: a number does not shake, as a time does on a shared machine.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from moorage.cli.main import cli
from moorage.cli.names import HOMES, SUMMARIES, SUMMARY_MAX, operators_command
from moorage.client.commands import COMMANDS
from moorage.wire.admission import PoolWanted
from tests.cli.pooled import Cli
from tests.cli.test_help import leaves
from tests.client.single import BARE, built

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


BUDGETS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("imports.toml").read_text())
"""The numbers of modules by Python version and command line, `[of Moorage, of others]`.

They may only fall: lower them when a command imports less. Raise one only for something that is
worth a longer start of the command.
"""

VERSION = "{}.{}".format(*sys.version_info)

COUNTED = """
import runpy, sys
before = {*sys.modules}
file = sys.argv.pop(1)
sys.argv[0] = file or "moorage"
try:
    if file:
        sys.path.insert(0, file)
        runpy.run_path(file, run_name="__main__")
    else:
        from moorage.__main__ import main
        main()
finally:
    new = sorted({*sys.modules} - before)
    print("Moorage:", *(one for one in new if one.startswith("moorage")), file=sys.stderr)
    print("others:", *(one for one in new if not one.startswith("moorage")), file=sys.stderr)
"""


@pytest.mark.skipif(VERSION not in BUDGETS, reason=f"there are no budgets for Python {VERSION}")
@pytest.mark.parametrize("line", BUDGETS.get(VERSION, {}))
def test_a_command_imports_no_more_than_before(cli: Cli, line: str) -> None:
    """Those of the single file begin with `moorage.pyz`; others are the whole command line."""
    program, *words = line.split()
    cli.admission.pool_put("builds", PoolWanted(limit=1))
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, str(built()) if program.endswith(".pyz") else "", *words],
        cwd=cli.folder.parent,
        env={
            **BARE,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "MOORAGE_URL": cli.transport.url,
            "MOORAGE_TOKEN": (cli.folder / "moorage.sqlite.token").read_text().strip(),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    *_, ours, others = done.stderr.splitlines()
    found = [len(ours.split()) - 1, len(others.split()) - 1]
    told = f"{line} imports {found}\n{ours}\n{others}"
    # Those of others may be fewer, because releases of Python differ.
    assert found[0] == BUDGETS[VERSION][line][0], told
    assert found[1] <= BUDGETS[VERSION][line][1], told


def test_each_module_of_commands_has_a_budget() -> None:
    """Its help imports what all of its commands need."""
    names = cli.list_commands(click.Context(cli))
    assert {f"moorage {name} --help" for name in names} <= BUDGETS["3.11"].keys()
