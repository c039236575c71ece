"""`moorage watch`: prints changes of the ledger and of admission as they are committed."""

import json
from typing import Any

import click
import msgspec

from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import WholeNumber, example, json_option
from moorage.cli.support.output import FAILED, Failure, printable_json, say
from moorage.client.watch import ChangesGoneError, Watch
from moorage.wire.changes import VALUES, Change


@click.command(epilog=example("moorage watch --kind pool --kind lease"))
@administering
@click.option(
    "--after", metavar="CURSOR", help="Begin after this cursor; by default with the next change."
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([*VALUES]),
    help="Only changes of this kind.",
)
@click.option("--count", type=WholeNumber(1), help="Exit after this many changes.")
@json_option
def watch(after: str | None, kinds: tuple[str, ...], count: int | None, as_json: bool) -> None:
    """Print every change of the ledger, one per line, until interrupted.

    Reconnects when the server restarts.
    """
    try:
        with at_server(lambda transport: Watch(transport, after, kinds)) as following:
            for number, change in enumerate(following, 1):
                say(*_cells(following.cursor, change, as_json))
                if number == count:
                    return
    except ChangesGoneError as gone:
        raise Failure(FAILED, str(gone)) from None
    except KeyboardInterrupt:
        return


def _cells(cursor: str | None, change: Change, as_json: bool) -> list[str]:
    shown: dict[str, Any] = msgspec.to_builtins(change)
    if as_json:
        return [printable_json(json.dumps({"cursor": cursor, **shown}, ensure_ascii=False))]
    value = printable_json(json.dumps(shown["value"], ensure_ascii=False))
    return [cursor or "-", change.kind, change.key, value]
