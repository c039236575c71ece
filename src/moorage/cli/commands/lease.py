"""`moorage lease`: prints leases and tickets, and revokes them."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import get_args

import click
import msgspec

from moorage.cli.commands.lease_why import why
from moorage.cli.commands.run import attach
from moorage.cli.support import completion
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.durations import duration_text
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import say, show_json, show_table
from moorage.cli.support.views.lease_text import eta_text, needs_text, time_text
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.wire.admission import Lease
from moorage.wire.enums import State
from moorage.wire.labels import holder_of

COLUMNS = ["id", "owner", "state", "needs", "position", "asked", "until", "remark"]

ABOUT = ("verb", "conductor", "image", "ironic")
"""Labels that have a column if a lease has one."""


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
@json_option
def list_(pool: str | None, state: str | None, owner: str | None, as_json: bool) -> None:
    """Print leases and tickets; ended ones are kept for a while."""
    with at_server() as admission:
        leases = list(_found(admission, pool, state, owner))
        if pool is not None and not leases:
            admission.pool(pool)  # raises if there is no such pool
    if as_json:
        show_json(msgspec.to_builtins(leases))
    else:
        about = [name for name in ABOUT if any(name in lease.labels for lease in leases)]
        rows = [_row(lease) + [lease.labels.get(name, "-") for name in about] for lease in leases]
        show_table([*COLUMNS, *about], rows, whole=["needs"])


@group.command(epilog=example("moorage lease show 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"))
@administering
@click.argument("lease_id", metavar="ID", shell_complete=completion.leases)
@json_option
def show(lease_id: str, as_json: bool) -> None:
    """Print all properties of the lease or ticket ID."""
    with at_server() as admission:
        lease = admission.lease(lease_id)
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
@click.argument("lease_id", metavar="ID", shell_complete=completion.leases)
@click.option("--reason", default="", help="Reason, shown to the holder.")
@json_option
def revoke(lease_id: str, reason: str, as_json: bool) -> None:
    """Revoke the lease or ticket ID; its holder learns about it at the next renewal or sooner."""
    with at_server() as admission:
        lease = admission.revoke(lease_id, reason)
    if as_json:
        show_json(msgspec.to_builtins(lease))
    else:
        say(f"{lease.id} has ended: {lease.cause}")


def _found(
    admission: Admission, pool: str | None, state: str | None, owner: str | None
) -> Iterator[Lease]:
    for one in ("granted", "waiting") if state is None else (state,):
        yield from admission.leases(pool, one, owner)


def _row(lease: Lease) -> list[str]:
    until = lease.ended_at or _first(lease.expires_at, lease.hold_until)
    remark: str = lease.cause or ("unheard" if lease.unheard else "")
    if lease.waiting is not None:
        remark = lease.waiting.reason
    return [
        lease.id,
        holder_of(lease.owner, lease.labels),
        lease.state,
        needs_text(lease),
        "-" if lease.waiting is None else str(lease.waiting.position),
        time_text(lease.asked_at),
        "-" if until is None else time_text(until),
        remark or "-",
    ]


def _first(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
