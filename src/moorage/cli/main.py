"""The door of the command line: the group of all commands."""

import os
import platform
import sys
from typing import Any

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
from moorage.cli.environment import misspelt
from moorage.cli.options import json_option
from moorage.cli.output import USAGE, Failure, error_json, show_json

COMPLETE_VARIABLE = "_MOORAGE_COMPLETE"

JSON_ASKED = "moorage.json_asked"
"""In a context's `meta`: the command line, before any `--`, asks for JSON."""


class _Cli(click.Group):
    """All commands; one with `--json` that fails says why in JSON, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta[JSON_ASKED] = "--json" in ours
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if not ctx.meta[JSON_ASKED]:
                raise
            click.echo(error_json(error), err=True)
            ctx.exit(error.exit_code)


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="moorage", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Moorage: the ledger of a machine fleet's capacity, a drop-in OpenStack Placement."""
    for line in misspelt(os.environ):
        if ctx.invoked_subcommand == "serve":
            raise Failure(USAGE, line)
        click.echo(f"moorage: {line}", err=True)


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
