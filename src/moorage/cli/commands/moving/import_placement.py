"""`moorage import placement`: moves the ledger of OpenStack Placement in."""

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.support.moving import (
    at_our_server,
    from_original,
    moving_errors,
    our_server,
    placement_there,
    source_of,
)
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import CONFLICT, FAILED, USAGE, Failure, say, show_json
from moorage.cli.support.progress import progress
from moorage.client.run.clock import elapsed
from moorage.client.transport import RefusedError

if TYPE_CHECKING:
    from moorage.integrations.placement.importing import Import, Step
    from moorage.integrations.placement.ledger import Ledger
    from moorage.integrations.placement.oddities import Oddities

STEPS = ("copy", "follow", "finish", "abort")


@click.command(
    epilog=example(
        "moorage import placement --database-file placement.url --copy",
        "moorage import placement --database-file placement.url --follow",
        "moorage import placement --database-file placement.url --finish",
    )
)
@at_our_server
@from_original
@click.option("--copy", "steps", flag_value="copy", multiple=True, help="Copy all rows.")
@click.option(
    "--follow", "steps", flag_value="follow", multiple=True, help="Copy what has changed since."
)
@click.option(
    "--finish",
    "steps",
    flag_value="finish",
    multiple=True,
    help="Copy the last changes, check all rows, and open the ledger; nothing may write to the"
    " original meanwhile.",
)
@click.option(
    "--abort", "steps", flag_value="abort", multiple=True, help="Delete all rows that were copied."
)
@click.option(
    "--leave-out",
    multiple=True,
    metavar="CODE",
    help="Leave out rows that are odd in this way; may be repeated.",
)
@click.option(
    "--complete",
    multiple=True,
    metavar="CODE",
    help="Complete rows that are odd in this way; may be repeated.",
)
@click.option(
    "--report",
    metavar="NAME",
    default="placement-import",
    help="Write what is odd to NAME.json and NAME.txt; placement-import by default.",
)
@json_option
def placement(
    steps: tuple[str, ...],
    leave_out: tuple[str, ...],
    complete: tuple[str, ...],
    report: str,
    as_json: bool,
    **words: Any,
) -> None:
    """Import the ledger of OpenStack Placement into an empty one.

    Without --copy, --follow, --finish or --abort it copies and finishes at once. Until it is
    finished, Moorage refuses requests to its ledger with 503. After an interruption, run the same
    command again.

    Exit codes: 0 done; 1 there is data that cannot be kept, or the original cannot be read; 4 the
    original changes during --finish, or another command has taken the import over.
    """
    began = elapsed()
    if len(set(steps)) > 1:
        raise Failure(USAGE, f"give one of {', '.join(f'--{step}' for step in STEPS)}")
    step = steps[0] if steps else None
    with placement_there():
        from moorage.integrations.placement.ledger import Ledger
    ledger = Ledger(our_server())
    if step == "abort":
        _abort(ledger)
        return
    _carry_out(step, ledger, (leave_out, complete), report, began, as_json, words)


def _abort(ledger: "Ledger") -> None:
    """End the import; one that was interrupted may have ended meanwhile."""
    with moving_errors():
        try:
            ledger.abort()
        except RefusedError as refusal:
            if refusal.code != "import_not_found":
                raise
            say("nothing to abort: no import is under way")
            return
    say("aborted: the ledger is empty")


def _carry_out(
    step: str | None,
    ledger: "Ledger",
    choices: tuple[tuple[str, ...], tuple[str, ...]],
    report_name: str,
    began: float,
    as_json: bool,
    words: dict[str, Any],
) -> None:
    with placement_there():
        from moorage.integrations.placement.importing import (
            ChangingError,
            Import,
            ImportingError,
            OddError,
        )
        from moorage.integrations.placement.oddities import Oddities
        from moorage.integrations.placement.report import Report

    try:
        Oddities(*choices)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    source = source_of(words)
    report = Report(report_name, source.shown)
    with progress() as shown, moving_errors():
        for warning in source.warnings():
            shown.clear()
            say(f"moorage: {warning}", err=True)
        work = Import(source, ledger, lambda: Oddities(*choices), shown, report.write)
        try:
            done = _steps(work, step)
        except OddError as error:
            shown.clear()
            _say_odd(error.oddities, as_json)
            raise Failure(FAILED, f"{error}; see {report.text}", "odd_data") from None
        except ChangingError as error:
            raise Failure(CONFLICT, str(error), "source_changes") from None
        except ImportingError as error:
            raise Failure(FAILED, str(error)) from None
        except OSError as error:
            raise Failure(USAGE, f"cannot write the report: {error.strerror}") from None
        finally:
            source.close()
    _print(step, done, elapsed() - began, report, as_json)


def _steps(work: "Import", step: str | None) -> "Step":
    steps = {None: work.whole, "copy": work.copy, "follow": work.follow, "finish": work.finish}
    return steps[step]()


def _say_odd(oddities: "Oddities", as_json: bool) -> None:
    """Print the kinds that need a choice."""
    from moorage.integrations.placement.oddities import KINDS, choices_text

    if as_json:
        return
    for code, found in oddities.refused():
        say(f"moorage: {code} ({found.count}): {KINDS[code].meaning}", err=True)
        say(f"moorage:   such as {found.named[0]}", err=True)
        say(f"moorage:   {choices_text(code)}", err=True)


def _print(step: str | None, done: "Step", seconds: float, report: Any, as_json: bool) -> None:
    """Print what a step has done."""
    rows = done.reading.rows.counts()
    odd = {code: found.count for code, found in sorted(done.reading.oddities.found.items())}
    finished = step in (None, "finish")
    if as_json:
        show_json(
            {
                "finished": finished,
                "rows": rows,
                "sent": done.sent,
                "seconds": round(seconds, 3),
                "oddities": odd,
                "report": str(report.json),
            }
        )
        return
    counts = ", ".join(f"{count} {kind}" for kind, count in rows.items())
    say(f"{'finished' if finished else 'copied'}: {counts}; {done.sent} rows differed")
    if odd:
        named = ", ".join(f"{code} ({count})" for code, count in odd.items())
        say(f"odd: {named}; see {report.text}")
    if finished:
        say(f"the ledger is open, {seconds:.1f} s after this command began")
    else:
        say(f"{seconds:.1f} s; requests to the ledger are refused until --finish")
