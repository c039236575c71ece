"""`moorage watch`: every change of the ledger and of admission, as it happens."""

import json
from typing import Any

import click
import msgspec

from moorage.cli.support.command import administering, server
from moorage.cli.support.options import json_option
from moorage.cli.support.output import FAILED, Failure, printable_json, say
from moorage.wire.changes import VALUES, Change


@click.command()
@administering
@click.option("--after", metavar="CURSOR", help="Begin after it; by default with what comes now.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice([*VALUES]), help="Only these changes."
)
@click.option("--count", type=click.IntRange(1), help="End after so many changes.")
@json_option
def watch(after: str | None, kinds: tuple[str, ...], count: int | None, as_json: bool) -> None:
    """Print every change of the ledger, one per line, until interrupted; survives restarts."""
    from moorage.cli.support.backend import refusals_told  # only now: it loads the whole service
    from moorage.client.watch import ChangesGoneError, Watch

    following = Watch(server(), after, kinds)
    try:
        with refusals_told():
            for number, change in enumerate(following, 1):
                say(*_cells(following.cursor, change, as_json))
                if number == count:
                    return
    except ChangesGoneError as gone:
        raise Failure(FAILED, str(gone)) from None
    except KeyboardInterrupt:
        return


def _cells(cursor: str | None, change: Change, as_json: bool) -> list[str]:
    told: dict[str, Any] = msgspec.to_builtins(change)
    if as_json:
        return [printable_json(json.dumps({"cursor": cursor, **told}, ensure_ascii=False))]
    value = printable_json(json.dumps(told["value"], ensure_ascii=False))
    return [cursor or "-", change.kind, change.key, value]
