"""Commands of `moorage lease` that lengthen a lease, keep it for inspection, or hand it over."""

from datetime import timedelta
from typing import Any

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.durations import DurationType, UntilType
from moorage.cli.support.options import example, json_option, label_option
from moorage.cli.support.output import CONFLICT, USAGE, Failure, say, say_or_json, show_json
from moorage.cli.support.views.lease_text import time_text, until_of
from moorage.client.admission import Admission
from moorage.wire.admission import Lease
from moorage.wire.defaults import OFFER_SECONDS

LEASE = "01a1fbc7-b0e3-7929-9dbb-8ab3a75f0605"

lease_argument = click.argument("text", metavar="ID", shell_complete=completion.leases)
preview_option = click.option("--preview", is_flag=True, help="Print what it would do, and stop.")


@click.command(
    epilog=example(f"moorage lease extend {LEASE} --by 1h", f"moorage lease extend {LEASE} --to 2h")
)
@administering
@lease_argument
@click.option("--by", type=DurationType(), help="How much longer than until its present end.")
@click.option(
    "--to",
    type=UntilType(),
    help="The new end: a time, of no zone: in UTC, or how long from now. It may be earlier.",
)
@preview_option
@json_option
def extend(text: str, by: float | None, to: float | None, preview: bool, as_json: bool) -> None:
    """Move the end of the hold of the lease ID, within the hold_max of its pools.

    For its owner, and for operators, who may exceed hold_max. Exit code 4 if nothing ends it.
    """
    if (by is None) == (to is None):
        raise Failure(USAGE, "say either how much longer (--by), or the new end (--to)")
    with at_server(Admission) as admission:
        lease_id = ids.lease_id(admission, text, changing=True)
        hold = to
        if by is not None:
            end = admission.lease(lease_id).hold_until
            if end is None:
                raise Failure(CONFLICT, f"lease {lease_id} has no hold, so nothing is to be moved")
            hold = (end - server_now() + timedelta(seconds=by)).total_seconds()
        if preview:
            _preview(admission, "lease.hold", lease_id, as_json, hold=hold)
            return
        lease = admission.hold(lease_id, hold)
    say_or_json(as_json, lease, f"{lease.id} ends at {_end(lease)}")


@click.command(
    epilog=example(
        f'moorage lease hold {LEASE} --keep-until 18:00 --reason "the disk test has failed"',
        f"moorage lease hold {LEASE} --keep-until 2h",
    )
)
@administering
@lease_argument
@click.option(
    "--keep-until",
    type=UntilType(),
    required=True,
    help="When it ends by itself: a time, of no zone: in UTC, of no day: the next one; or how long"
    " from now.",
)
@click.option("--reason", default="", help="Why, for those who wait.")
@click.option("--at-most", is_flag=True, help="For less if its pools permit less.")
@preview_option
@json_option
def hold(
    text: str, keep_until: float, reason: str, at_most: bool, preview: bool, as_json: bool
) -> None:
    """Keep the lease ID for inspection after its job: it needs no renewals, and ends by itself.

    The hold_max of its pools bounds it; without one, a day from now does. Its owner and operators
    can release it earlier.
    """
    with at_server(Admission) as admission:
        lease_id = ids.lease_id(admission, text, changing=True)
        if preview:
            asked = {"lasts": keep_until, "reason": reason}
            _preview(admission, "lease.keep", lease_id, as_json, **asked)
            return
        lease = admission.keep(lease_id, keep_until, reason, at_most=at_most)
    say_or_json(as_json, lease, f"{lease.id} is kept until {_end(lease)}{_awaited(lease)}")


