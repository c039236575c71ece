"""`moorage pool report` and `moorage pool history`: what a pool was like."""

from dataclasses import fields

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.durations import SinceType, duration_text
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import say, show_json, show_table
from moorage.cli.support.tables import Cell, Column, show_rows
from moorage.cli.support.views.cells import clock_cell
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.core.counting import counted
from moorage.core.limits import PAGE_MAX
from moorage.wire.pools.past import HistoryPoint, PoolHistory
from moorage.wire.pools.reports import PoolReport

COLUMNS = (
    Column("from"),
    Column("most in use", right=True),
    Column("least in use", dropped=2, right=True),
    Column("most waiting", right=True),
    Column("granted", dropped=1, right=True),
)

POINTS = 24
"""Lines of a history by default: of a day, one each hour."""


@click.command(epilog=example("moorage pool history install/azure --since 48h --points 48"))
@administering
@click.argument("name", shell_complete=completion.pools)
@click.option(
    "--since", type=SinceType(), help="Start of the history, such as 7d or a date; 24h by default."
)
@click.option(
    "--points",
    type=WholeNumber(1, PAGE_MAX),
    default=POINTS,
    help="Number of lines, each for an equal part of the time; 24 by default.",
)
@wide_option
@json_option
def history(name: str, since: float | None, points: int, wide: bool, as_json: bool) -> None:
    """Print how many units of NAME were in use, and how many tickets waited, over time."""
    with at_server(Admission) as admission:
        past = ids.pool_of(
            admission, name, lambda one: admission.pool_history(one, since, points), reads=True
        )
    if as_json:
        show_json(past)
        return
    show_rows(COLUMNS, [_row(point) for point in past.points], wide=wide)
    if (missing := _missing(past)) is not None:
        say(f"moorage: {missing}", err=True)


@click.command(epilog=example("moorage pool report install/azure"))
@administering
@click.argument("name", shell_complete=completion.pools)
@click.option(
    "--since",
    type=SinceType(),
    help="Only leases that ended since then: 7d, or a date; 24h by default.",
)
@json_option
def report(name: str, since: float | None, as_json: bool) -> None:
    """Print how long leases of NAME waited and lasted, and the outcomes of their starts."""
    with at_server(Admission) as admission:
        report = ids.pool_of(
            admission, name, lambda one: admission.pool_report(one, since), reads=True
        )
    if as_json:
        show_json(report)
    else:
        _show_report(report)


def _row(point: HistoryPoint) -> list[Cell | str]:
    return [
        clock_cell(point.at),
        str(point.occupied_high),
        str(point.occupied_low),
        str(point.waiting),
        str(point.granted),
    ]


def _covered(report: PoolReport) -> str:
    hours, rest = divmod(report.covered_seconds, 3_600)
    if 0 < hours <= 24 and not rest:
        return counted(round(hours), "hour")
    return duration_text(round(report.covered_seconds))


def _missing(past: PoolHistory) -> str | None:
    """Return why less time is covered than was asked for; None: all of it is."""
    if past.covered_seconds >= past.asked_seconds:
        return None
    covered, asked = (
        duration_text(round(one)) for one in (past.covered_seconds, past.asked_seconds)
    )
    why = "the pool is younger, or older leases are no longer kept"
    if past.cut:
        why = "too many leases have ended in this time"
    return f"the lines cover only {covered} of {asked}: {why}"


def _show_report(report: PoolReport) -> None:
    rows = [
        [what, *(duration_text(round(one, 3)) for one in seconds)]
        for what, seconds in (
            ("waited", report.waited),
            ("held", report.held),
            ("gave up after", report.gave_up_after),
        )
        if seconds is not None
    ]
    leases = counted(report.leases, "lease")
    say(f"{leases} ended within the last {_covered(report)}")
    if report.gave_up:
        say(f"{counted(report.gave_up, 'ticket')} gave up: their clients no longer waited")
    if report.cut:
        say("more leases have ended than a report can cover: it leaves out the older ones")
    elif report.covered_seconds < report.asked_seconds:
        asked = duration_text(report.asked_seconds)
        say(f"older leases are no longer kept, so the report does not cover {asked}")
    if rows:
        show_table(["", "median", "90 %", "99 %"], rows)
    if report.causes:
        show_table(["cause", "leases"], [[cause, str(n)] for cause, n in report.causes.items()])
    if report.outcomes:
        columns = [field.name for field in fields(report.outcomes[0])]
        rows = [[plain_text(getattr(line, name)) for name in columns] for line in report.outcomes]
        show_table([name.replace("_", " ") for name in columns], rows)
