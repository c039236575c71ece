"""The help of every command shows examples, and each of them parses."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from moorage.cli.main import cli
from moorage.client.commands import COMMANDS, EXAMPLES
from moorage.client.main import _parser

SHELL = re.compile(r"^\s+(?:eval \"\$\()?(?P<line>moorage .*?)(?:\)\"| [<>]+ \S+)?$")
"""A line of an example: the command without the shell's syntax around it."""


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command below a group that is not itself a group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name)


def examples(text: str) -> list[list[str]]:
    """Return the command lines below `Example:` or `Examples:` in a help text, split into words."""
    _, title, lines = text.partition("\n  Example")
    shown = lines.splitlines()[1:]
    assert title and shown
    found = [SHELL.match(line) for line in shown]
    assert all(found), shown
    return [shlex.split(one["line"]) for one in found if one]


@pytest.mark.parametrize("words", [*leaves(cli)], ids=" ".join)
def test_every_command_has_examples_that_parse(words: tuple[str, ...]) -> None:
    """An example starts with the command's words and has valid options and arguments."""
    shown = CliRunner().invoke(cli, [*words, "--help"], prog_name="moorage")
    assert shown.exit_code == 0, shown.output
    for line in examples(shown.output):
        assert line[: len(words) + 1] == ["moorage", *words]
        command: click.Command = cli
        context = click.Context(cli)
        for word in words:
            assert isinstance(command, click.Group)
            below = command.get_command(context, word)
            assert below is not None
            command = below
        command.make_context(words[-1], line[len(words) + 1 :])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_single_file_shows_the_same_examples(name: str) -> None:
    """Its help has the same unwrapped examples, and its own parser accepts them."""
    words = name.split()
    for line in EXAMPLES[name]:
        found = SHELL.match(f"  {line}")
        assert found is not None
        ours = shlex.split(found["line"].partition(" -- ")[0])
        assert vars(_parser(ours[1:]).parse_args(ours[1:]))["name"] == name
        assert ours[1 : len(words) + 1] == words


def test_help_of_the_single_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Each example is on one line, however narrow the terminal is."""
    with pytest.raises(SystemExit):
        _parser(["run"]).parse_args(["run", "--help"])
    assert f"\n  {EXAMPLES['run'][0]}\n" in capsys.readouterr().out
