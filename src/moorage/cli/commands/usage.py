"""`moorage usage`: who uses how much."""

from collections.abc import Callable
from typing import get_args

import click

from moorage.cli.support import completion
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import show_json
from moorage.cli.support.tables import NOTHING, Column, Row, show_rows
from moorage.cli.support.views.consumer_text import resources_text
from moorage.client.ledger import Ledger
from moorage.wire.enums import UsageBy
from moorage.wire.usages import UsageLine, UsagesAsked

ABOUT: dict[str, tuple[tuple[Column, Callable[[UsageLine], str | None]], ...]] = {
    "project": ((Column("project", least=8), lambda line: line.project),),
    "user": (
        (Column("project", least=8), lambda line: line.project),
        (Column("user", least=8), lambda line: line.user),
    ),
    "type": ((Column("type"), lambda line: line.type),),
    "class": ((Column("class", least=12), lambda line: line.resource_class),),
}
"""The first columns of a line, by what it is about."""

CONSUMERS = Column("consumers", right=True)
AMOUNT = Column("used", right=True)
HOLDS = Column("holds", least=16, last=True)


@click.command(
    epilog=example(
        "moorage usage",
        "moorage usage --by user --class VCPU",
        "moorage usage --by type --project shop",
    )
)
@administering
@click.option(
    "--by",
    type=click.Choice(get_args(UsageBy)),
    default="project",
    help="One line per project (default), per user in a project, per consumer type, or per class.",
)
@click.option("--project", help="Only consumers of this project.")
@click.option("--user", help="Only consumers of this user.")
@click.option(
    "--type",
    "kind",
    help="Only consumers of this type, such as INSTANCE; unknown: those without a type.",
)
@click.option(
    "--class",
    "resource_class",
    metavar="CLASS",
    help="Only what is held of this resource class; the largest amount first.",
    shell_complete=completion.classes,
)
@click.option(
    "--limit", type=WholeNumber(1, 1_000_000), help="Print at most this many; all by default."
)
@wide_option
@json_option
def usage(
    by: UsageBy,
    project: str | None,
    user: str | None,
    kind: str | None,
    resource_class: str | None,
    limit: int | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Print how much consumers hold, by project, user, type or resource class.

    Lines are in the order of their names; with --class the largest amount comes first.
    """
    asked = UsagesAsked(by=by, project=project, user=user, type=kind, resource_class=resource_class)
    with at_server(Ledger) as ledger:
        found = [*ledger.usages(asked)]
    if resource_class is not None:
        found.sort(key=lambda line: -_amount(line, resource_class))
    found = found[:limit]
    if as_json:
        show_json(found)
        return
    one_class = by == "class" or resource_class is not None
    columns = [column for column, _ in ABOUT[by]]
    rows: list[Row] = [
        [
            *(read(line) or NOTHING for _, read in ABOUT[by]),
            str(line.consumers),
            str(_amount(line, resource_class)) if one_class else resources_text(line.resources),
        ]
        for line in found
    ]
    show_rows([*columns, CONSUMERS, AMOUNT if one_class else HOLDS], rows, wide=wide)


def _amount(line: UsageLine, resource_class: str | None) -> int:
    """Return how much of one class is held, of the asked one or of that of the line."""
    return line.resources.get(resource_class or line.resource_class or "", 0)
