"""`moorage find`: finds things of all kinds by a text."""

import click

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import say, show_json
from moorage.cli.support.tables import Column, show_rows
from moorage.client.finding import Finder
from moorage.core.limits import FIND_LIMIT_MAX

COLUMNS = (
    Column("kind"),
    Column("name", least=16),
    Column("id", least=36),
    Column("detail", least=12, last=True),
)


@click.command(epilog=example("moorage find r05-n04", "moorage find job=4711"))
@administering
@click.argument("text")
@click.option(
    "--limit",
    type=WholeNumber(1, FIND_LIMIT_MAX),
    default=10,
    show_default=True,
    help="Print at most this many of each kind.",
)
@wide_option
@json_option
def find(text: str, limit: int, wide: bool, as_json: bool) -> None:
    """Find machines, agents, pools, leases, consumers and others by TEXT.

    TEXT is a part of a name, the first 8 characters of an id, a part of a label (NAME=VALUE) or of
    the name of a lease's owner, or a project.
    """
    with at_server(Finder) as finder:
        answer = finder.find(text, limit)
    if as_json:
        show_json(answer)
        return
    rows = [[one.kind, one.name, one.id, one.detail] for one in answer.found]
    show_rows(COLUMNS, rows, wide=wide)
    if not rows:
        say("moorage: users are not searched; see `moorage consumer list --user USER`", err=True)
    if answer.more:
        say(f"moorage: there are more: {', '.join(answer.more)}; see --limit", err=True)
