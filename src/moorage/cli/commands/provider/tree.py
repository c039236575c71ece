"""`moorage provider tree`: providers below their parents, with what is used of each class."""

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import show_json
from moorage.cli.support.tables import show_rows
from moorage.cli.support.views.provider_text import TREE, tree_rows, trees_of
from moorage.client.ledger import Ledger


@click.command(epilog=example("moorage provider tree r05-n04", "moorage provider tree"))
@administering
@click.argument("text", metavar="[PROVIDER]", required=False, shell_complete=completion.providers)
@wide_option
@json_option
def tree(text: str | None, wide: bool, as_json: bool) -> None:
    """Print the tree that PROVIDER is in, or all trees, with the figures of each class.

    `capacity` is how many units may be allocated: of what is offered, without the reserved ones,
    times the allocation ratio. `free` is how many of them are not used.
    """
    with at_server(Ledger) as ledger:
        if text is None:
            found = [*ledger.providers()]
        else:
            found = [*ledger.tree_of(ids.provider_named(ledger, text).uuid)]
    if as_json:
        show_json(trees_of(found))
    else:
        show_rows(TREE, [*tree_rows(found)], wide=wide)
