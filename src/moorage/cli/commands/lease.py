"""`moorage lease`: prints leases and tickets; moves and forces them."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any, get_args

import click
import msgspec

from moorage.cli.commands.lease_revoke import revoke
from moorage.cli.commands.lease_why import why
from moorage.cli.commands.run import attach
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import DurationType, duration_text
from moorage.cli.support.options import example, json_option, label_option, wide_option
from moorage.cli.support.output import USAGE, Failure, say, show_json, show_table
from moorage.cli.support.tables import NOTHING, Cell, Column, show_rows
from moorage.cli.support.views.cells import age_cell, end_cell, id_cells, number_text, state_cell
from moorage.cli.support.views.lease_text import (
    eta_text,
    late_lines,
    needs_cell,
    needs_text,
    since_of,
    time_text,
    until_of,
)
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.wire.admission import Lease
from moorage.wire.enums import State
from moorage.wire.labels import holder_of

COLUMNS = (
    Column("id"),
    Column("holder", least=12),
    Column("state"),
    Column("needs"),
    Column("place", dropped=3, right=True),
    Column("asked", "age", right=True),
    Column("ends", dropped=2),
    Column("reason", dropped=1, least=14, last=True),
)

ABOUT = ("verb", "conductor", "image", "ironic")
"""Labels that have a column if a lease has one; on a narrow terminal the last is dropped first."""

SORTS: dict[str, Callable[[Lease], Any]] = {
    "age": since_of,
    "ends": lambda lease: (until_of(lease) is None, until_of(lease), since_of(lease)),
    "pool": lambda lease: (needs_text(lease), since_of(lease)),
    "holder": lambda lease: (holder_of(lease.owner, lease.labels), since_of(lease)),
}
"""Orders of a list."""


@click.group("lease")
def group() -> None:
    """List, show, move and revoke leases and tickets; keep leases in files."""


attach(group)
group.add_command(why)
group.add_command(revoke)


@group.command("list", epilog=example("moorage lease list --pool install/azure --state waiting"))
@administering
@click.option(
    "--pool", help="Only those that need units of this pool.", shell_complete=completion.pools
)
@click.option(
    "--state", type=click.Choice(get_args(State)), help="By default granted and waiting ones."
)
@click.option("--owner", help="Only those of this owner, or holder as lists show it.")
@click.option("--mine", is_flag=True, help="Only those of the caller's own.")
@label_option("Only those with this label, NAME=VALUE; may be repeated.")
@click.option(
    "--unheard", is_flag=True, help="Only those that keep their units without a renewal in time."
)
@click.option(
    "--older",
    type=DurationType(),
    help="Only those that have waited, been granted or ended for at least this long.",
)
@click.option(
    "--sort",
    type=click.Choice([*SORTS]),
    help="Oldest or soonest first; by default granted ones, then waiting ones, as they asked.",
)
@wide_option
@json_option
def list_(
    pool: str | None,
    state: str | None,
    sort: str | None,
    unheard: bool,
    wide: bool,
    as_json: bool,
    **only: Any,
) -> None:
    """Print leases and tickets; ended ones are kept for a while."""
    with at_server() as admission:
        leases = list(_found(admission, pool, state, **only))
        if not leases and only["owner"] is not None:
            leases = _held_by(admission, pool, state, **only)
        if pool is not None and not leases:
            admission.pool(pool)  # raises if there is no such pool
    if unheard:
        leases = [lease for lease in leases if lease.unheard]
    if sort is not None:
        leases.sort(key=SORTS[sort])
    if as_json:
        show_json(msgspec.to_builtins(leases))
        return
    about = [name for name in ABOUT if any(name in lease.labels for lease in leases)]
    columns = [Column(name, dropped=10 + ABOUT.index(name), least=8) for name in about]
    shown, now = id_cells(lease.id for lease in leases), server_now()
    rows = [
        [shown[lease.id], *_row(lease, now), *(lease.labels.get(name, NOTHING) for name in about)]
        for lease in leases
    ]
    show_rows([*COLUMNS, *columns], rows, wide=wide)


@group.command(epilog=example("moorage lease show 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"))
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@json_option
def show(text: str, as_json: bool) -> None:
    """Print all properties of the lease or ticket ID."""
    with at_server() as admission:
        lease = admission.lease(ids.lease_id(admission, text))
    if as_json:
        show_json(msgspec.to_builtins(lease))
        return
    shown = asdict(lease) | {"needs": needs_text(lease), "late_releases": [*late_lines(lease)]}
    shown |= {name: duration_text(getattr(lease, name)) for name in ("ttl", "hold")}
    if lease.waiting is not None:
        shown["waiting"] = lease.waiting.reason
        shown |= {"position": lease.waiting.position, "eta": eta_text(lease.waiting)}
    show_table(["property", "value"], [[name, plain_text(value)] for name, value in shown.items()])


@group.command(
    epilog=example(
        "moorage lease move 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --first",
        "moorage lease move 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --priority 10",
    )
)
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@click.option("--priority", type=int, help="The new priority; a higher one goes first.")
@click.option("--first", is_flag=True, help="Make it the first in all its lines.")
@json_option
def move(text: str, priority: int | None, first: bool, as_json: bool) -> None:
    """Move the ticket ID in its lines; exit code 4 if it does not wait any more."""
    if first == (priority is not None):
        raise Failure(USAGE, "where to? Use either --first, or --priority NUMBER")
    with at_server() as admission:
        lease = admission.move(ids.lease_id(admission, text, changing=True), priority)
    _show_one(lease, as_json, f"moved {lease.id}: priority {lease.priority}, {_place(lease)}")


@group.command(epilog=example("moorage lease force 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"))
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@json_option
def force(text: str, as_json: bool) -> None:
    """Grant the ticket ID at once, over the limit if necessary; it is shown as forced."""
    with at_server() as admission:
        lease = admission.force(ids.lease_id(admission, text, changing=True))
    _show_one(lease, as_json, f"forced {lease.id}: {_place(lease)}")


def _show_one(lease: Lease, as_json: bool, line: str) -> None:
    if as_json:
        show_json(msgspec.to_builtins(lease))
    else:
        say(line)


def _place(lease: Lease) -> str:
    return lease.state if lease.waiting is None else f"place {lease.waiting.position}"


def _found(
    admission: Admission, pool: str | None, state: str | None, **only: Any
) -> Iterator[Lease]:
    for one in ("granted", "waiting") if state is None else (state,):
        yield from admission.leases(pool, one, **only)


def _held_by(
    admission: Admission, pool: str | None, state: str | None, *, owner: str, **only: Any
) -> list[Lease]:
    """Return the leases whose holder is shown as this text, which labels may be part of."""
    found = _found(admission, pool, state, owner=None, **only)
    held = [lease for lease in found if holder_of(lease.owner, lease.labels) == owner]
    if not held:
        say(f"moorage: no lease here is of '{owner}', neither as owner nor as holder", err=True)
    return held


def _row(lease: Lease, now: datetime) -> list[Cell | str]:
    remark: str = lease.cause or ("unheard" if lease.unheard else "")
    if lease.waiting is not None:
        remark = lease.waiting.reason
    ends = end_cell(until_of(lease), now)
    return [
        holder_of(lease.owner, lease.labels),
        state_cell(lease.state),
        needs_cell(lease),
        number_text(None if lease.waiting is None else lease.waiting.position),
        age_cell(since_of(lease), now)._replace(full=time_text(lease.asked_at)),
        ends if lease.ended_at is None else ends._replace(short=NOTHING),
        remark or NOTHING,
    ]
