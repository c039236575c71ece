"""`moorage fleet`: how much of each resource class there is, is used, and is free."""

import click

from moorage.cli.support import completion
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import say, show_json
from moorage.cli.support.tables import NOTHING, Column, Row, show_rows
from moorage.cli.support.views.fleet_text import (
    CAPACITY,
    capacity_rows,
    grouped,
    share_cell,
)
from moorage.client.ledger import Ledger
from moorage.core.limits import CAPACITY_ENDS_MAX, CAPACITY_NAMED_MAX, PAGE_MAX
from moorage.wire.capacity import Capacity, CapacityAsked

CLASS = "class"

PROVIDERS = (
    Column("which"),
    Column("provider"),
    Column("used", dropped=1, right=True),
    Column("capacity", dropped=2, right=True),
    Column("used%", right=True),
    Column("uuid", dropped=3),
)


@click.command(
    epilog=example(
        "moorage fleet", "moorage fleet --by trait --class VCPU", "moorage fleet --providers 5"
    )
)
@administering
@click.option(
    "--by",
    type=click.Choice([CLASS, "aggregate", "trait"]),
    default=CLASS,
    help="One line per class, or per class and aggregate or trait.",
)
@click.option(
    "--class",
    "resource_class",
    metavar="CLASS",
    help="Only this resource class.",
    shell_complete=completion.classes,
)
@click.option(
    "--providers",
    "ends",
    type=WholeNumber(1, CAPACITY_ENDS_MAX),
    metavar="N",
    help="Print the N fullest and the N emptiest providers of each line instead; at most 10.",
)
@wide_option
@json_option
def fleet(by: str, resource_class: str | None, ends: int | None, wide: bool, as_json: bool) -> None:
    """Print the capacity of all providers by resource class: total, ratio, offered, used, free.

    Offered is what may be allocated: what is there without what is reserved, times the ratio.

    All figures are of one revision of the ledger.
    """
    count = ends or 1
    limit = min(PAGE_MAX, CAPACITY_NAMED_MAX // count)
    asked = CapacityAsked(by=by, resource_class=resource_class, ends=count, limit=limit)  # type: ignore[arg-type] # the option has these choices
    with at_server(Ledger) as ledger:
        found = ledger.capacity(asked)
    if as_json:
        show_json(found)
        return
    if ends is None:
        columns = CAPACITY if by == CLASS else grouped(by)
        show_rows(columns, capacity_rows(found.lines, groups=by != CLASS), wide=wide)
    else:
        _show_ends(found, by, wide=wide)
    if found.left_out:
        hint = "; --class shows one class" if resource_class is None else ""
        say(f"moorage: and {found.left_out} more lines{hint}", err=True)


def _show_ends(found: Capacity, by: str, *, wide: bool) -> None:
    """Print the fullest and the emptiest providers of each line."""
    groups = () if by == CLASS else (Column(by),)
    rows: list[Row] = [
        [
            line.resource_class,
            *([line.group or NOTHING] if groups else []),
            end,
            one.name,
            str(one.used),
            str(one.capacity),
            share_cell(one.used, one.capacity),
            one.uuid,
        ]
        for line in found.lines
        for end, those in (("fullest", line.fullest), ("emptiest", line.emptiest))
        for one in those
    ]
    show_rows((Column("class", least=12), *groups, *PROVIDERS), rows, wide=wide)
