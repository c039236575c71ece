"""`moorage lease`: prints leases and tickets, and revokes them."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import get_args

import click
import msgspec

from moorage.cli.commands.lease_why import why
from moorage.cli.commands.run import attach
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import duration_text
from moorage.cli.support.options import example, json_option, wide_option
from moorage.cli.support.output import say, show_json, show_table
from moorage.cli.support.tables import NOTHING, Cell, Column, show_rows
from moorage.cli.support.views.cells import age_cell, end_cell, id_cells, number_text, state_cell
from moorage.cli.support.views.lease_text import (
    eta_text,
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
    Column("owner", "holder", dropped=1, least=12),
    Column("state"),
    Column("needs"),
    Column("position", "place", dropped=3, right=True),
    Column("asked", "age", right=True),
    Column("until", "ends", dropped=2),
    Column("remark", "reason", least=14, last=True),
)

ABOUT = ("verb", "conductor", "image", "ironic")
"""Labels that have a column if a lease has one; on a narrow terminal the last is dropped first."""


@click.group("lease")
def group() -> None:
    """List, show and revoke leases and tickets; keep leases in files."""


attach(group)
group.add_command(why)


@group.command("list", epilog=example("moorage lease list --pool install/azure --state waiting"))
@administering
@click.option(
    "--pool", help="Only those that need units of this pool.", shell_complete=completion.pools
)
@click.option(
    "--state", type=click.Choice(get_args(State)), help="By default granted and waiting ones."
)
@click.option("--owner", help="Only those of this owner.")
@wide_option
@json_option
def list_(
    pool: str | None, state: str | None, owner: str | None, wide: bool, as_json: bool
) -> None:
    """Print leases and tickets; ended ones are kept for 24 hours."""
    with at_server() as admission:
        leases = list(_found(admission, pool, state, owner))
        if pool is not None and not leases:
            admission.pool(pool)  # raises if there is no such pool
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
    shown = asdict(lease) | {"needs": needs_text(lease)}
    shown |= {name: duration_text(getattr(lease, name)) for name in ("ttl", "hold")}
    if lease.waiting is not None:
        shown["waiting"] = lease.waiting.reason
        shown |= {"position": lease.waiting.position, "eta": eta_text(lease.waiting)}
    show_table(["property", "value"], [[name, plain_text(value)] for name, value in shown.items()])


@group.command(
    epilog=example(
        'moorage lease revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --reason "rack 7 is down"'
    )
)
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@click.option("--reason", default="", help="Reason, shown to the holder.")
@json_option
def revoke(text: str, reason: str, as_json: bool) -> None:
    """Revoke the lease or ticket ID; its holder learns about it at the next renewal or sooner."""
    with at_server() as admission:
        lease = admission.revoke(ids.lease_id(admission, text), reason)
    if as_json:
        show_json(msgspec.to_builtins(lease))
    else:
        say(f"{lease.id} has ended: {lease.cause}")


def _found(
    admission: Admission, pool: str | None, state: str | None, owner: str | None
) -> Iterator[Lease]:
    for one in ("granted", "waiting") if state is None else (state,):
        yield from admission.leases(pool, one, owner)


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
