"""The commands of the single file: `moorage run`, handles, `client.sh`, `trap`, and the agent.

The options come from the table in `client/commands.py`. Unlike there, commands that need a lease
need no address of the server if the database of the settings exists.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from moorage.cli.support import completion
from moorage.cli.support.options import example
from moorage.cli.support.output import USAGE, Failure
from moorage.client.commands import COMMANDS, EXAMPLES
from moorage.client.run.exit_codes import RUN_FAILED
from moorage.client.run.options import Option

_OFFERED = {"POOL[=UNITS]": completion.pools, "ID": completion.leases}
"""Shell completions, by the metavar of the value."""

US = (sys.executable, "-m", "moorage")
"""The command line by which the code that `moorage trap` prints calls Moorage."""


class _Command(click.Command):
    """A command of the table; wrong usage of `run` has the exit code of its other failures."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if self.name == "run":
                error.exit_code = RUN_FAILED  # type: ignore[misc] # click asks the instance as well
            raise


def command(name: str) -> click.Command:
    """Return the command of this name in the table."""
    options, meaning = COMMANDS[name]
    parameters = [_parameter(option) for option in options]
    if name == "run":
        words = "-- COMMAND [ARGUMENT]..."
        parameters.append(
            click.Argument(
                ["command"],
                nargs=-1,
                metavar=words,
                type=click.UNPROCESSED,
                shell_complete=completion.command,
            )
        )

    def carry(command: tuple[str, ...] = (), **words: Any) -> None:
        # deferred: a group such as `moorage lease` has many commands that need none of it
        from moorage.client.main import carry_out

        local = "url" in words and not name.startswith("agent ")
        if local and not _names_a_server(words):
            with _reported(name):
                words |= _server_or_trouble(words)
        click.get_current_context().exit(carry_out(name, words, command, US))

    return _Command(
        name.rpartition(" ")[2],
        params=parameters,
        callback=carry,
        help=meaning,
        epilog=example(*EXAMPLES[name]),
        context_settings={"allow_interspersed_args": name != "run"},
    )


def attach(group: click.Group) -> None:
    """Add the subcommands of the table to a group, such as `moorage lease`."""
    for name in COMMANDS:
        if name.startswith(f"{group.name} "):
            group.add_command(command(name))


def _names_a_server(words: dict[str, Any]) -> bool:
    """Return whether options, variables or a context name a server."""
    from moorage.client.targets import target_of

    try:
        return target_of(words, os.environ).url is not None
    except (OSError, ValueError):
        return True  # and the command says what is wrong


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """Turn invalid settings into a Failure."""
    from moorage.store.api import StoreError

    try:
        yield
    except (Failure, StoreError) as error:
        raise Failure(RUN_FAILED if name == "run" else USAGE, str(error)) from None


def _parameter(option: Option) -> click.Parameter:
    kind: Any = click.Choice(option.choices) if option.choices else str
    if option.metavar == "FILE":
        kind = click.Path()
    offered = _OFFERED.get(option.metavar or "")
    if option.positional:
        return click.Argument(
            [option.word],
            type=kind,
            metavar=option.metavar,
            required=not option.optional,
            shell_complete=offered,
        )
    names = [*option.names, option.word]
    if option.metavar is None and not option.choices:
        return click.Option(names, is_flag=True, help=option.meaning)
    return click.Option(
        names,
        type=kind,
        metavar=option.metavar,
        multiple=option.many,
        help=option.meaning,
        shell_complete=offered,
    )


def _server_or_trouble(words: dict[str, Any]) -> dict[str, Any]:
    """As `_server`, but return the error if the command must run without a server, too."""
    from moorage.store.api import StoreError

    try:
        return _server(words)
    except (Failure, StoreError) as error:
        if not words.get("best_effort_always"):
            raise
        return {"trouble": str(error)}


def _server(words: dict[str, Any]) -> dict[str, Any]:
    """Return access to the server of the settings' database; empty if there is no database."""
    from moorage.cli.support.local_server import (  # deferred: most commands that run
        LocalServer,
        database_is_there,
    )
    from moorage.cli.support.settings import load  # in CI name their server, and need none of this
    from moorage.client.targets import token_named
    from moorage.serve.files import Files

    files = Files(load({}, os.environ.get("MOORAGE_CONFIG")).settings.database)
    if not database_is_there(files):
        return {}
    try:
        return {"server": LocalServer(files, token_named(words, os.environ))}
    except (OSError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None