@click.command(
    epilog=example(
        f"moorage lease offer {LEASE} --to shop/bob --lasts 30m",
        f"moorage lease offer {LEASE} --withdraw",
    )
)
@administering
@lease_argument
@click.option("--to", help="Who may accept it: the owner as their `whoami` names it.")
@click.option(
    "--lasts",
    type=DurationType(),
    default=OFFER_SECONDS,
    help="How long it may be accepted; 10m by default, a day at most.",
)
@click.option("--withdraw", is_flag=True, help="Take the offer back.")
@json_option
def offer(text: str, to: str | None, lasts: float, withdraw: bool, as_json: bool) -> None:
    """Offer the lease ID to another owner; until that accepts, nothing changes for its holder."""
    if (to is None) == (not withdraw):
        raise Failure(USAGE, "say either to whom (--to), or --withdraw")
    with at_server(Admission) as admission:
        lease_id = ids.lease_id(admission, text, changing=True)
        if to is None:
            lease = admission.offer_withdraw(lease_id)
        else:
            lease = admission.offer(lease_id, to, lasts)
    until = "" if lease.offer is None else f" until {time_text(lease.offer.until)}"
    done = f"offered {lease.id} to {to}{until}" if to else f"{lease.id} is not offered any more"
    say_or_json(as_json, lease, done)


@click.command(epilog=example(f"moorage lease accept {LEASE} --handle lease.json"))
@administering
@lease_argument
@click.option("--key", help="The key of the new lease; by default one that makes this repeatable.")
@label_option("A label of the new lease, NAME=VALUE; may be repeated.")
@click.option(
    "--handle",
    type=click.Path(),
    help="Keep the new lease in this file, for `moorage lease renew` and `moorage lease release`.",
)
@json_option
def accept(
    text: str, key: str | None, labels: dict[str, str] | None, handle: str | None, as_json: bool
) -> None:
    """Take over the lease ID, which is offered to the caller: prints the id of the new lease.

    The old one ends at that moment. Repeating it is harmless. Exit code 4 if it is not offered.
    """
    with at_server(Admission) as admission:
        lease_id = ids.lease_id(admission, text, changing=True)
        key = key or f"accepted/{lease_id}"
        lease = admission.accept(lease_id, key, labels)
        if handle is not None:
            _keep_in(handle, key, lease)
    left = "" if lease.expires_at is None else f"; renew it before {time_text(lease.expires_at)}"
    if lease.stop_until is not None:
        left = f"; it ends for another request at {time_text(lease.stop_until)}"
    say_or_json(as_json, lease, f"accepted {lease_id}: it is your lease {lease.id}{left}")


@click.command(epilog=example(f"moorage lease decline {LEASE}"))
@administering
@lease_argument
@json_option
def decline(text: str, as_json: bool) -> None:
    """Decline the lease ID, which is offered to the caller: its holder keeps it."""
    with at_server(Admission) as admission:
        lease = admission.decline(ids.lease_id(admission, text, changing=True))
    say_or_json(as_json, lease, f"declined {lease.id}: {lease.owner} keeps it")


COMMANDS = (extend, hold, offer, accept, decline)


def _preview(admission: Admission, action: Any, lease_id: str, as_json: bool, **asked: Any) -> None:
    """Print what an action would do with a lease."""
    from moorage.wire.acting import ActionWanted  # deferred: only previews need it

    effect = admission.preview(ActionWanted(action=action, target=lease_id, **asked))
    if as_json:
        show_json(effect)
        return
    for line in effect.lines:
        say(line)


def _end(lease: Lease) -> str:
    end = until_of(lease)
    return "no time" if end is None else time_text(end)


def _awaited(lease: Lease) -> str:
    waiting = 0 if lease.kept is None else lease.kept.waiting
    return f"; {waiting} in line for its units" if waiting else ""


def _keep_in(path: str, key: str, lease: Lease) -> None:
    """Put an accepted lease into a file of leases. Raises Failure: the file cannot be used."""
    # Deferred: only this needs them.
    from moorage.client.run.api_types import LeaseRequest
    from moorage.client.run.handles.file import Handle, HandleEntry, HandleError

    needs = tuple((need.pool, need.units) for need in lease.needs)
    entry = HandleEntry(key, LeaseRequest(needs, lease.ttl, lease.hold))
    entry = entry._replace(
        id=lease.id,
        token=lease.token,
        slots=tuple(name for names in lease.slots.values() for name in names),
        expires_at=None if lease.expires_at is None else lease.expires_at.isoformat(),
        hold_until=None if lease.hold_until is None else lease.hold_until.isoformat(),
    )
    handle = Handle(path)
    try:
        with handle.locked():
            if not handle.change(entry, entry):
                handle.put(entry)
    except HandleError as error:
        raise Failure(USAGE, f"lease {lease.id} is yours, but not in the file: {error}") from None
