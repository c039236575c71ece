"""`moorage lease revoke`: ends the lease or ticket of somebody else."""

from typing import Literal

import click
import msgspec

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.irreversible import Ask, irreversible
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import USAGE, Failure, say, show_json
from moorage.cli.support.views.lease_text import late_lines
from moorage.core.counting import counted

STATES = ("waiting", "granted")


@click.command(
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
    help="Of the lease proxy: expect no late release of its slots, also if it has ended.",
)
@click.option("--owner", help="All tickets and leases of this owner, or of a project: PROJECT/*.")
@click.option("--state", type=click.Choice(STATES), help="With --owner: only these.")
@click.option(
    "--pool",
    help="With --owner: only those that need units of this pool.",
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

    With --owner, everything that this owner has; its owner may end it so, too.

    A caller of the lease proxy learns nothing, and may release its slots later. Until then the next
    release of a slot counts as its own, and the next holder keeps the slot although it has released
    it. With --holder-is-gone nothing is expected: say so if the job has died.
    """
    if (text is None) == (owner is None):
        raise Failure(USAGE, "which? Name either the ID of one, or an owner with --owner")
    if owner is not None:
        if holder_is_gone:
            raise Failure(USAGE, "--holder-is-gone is for one lease: name its ID")
        sure(_everything(owner, state, pool))
        _revoke_owner(owner, state, pool, reason, as_json)
        return
    if state is not None or pool is not None:
        raise Failure(USAGE, "--state and --pool need --owner")
    with at_server() as admission:
        lease_id = ids.lease_id(admission, str(text), changing=not holder_is_gone, whole=True)
        sure(f"{lease_id}, whatever its holder does")
        lease = admission.revoke(lease_id, reason, holder_is_gone=holder_is_gone)
    if as_json:
        show_json(msgspec.to_builtins(lease))
        return
    say(f"{lease.id} has ended: {lease.cause}")
    for line in late_lines(lease):
        say(line)


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
    with at_server() as admission:
        more = True
        while more:
            found = admission.revoke_owner(owner, state, pool, reason)
            tickets, leases, more = tickets + found.tickets, leases + found.leases, found.more
    if as_json:
        show_json({"owner": owner, "tickets": tickets, "leases": leases})
    else:
        ended = f"{counted(tickets, 'ticket')} and {counted(leases, 'lease')}"
        say(f"ended {ended} of {owner}")
