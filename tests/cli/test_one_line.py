"""Every error of the usage is one line that begins with `moorage:`, also those of click itself."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from moorage.cli.main import cli
from moorage.cli.names import SECTIONS
from moorage.client.commands import COMMANDS
from tests.cli.test_help import leaves

CHOICE = "no-such-choice"


def _command(words: tuple[str, ...]) -> click.Command:
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(cli), word)
        assert found is not None
        command = found
    return command


def _wrong() -> Iterator[tuple[str, ...]]:
    """Yield each command with nothing, with an unknown option, and with each option unfinished."""
    for words in leaves(cli):
        if " ".join(words) in COMMANDS:
            continue  # those of the single file parse their options themselves
        yield (*words, "--no-such-option")
        for parameter in _command(words).params:
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                yield (*words, parameter.opts[0])
            if isinstance(parameter, click.Option) and isinstance(parameter.type, click.Choice):
                yield (*words, parameter.opts[0], CHOICE)


def test_errors_have_one_form() -> None:
    """One line, without the escapes of line breaks."""
    seen = 0
    for words in _wrong():
        done = CliRunner().invoke(cli, [*words], prog_name="moorage")
        assert done.exit_code == 2, words
        lines = done.output.splitlines()
        assert len(lines) == 1, (words, done.output)
        assert lines[0].startswith("moorage: "), (words, lines)
        assert "\\n" not in lines[0], (words, lines)
        own = " ".join(word for word in words if not word.startswith("-") and word != CHOICE)
        assert "--help" not in lines[0] or f"'moorage {own} --help'" in lines[0], (words, lines)
        seen += 1
    assert seen > 200


def test_the_help_has_each_command_once() -> None:
    """Those of no section are among the others, so that none is forgotten."""
    shown = CliRunner().invoke(cli, ["--help"], prog_name="moorage").output
    for name in cli.list_commands(click.Context(cli)):
        assert shown.count(f"\n  {name} ") == 1, name
    assert {name for those in SECTIONS.values() for name in those} <= {
        *cli.list_commands(click.Context(cli))
    }
    assert all(f"\n{title}:\n" in shown for title in SECTIONS)


LOADED = """
import sys
from moorage.cli.main import cli
try:
    cli.main(["pool", "list", "--url", "http://127.0.0.1:1", "--token", "x"], standalone_mode=False)
except Exception as error:
    assert "no answer" in str(error), error
print(*sys.modules)
"""


def test_a_command_that_asks_a_server_does_not_load_the_service() -> None:
    """It takes most of a second of processor time."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = {*done.stdout.split()}
    assert "moorage.client.admission" in loaded
    assert not {"numpy", "moorage.service.app", "jsonschema", "uvicorn", "jinja2"} & loaded


@pytest.mark.parametrize(
    "since", ["2020-01-01", "2020-01-01T04:31", "2020-01-01T04:31+02:00", "1h"]
)
def test_since_takes_a_date_or_a_duration(since: str) -> None:
    """Without a zone it is in UTC."""
    command = _command(("audit",))
    context = command.make_context("audit", ["--since", since, "--token", "x"])
    assert context.params["since"] > 3_599


@pytest.mark.parametrize("since", ["2999-01-01", "2020-13-01", "yesterday", ""])
def test_since_refuses_what_is_no_time_in_the_past(since: str) -> None:
    """The error says what it may be."""
    with pytest.raises(click.BadParameter, match=r"not in the past|such as 23:00"):
        _command(("audit",)).make_context("audit", ["--since", since])
