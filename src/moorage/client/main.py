"""The command line of the client, also as a single file; `moorage` is built from the same table."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from moorage import __version__, starting
from moorage.client.commands import COMMANDS, EXAMPLES, GROUPS
from moorage.client.run.exit_codes import RUN_FAILED
from moorage.client.run.options import Option
from moorage.client.run.parse import UsageError, order_of
from moorage.client.run.progress import Progress
from moorage.client.run.variables import nearly

USAGE = 2
PROGRAM = "moorage"


def main(arguments: Sequence[str], us: Sequence[str], rest: str | None = None) -> int:
    """Execute a command line; return the exit code.

    Args:
        arguments: without the program's name.
        us: the command that runs this program, for the code that `trap` prints.
        rest: what the help says of other commands.
    """
    words, command = _split(arguments)
    for line in nearly(os.environ):
        Progress().say(line)
    try:
        given = vars(_parser(words, rest).parse_args(words))
    except UsageError as error:
        code = RUN_FAILED if words[:1] == ["run"] else USAGE
        Progress().fail(code, str(error), "usage", "--json" in words)
        return code
    name = given.pop("name", None)
    if name is None:
        _parser([], rest).print_help()
        return USAGE
    return carry_out(name, given, command, us)


def carry_out(
    name: str, words: Mapping[str, Any], command: Sequence[str], us: Sequence[str]
) -> int:
    """Execute one of `commands.COMMANDS`; return the exit code."""
    starting.end()
    notices = Progress()
    try:
        if name == "run":
            from moorage.client.run.run import run  # deferred: all that runs a command

            return run(order_of(words, tuple(command)), notices)
        if name == "version":
            sys.stdout.write(_version_text(words["json"]))
        elif name == "client.sh":
            from moorage.client.run.shell import (
                client_text,  # deferred: jobs need no code of a shell
            )

            sys.stdout.write(client_text())
        elif name == "trap":
            from moorage.client.run.shell import trap_text  # deferred: as above

            if not words["handle"]:
                raise UsageError("no handle: set the file of the leases with --handle")
            sys.stdout.write(trap_text(us, words["handle"], words["signal"] or ["EXIT"]))
        elif name.startswith("agent "):
            from moorage.client.agent.commands import agent_command  # deferred: jobs need no agent

            return agent_command(name, words, notices)
        else:
            from moorage.client.run.handles.commands import handle_command  # deferred: for files

            return handle_command(name, words, notices)
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except UsageError as error:
        notices.say(str(error))
        return RUN_FAILED if name == "run" else USAGE
    except OSError as error:
        notices.say(str(error))
        return RUN_FAILED if name == "run" else 1


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split off the command after `--`."""
    words = [*arguments]
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


class _Parser(argparse.ArgumentParser):
    """A parser that raises an exception instead of ending the process."""

    def error(self, message: str) -> Any:
        """Raise UsageError."""
        raise UsageError(message)


class _Formatter(argparse.HelpFormatter):
    """Keeps the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("Example") else super()._fill_text(text, width, indent)


def _examples(lines: Sequence[str]) -> str:
    title = "Example:" if len(lines) == 1 else "Examples:"
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _version_text(as_json: bool) -> str:
    if not as_json:
        return f"moorage {__version__}\n"
    return json.dumps({"moorage": __version__, "python": sys.version.split()[0]}) + "\n"


def _parser(words: Sequence[str], rest: str | None = None) -> argparse.ArgumentParser:
    """Return what parses these words: of other commands than theirs it knows the names only."""
    parser = _Parser(
        prog=PROGRAM,
        description="Run commands with leases of a Moorage server; report what a machine has.",
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"moorage {__version__}")
    groups = {"": parser.add_subparsers(metavar="COMMAND", parser_class=_Parser)}
    for name, (options, meaning) in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group not in groups:
            one = groups[""].add_parser(group, help=GROUPS[group], allow_abbrev=False)
            groups[group] = one.add_subparsers(
                metavar="COMMAND", required=True, parser_class=_Parser
            )
        command = groups[group].add_parser(
            last,
            help=meaning,
            description=meaning,
            epilog=_examples(EXAMPLES[name]),
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        command.set_defaults(name=name)
        parts = name.split()
        for option in options if [*words[: len(parts)]] == parts else ():
            _add(command, option)
        if name == "run":
            command.usage = "moorage run --pool POOL[=UNITS] [OPTIONS] -- COMMAND [ARGUMENTS]"
    return parser


def _add(parser: argparse.ArgumentParser, option: Option) -> None:
    meaning = option.meaning.replace("%", "%%")
    if option.positional:
        choices = option.choices or None
        parser.add_argument(
            option.word,
            metavar=option.metavar,
            choices=choices,
            help=meaning,
            nargs="?" if option.optional else None,
        )
        return
    if option.metavar is None and not option.choices:
        parser.add_argument(*option.names, action="store_true", dest=option.word, help=meaning)
        return
    parser.add_argument(
        *option.names,
        dest=option.word,
        metavar=option.metavar,
        choices=option.choices or None,
        action="append" if option.many else "store",
        default=[] if option.many else None,
        help=meaning,
    )
