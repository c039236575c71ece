"""`moorage export placement`: moves the ledger into a database of OpenStack Placement."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from moorage.cli.support.moving import (
    DATABASE_OPTIONS,
    at_our_server,
    database_of,
    moving_errors,
    our_server,
    placement_there,
)
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import CONFLICT, FAILED, USAGE, Failure, say, show_json
from moorage.cli.support.progress import progress
from moorage.cli.support.provisioning import with_options
from moorage.client.run.clock import elapsed

if TYPE_CHECKING:
    from moorage.integrations.placement.exporting import Exported


def _to_database(command: Callable[..., None]) -> Callable[..., None]:
    return with_options(DATABASE_OPTIONS, command)


@click.command(epilog=example("moorage export placement --database-file placement.url"))
@at_our_server
@_to_database
@click.option(
    "--trial",
    is_flag=True,
    help="Write the state of one moment although the ledger changes; only to try it.",
)
@json_option
def placement(database: str | None, database_file: str | None, trial: bool, as_json: bool) -> None:
    """Export the ledger into an empty database of OpenStack Placement.

    The schema must have been made by `placement-manage db sync`. Everything is written in one
    transaction and checked before it is committed: after an interruption, run the same command
    again.

    Exit codes: 0 done; 1 the database cannot hold the ledger; 4 the ledger changes.
    """
    if (database is None) == (database_file is None):
        raise Failure(USAGE, "give either --database or --database-file")
    began = elapsed()
    url = database_of(database, database_file)
    transport = our_server()
    with placement_there():
        from moorage.integrations.placement.exporting import (
            ChangingError,
            Export,
            ExportingError,
        )
        from moorage.integrations.placement.whole_ledger import WholeLedger
    with progress() as shown, moving_errors():
        try:
            done = Export(WholeLedger(transport), shown, trial=trial).run(url)
        except ChangingError as error:
            raise Failure(CONFLICT, str(error), "ledger_changes") from None
        except ExportingError as error:
            raise Failure(FAILED, str(error)) from None
    _print(done, elapsed() - began, as_json)


def _print(done: "Exported", seconds: float, as_json: bool) -> None:
    if as_json:
        show_json({**vars(done), "seconds": round(seconds, 3)})
        return
    counts = ", ".join(f"{count} {kind}" for kind, count in done.rows.items())
    if done.already:
        say(f"already exported, and the same: {counts}")
    else:
        say(f"exported and checked: {counts}; {seconds:.1f} s")
    for title, notes in (
        ("written as reserved, because it is not offered", done.reserved),
        ("rounded to single precision", done.rounded),
    ):
        if notes:
            say(f"{title}: {len(notes)}")
            for note in notes:
                say(f"  {note}")
    for what, count in done.left_here.items():
        say(f"only in Moorage: {what}: {count}")
