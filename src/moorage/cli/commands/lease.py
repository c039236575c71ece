"""`moorage lease`: prints leases and tickets, and why they wait; moves, forces and ends them."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import chain, islice
from typing import Any, Literal, get_args

import click

from moorage.cli.commands import lease_hands
from moorage.cli.commands.run import attach
from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import SinceType, duration_text
from moorage.cli.support.ids import lease_id, leases_with
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option, label_option, wide_option
from moorage.cli.support.output import (
    NOT_FOUND,
    USAGE,
    Failure,
    printable,
    say,
    say_or_json,
    show_json,
    show_table,
)
from moorage.cli.support.tables import NOTHING, Cell, Column, show_rows
from moorage.cli.support.views.cells import (
    age_cell,
    end_cell,
    id_cells,
    number_text,
    state_cell,
    timed,
)
from moorage.cli.support.views.lease_text import (
    alternative_lines,
    any_of_text,
    eta_text,
    late_lines,
    needs_cell,
    needs_text,
    remark_of,
    since_of,
    time_text,
    until_of,
)
from moorage.cli.support.views.pool_text import plain_text
from moorage.client.admission import Admission
from moorage.client.transport import RefusedError
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.counting import counted
from moorage.core.ids import is_normal, is_prefix
from moorage.wire.admission import Lease
from moorage.wire.enums import State
from moorage.wire.labels import HOLDER, HOST, JOB, USER, holder_of

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
    """List, show, move, hand over and revoke leases and tickets; keep leases in files."""


attach(group)
for command in lease_hands.COMMANDS:
    group.add_command(command)


@group.command("list", epilog=example("moorage lease list --pool install/azure --state waiting"))
@administering
@click.option(
    "--pool",
    help="Only leases and tickets that need units of this pool.",
    shell_complete=completion.pools,
)
@click.option(
    "--state",
    type=click.Choice(get_args(State)),
    help="Only those in this state; by default granted and waiting ones.",
)
@click.option("--owner", help="Only leases of this owner, or of this holder as lists show it.")
@click.option("--mine", is_flag=True, help="Only leases and tickets of the caller.")
@label_option("Only leases with this label, NAME=VALUE; may be repeated.")
@click.option(
    "--group", help="Only leases and tickets of this group, see `moorage run --supersede`."
)
@click.option(
    "--unheard",
    is_flag=True,
    help="Only leases that were not renewed in time and keep their units.",
)
@click.option("--kept", is_flag=True, help="Only leases that are kept for inspection.")
@click.option("--offered", is_flag=True, help="Only leases that are offered to the caller.")
@click.option(
    "--older",
    type=SinceType(),
    help="Only leases that have been waiting, granted or ended for at least this long.",
)
@click.option(
    "--sort",
    type=click.Choice([*SORTS]),
    help="By age, oldest first, or by end, soonest first; by default granted leases, then tickets,"
    " by arrival.",
)
@wide_option
@json_option
def list_(
    pool: str | None,
    state: str | None,
    sort: str | None,
    unheard: bool,
    kept: bool,
    wide: bool,
    as_json: bool,
    **only: Any,
) -> None:
    """Print leases and tickets; ended ones are kept for a while."""
    with at_server(Admission) as admission:
        leases = list(_found(admission, pool, state, **only))
        if not leases and only["owner"] is not None:
            leases = _held_by(admission, pool, state, **only)
        if pool is not None and not leases:
            admission.pool(pool)  # raises if there is no such pool
    if unheard:
        leases = [lease for lease in leases if lease.unheard]
    if kept:
        leases = [lease for lease in leases if lease.kept is not None]
    if sort is not None:
        leases.sort(key=SORTS[sort])
    if as_json:
        show_json(leases)
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
    with at_server(Admission) as admission:
        lease = admission.lease(ids.lease_id(admission, text))
    if as_json:
        show_json(lease)
        return
    shown = asdict(lease) | {"needs": needs_text(lease), "late_releases": [*late_lines(lease)]}
    shown |= {name: duration_text(getattr(lease, name)) for name in ("ttl", "hold")}
    shown["any_of"] = any_of_text(lease)
    if lease.waiting is not None:
        shown["waiting"] = lease.waiting.reason
        shown |= {"position": lease.waiting.position, "eta": eta_text(lease.waiting)}
    rows = [[name, plain_text(value)] for name, value in shown.items()]
    rows += [["alternative", line] for line in alternative_lines(lease)]
    show_table(["property", "value"], rows)


@group.command(
    epilog=example(
        "moorage lease move 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --first",
        "moorage lease move 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --priority 10",
    )
)
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@click.option("--priority", type=int, help="The new priority; a higher one goes first.")
@click.option("--first", is_flag=True, help="Make the ticket the first in all its lines.")
@json_option
def move(text: str, priority: int | None, first: bool, as_json: bool) -> None:
    """Move the ticket ID in its lines; exit code 4 if it does not wait any more."""
    if first == (priority is not None):
        raise Failure(USAGE, "no new place: use either --first or --priority NUMBER")
    with at_server(Admission) as admission:
        lease = admission.move(ids.lease_id(admission, text, changing=True), priority)
    say_or_json(as_json, lease, f"moved {lease.id}: priority {lease.priority}, {_place(lease)}")


@group.command(epilog=example("moorage lease force 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"))
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@json_option
def force(text: str, as_json: bool) -> None:
    """Grant the ticket ID at once, over the limit if necessary; it is shown as forced."""
    with at_server(Admission) as admission:
        lease = admission.force(ids.lease_id(admission, text, changing=True))
    say_or_json(as_json, lease, f"forced {lease.id}: {_place(lease)}")


def _place(lease: Lease) -> str:
    return lease.state if lease.waiting is None else f"place {lease.waiting.position}"


def _found(
    admission: Admission, pool: str | None, state: str | None, **only: Any
) -> Iterator[Lease]:
    if state is None:
        states = ("granted",) if only["offered"] else ("granted", "waiting")
    else:
        states = (state,)
    for one in states:
        yield from admission.leases(pool, one, **only)


def _held_by(
    admission: Admission, pool: str | None, state: str | None, *, owner: str, **only: Any
) -> list[Lease]:
    """Return the leases whose holder is shown as this text, which labels may be part of."""
    found = _found(admission, pool, state, owner=None, **only)
    held = [lease for lease in found if ids.is_shown_as(lease, owner)]
    if not held:
        say(f"moorage: no listed lease has the owner or the holder '{owner}'", err=True)
    return held


def _row(lease: Lease, now: datetime) -> list[Cell | str]:
    remark: str = lease.cause or remark_of(lease)
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


STATES = ("waiting", "granted")


@group.command(
    epilog=example(
        'moorage lease revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --reason "rack 7 is down"',
        "moorage lease revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --holder-is-gone",
        "moorage lease revoke --owner shop/ci --state waiting",
    )
)
@administering
@click.argument("text", metavar="[ID]", required=False, shell_complete=completion.leases)
@click.option("--reason", default="", help="Reason, shown to the holder.")
@click.option(
    "--holder-is-gone",
    is_flag=True,
    help="Expect no late release of its slots from the lease proxy; also for an ended lease.",
)
@click.option("--owner", help="All tickets and leases of this owner, or of a project: PROJECT/*.")
@click.option(
    "--state",
    type=click.Choice(STATES),
    help="With --owner: only tickets (waiting), or only leases (granted).",
)
@click.option(
    "--pool",
    help="With --owner: only tickets and leases that need units of this pool.",
    shell_complete=completion.pools,
)
@irreversible("lease revoke")
@json_option
def revoke(
    text: str | None,
    reason: str,
    holder_is_gone: bool,
    owner: str | None,
    state: Literal["waiting", "granted"] | None,
    pool: str | None,
    sure: Ask,
    as_json: bool,
) -> None:
    """Revoke the lease or ticket ID; its holder learns about it at the next renewal or sooner.

    With --owner, end all tickets and leases of an owner; the owner may do this, too.

    A caller of the lease proxy is not notified, and may release its slots later. Until then, the
    next release of a slot counts as this caller's, and the next holder keeps a slot that it has
    released. Use --holder-is-gone if the job has died: then no release is expected.
    """
    if (text is None) == (owner is None):
        raise Failure(USAGE, "pass either the ID of a lease or ticket, or --owner")
    if owner is not None:
        if holder_is_gone:
            raise Failure(USAGE, "--holder-is-gone is for one lease: pass its ID")
        sure(_everything(owner, state, pool))
        _revoke_owner(owner, state, pool, reason, as_json)
        return
    if state is not None or pool is not None:
        raise Failure(USAGE, "--state and --pool need --owner")
    with at_server(Admission) as admission:
        lease_id = ids.lease_id(admission, str(text), changing=not holder_is_gone, whole=True)
        sure(lambda: _one(admission.lease(lease_id)))
        lease = admission.revoke(lease_id, reason, holder_is_gone=holder_is_gone)
    if as_json:
        show_json(lease)
        return
    say(f"{lease.id} has ended: {lease.cause}")
    for line in late_lines(lease):
        say(line)


def _one(lease: Lease) -> str:
    """Return what a revocation ends, for the question: a whole id does not say whose it is."""
    whose = f"{holder_of(lease.owner, lease.labels)}, {needs_text(lease)}"
    anyway = "" if lease.state == "waiting" else ", whatever its holder does"
    return printable(f"{lease.id} of {whose}{anyway}")


def _everything(owner: str, state: str | None, pool: str | None) -> str:
    """Return what a revocation of an owner ends, for the question before it."""
    kinds = {"waiting": "tickets", "granted": "leases"}
    whose = f"all {kinds.get(state or '', 'tickets and leases')} of {owner}"
    where = "" if pool is None else f" that need units of {pool}"
    return whose + where + ("" if state == "waiting" else ", whatever their holders do")


def _revoke_owner(
    owner: str,
    state: Literal["waiting", "granted"] | None,
    pool: str | None,
    reason: str,
    as_json: bool,
) -> None:
    tickets = leases = 0
    with at_server(Admission) as admission:
        more = True
        while more:
            found = admission.revoke_owner(owner, state, pool, reason)
            tickets, leases, more = tickets + found.tickets, leases + found.leases, found.more
    if as_json:
        show_json({"owner": owner, "tickets": tickets, "leases": leases})
    else:
        ended = f"{counted(tickets, 'ticket')} and {counted(leases, 'lease')}"
        say(f"ended {ended} of {owner}")
        if not tickets + leases:  # labels name holders, and anybody may choose these
            say(
                "moorage: --owner takes owners only; if lists show this text as a holder, end its"
                " leases by their ids: moorage lease list --owner TEXT",
                err=True,
            )


SEARCHED_MAX = 50_000
"""Leases and tickets that are searched for a name."""

NAMED_BY = (HOLDER, "node", JOB, HOST, USER)
"""Labels that name the holder."""

WHY_LABELS = (
    *("verb", "image", "error", "conductor", "ironic", "wave"),
    *("job", "build", "host", "user", "pid", "command"),
)
"""Labels that say what the units are for."""


@group.command(epilog=example("moorage lease why node-7"))
@administering
@click.argument("name", metavar="NAME", shell_complete=completion.leases)
@json_option
def why(name: str, as_json: bool) -> None:
    """Print why NAME waits, or since when it holds units: the id of a lease, or a holder.

    A holder is named by its owner, or by a label of its leases: `holder`, `node`, `job`, `host` or
    `user`.
    """
    with at_server(Admission) as admission:
        found = [_whole(admission, lease) for lease in _lease_named(admission, name)]
    if not found:
        raise Failure(NOT_FOUND, f"there is no lease and no ticket of '{name}'")
    if as_json:
        show_json(found)
        return
    now = server_now()
    for lease in found:
        show_table(["property", "value"], [*_rows(lease, now)])


def _lease_named(admission: Admission, name: str) -> Iterator[Lease]:
    """Yield the lease with an id or its prefix, or else those of a holder that have not ended."""
    if is_prefix(name.lower()) and leases_with(admission, name.lower()):
        name = lease_id(admission, name)
    if is_normal(name.lower()):
        try:
            yield admission.lease(name.lower())
            return
        except RefusedError as refusal:
            if refusal.code != "lease_not_found":
                raise
    live = chain(admission.leases(state="granted"), admission.leases(state="waiting"))
    for lease in islice(live, SEARCHED_MAX):
        labels = (lease.labels.get(label) for label in NAMED_BY)
        if name == lease.owner or name in labels or ids.is_shown_as(lease, name):
            yield lease


def _whole(admission: Admission, lease: Lease) -> Lease:
    """Return a lease with its late releases, which lists do not have."""
    return admission.lease(lease.id) if lease.owner == LEASE_PROXY and lease.slots else lease


def _rows(lease: Lease, now: datetime) -> Iterator[list[str]]:
    """Yield properties, in the words and in the order of the lists."""
    yield ["id", lease.id]
    yield ["holder", holder_of(lease.owner, lease.labels)]
    yield ["state", f"{lease.state}, unheard" if lease.unheard else lease.state]
    if lease.cause is None and remark_of(lease) not in ("", "unheard"):
        yield ["remark", remark_of(lease)]
    yield ["needs", needs_text(lease)]
    for name in WHY_LABELS:
        if name in lease.labels:
            yield [name, lease.labels[name]]
    if lease.waiting is not None:
        yield ["place", str(lease.waiting.position)]
    yield ["since", timed(age_cell(since_of(lease), now), " ago")]
    if lease.waiting is not None:
        yield ["eta", eta_text(lease.waiting) or NOTHING]
        alternatives = [*alternative_lines(lease)]
        if not alternatives or lease.waiting.code == "absent":  # they have all else that it says
            yield ["reason", lease.waiting.reason]
        for line in alternatives:
            yield ["alternative", line]
    elif lease.ended_at is not None:
        yield ["reason", str(lease.cause)]
    elif until_of(lease) is not None:
        yield ["ends", timed(end_cell(until_of(lease), now))]
    for line in late_lines(lease):
        yield ["late release", line]
