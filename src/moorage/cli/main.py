"""The door of the command line: the group of all commands."""

import platform
import sys

import click

from moorage import __version__
from moorage.cli import (
    applying,
    database,
    explaining,
    following,
    leases,
    pools,
    running,
    serving,
    settings,
    simulating,
    tokens,
    top,
)
from moorage.cli.options import json_option
from moorage.cli.output import show_json

COMPLETE_VARIABLE = "_MOORAGE_COMPLETE"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Moorage: the ledger of a machine fleet's capacity, a drop-in OpenStack Placement."""


@cli.command()
@json_option
def version(as_json: bool) -> None:
    """Print which Moorage this is."""
    if as_json:
        show_json({"moorage": __version__, "python": platform.python_version()})
    else:
        click.echo(f"moorage {__version__}")


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands in SHELL; source it in its startup file."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "moorage", COMPLETE_VARIABLE).source())


cli.add_command(serving.serve)
cli.add_command(tokens.group)
cli.add_command(database.group)
cli.add_command(settings.group)
cli.add_command(explaining.explain)
cli.add_command(following.watch)
cli.add_command(following.audit)
cli.add_command(pools.group)
cli.add_command(leases.group)
cli.add_command(top.top)
cli.add_command(applying.apply)
cli.add_command(simulating.simulate)
running.attach(cli, leases.group)


def main() -> None:
    """Run the command line; ends the process."""
    sys.exit(cli.main(prog_name="moorage", complete_var=COMPLETE_VARIABLE))
