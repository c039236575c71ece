"""The entry point of the command line: the group of all commands."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from moorage import __version__, starting
from moorage.cli.names import HOMES, SECTIONS, SUMMARIES, SUMMARY_MAX
from moorage.cli.support.environment import misspelt
from moorage.cli.support.options import example
from moorage.cli.support.output import FAILED, USAGE, Failure, error_json, forget_unwritten, say
from moorage.client.commands import COMMANDS

COMPLETE_VARIABLE = "_MOORAGE_COMPLETE"

UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why the output may not be written."""

WORDS = "moorage.words"
"""In a context's `meta`: the words after the first command."""

JSON_ASKED = "moorage.json_asked"
"""In a context's `meta`: whether the command line has `--json` before any `--`."""


def _imported(name: str) -> click.Command:
    """Import the module of a command and return the command."""
    if name not in HOMES:
        from moorage.cli.commands.run import command

        return command(name)
    module, _, attribute = HOMES[name].rpartition(".")
    home = import_module(f"moorage.cli.commands.{module or name}")
    found: click.Command = getattr(home, attribute)
    return found


class _Cli(click.Group):
    """All commands. A command with `--json` reports its failure as JSON, too.

    Each command is imported on demand: importing all of them takes longer than most of them run.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the commands by what they are about."""
        names = self.list_commands(ctx)
        others = [name for name in names if not any(name in those for those in SECTIONS.values())]
        for title, those in {**SECTIONS, "Other commands": others}.items():
            rows = [(name, self._summary(name)) for name in those if name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _summary(self, name: str) -> str:
        """Return the short help of a command, without importing it."""
        if name in SUMMARIES:
            return SUMMARIES[name]
        command = self.commands.get(name) or click.Command(name, help=COMMANDS[name][1])
        return command.get_short_help_str(SUMMARY_MAX)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """See click."""
        others = [name for name in COMMANDS if " " not in name]
        return sorted({*self.commands, *HOMES, *others})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """See click."""
        names = self.list_commands(ctx)
        # For an unknown name click suggests a similar command, so all of them must be loaded.
        for name in [cmd_name] if cmd_name in names else names:
            if name not in self.commands:
                self.add_command(_imported(name), name)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta[JSON_ASKED] = "--json" in ours
        with _errors_as_asked(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click. It imports the command; what follows is its work."""
        ctx.meta[WORDS] = args[1:]
        found = super().resolve_command(ctx, args)
        starting.end()
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        with _errors_as_asked(ctx):
            return super().invoke(ctx)


@contextmanager
def _errors_as_asked(ctx: click.Context) -> Iterator[None]:
    """Print an error as one line, of JSON if the command line has `--json`, and exit."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise  # its text is the help
    except click.ClickException as error:
        shown = _hinted(error)
        if not ctx.meta[JSON_ASKED]:
            raise _in_one_line(shown) from None
        say(error_json(shown), err=True)
        ctx.exit(error.exit_code)


def _hinted(error: click.ClickException) -> click.ClickException:
    """Return a failure; one for the verb of another program says which command is meant."""
    if not isinstance(error, click.exceptions.NoSuchCommand) or error.ctx is None:
        return error
    from moorage.cli.hints import hint  # deferred: it imports what it names

    rest = error.ctx.meta[WORDS] if error.ctx.parent is None else ()
    meant = hint(cli, error.ctx.command_path, error.command_name, rest)
    if meant is None:
        return error
    return Failure(error.exit_code, f"No such command '{error.command_name}': {meant}", "usage")


def _in_one_line(error: click.ClickException) -> click.ClickException:
    """Return a failure; one of the usage names the help of its command instead of showing it."""
    if isinstance(error, Failure):
        return error
    # click lists choices below each other.
    message = " ".join(error.format_message().split()).rstrip(".")
    if not isinstance(error, click.UsageError):
        return Failure(error.exit_code, message)
    see = " See" if message.endswith("?") else "; see"
    return Failure(error.exit_code, f"{message}{see} '{_path_of(error)} --help'")


def _path_of(error: click.UsageError) -> str:
    """Return the command that an error is about; click does not say it of an unfinished option."""
    if error.ctx is not None:
        return error.ctx.command_path
    context = click.get_current_context(silent=True)
    if context is None:
        return "moorage"
    path, command = context.command_path, context.command
    for word in (context.invoked_subcommand, *context.meta.get(WORDS, ())):
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if word is None or found is None:
            break
        path, command = f"{path} {word}", found
    return path


@click.group(cls=_Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="moorage", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Moorage: the ledger of a machine fleet's capacity, a drop-in OpenStack Placement."""
    for line in misspelt(os.environ):
        if ctx.invoked_subcommand == "serve":
            raise Failure(USAGE, line)
        say(f"moorage: {line}", err=True)


@cli.command(epilog=example("moorage completion bash >> ~/.bashrc"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for SHELL; source it in the startup file of that shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(cli, {}, "moorage", COMPLETE_VARIABLE).source() + "\n")


def main() -> None:
    """Run the command line and exit the process."""
    if COMPLETE_VARIABLE in os.environ:
        from moorage.cli.support.completion import register  # deferred: else nothing needs it

        register()
    if sys.stdout is None:  # the caller has closed its descriptor
        Failure(FAILED, "standard output is closed").show()
        sys.exit(FAILED)
    try:
        try:
            cli.main(prog_name="moorage", complete_var=COMPLETE_VARIABLE)
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        forget_unwritten(sys.stdout)
        if error.errno != errno.EPIPE:  # a reader such as `head` had enough
            Failure(FAILED, f"cannot write the output: {error.strerror}").show()
        sys.exit(FAILED)
    finally:
        if sys.stderr is not None:
            forget_unwritten(sys.stderr)
