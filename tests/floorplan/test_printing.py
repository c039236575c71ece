"""All text from outside passes `printable` before it reaches a terminal."""

import ast

from tests.floorplan.tidy import ROOT

CLI = ROOT / "src/moorage/cli"
ONE_PLACE = "output.py"


def echoes(source: str) -> list[int]:
    """Return the numbers of the lines that bypass `cli/support/output.py`."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr in ("echo", "secho", "echo_via_pager")
        and isinstance(node.value, ast.Name)
        and node.value.id == "click"
    )


def test_commands_print_through_one_module() -> None:
    """No command calls `click.echo`: `support/output.py` makes every text printable first."""
    found = {
        path.name: lines
        for path in sorted(CLI.rglob("*.py"))
        if (lines := echoes(path.read_text()))
    }
    assert [*found] == [ONE_PLACE], f"use moorage.cli.support.output.say: {found}"


def test_the_check_sees_a_call() -> None:
    """Both a call of `click.echo` and a mere reference to a function like it are found."""
    assert echoes("import click\nclick.echo('a')\nshow = click.secho\n") == [2, 3]
