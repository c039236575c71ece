"""`moorage apply`: let pools be as a file says."""

import sys
from typing import Any

import click
import msgspec

from moorage.cli.administering import administering, at_server
from moorage.cli.options import json_option
from moorage.cli.output import FAILED, USAGE, Failure, show_json
from moorage.cli.pool_files import Difference, differences, read


@click.command()
@administering
@click.option(
    "-f", "--file", "path", required=True, metavar="FILE", help="Pools in TOML, or .yaml."
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is changed.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be changed.")
@json_option
def apply(path: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Tell how pools differ from what FILE says, and let them be so; others are left alone.

    To repeat it is harmless. A pool that somebody else changes meanwhile is refused, with 4.
    """
    asks = not (yes or dry_run)
    if asks and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise Failure(USAGE, "name --yes or --dry-run: there is nobody to ask")
    wanted = read(path)
    with at_server() as admission:
        found = differences(wanted, admission.pools())
        due = [one for one in found if one.action != "keep"]
        if not as_json:
            for one in found:
                click.echo("\n".join(one.lines()))
            click.echo(_count(found))
        applied = bool(due) and not dry_run
        if applied and asks and not click.confirm("Do so?"):
            raise Failure(FAILED, "nothing was changed")
        for one in due if applied else ():
            made = admission.pool_put(one.name, one.wanted)
            if not as_json:
                done = "made" if one.action == "create" else "changed"
                click.echo(f"{done} {made.name}")
    if as_json:
        show_json({"applied": applied, "pools": [_told(one) for one in found]})


def _count(found: list[Difference]) -> str:
    actions = [one.action for one in found]
    new, changed = actions.count("create"), actions.count("change")
    return f"{new} to make, {changed} to change, {actions.count('keep')} as they shall be"


def _told(one: Difference) -> dict[str, Any]:
    changes = {
        name: msgspec.to_builtins({"before": before, "after": after})
        for name, (before, after) in one.changes.items()
    }
    return {"name": one.name, "action": one.action, "changes": changes}
