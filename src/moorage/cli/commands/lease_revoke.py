"""`moorage lease revoke`: ends the lease or ticket of somebody else."""

import click
import msgspec

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import say, show_json
from moorage.cli.support.views.lease_text import late_lines


@click.command(
    epilog=example(
        'moorage lease revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --reason "rack 7 is down"',
        "moorage lease revoke 01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605 --holder-is-gone",
    )
)
@administering
@click.argument("text", metavar="ID", shell_complete=completion.leases)
@click.option("--reason", default="", help="Reason, shown to the holder.")
@click.option(
    "--holder-is-gone",
    is_flag=True,
    help="Of the lease proxy: expect no late release of its slots, also if it has ended.",
)
@json_option
def revoke(text: str, reason: str, holder_is_gone: bool, as_json: bool) -> None:
    """Revoke the lease or ticket ID; its holder learns about it at the next renewal or sooner.

    A caller of the lease proxy learns nothing, and may release its slots later. Until then the next
    release of a slot counts as its own, and the next holder keeps the slot although it has released
    it. With --holder-is-gone nothing is expected: say so if the job has died.
    """
    with at_server() as admission:
        lease_id = ids.lease_id(admission, text, changing=not holder_is_gone)
        lease = admission.revoke(lease_id, reason, holder_is_gone=holder_is_gone)
    if as_json:
        show_json(msgspec.to_builtins(lease))
        return
    say(f"{lease.id} has ended: {lease.cause}")
    for line in late_lines(lease):
        say(line)
