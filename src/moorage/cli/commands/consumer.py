"""`moorage consumer`: who uses what, and the release of what nobody uses any more."""

from itertools import islice

import click

from moorage.cli.support import completion, ids
from moorage.cli.support.command import administering, at_server, server, server_now
from moorage.cli.support.durations import SinceType
from moorage.cli.support.options import WholeNumber, example, json_option, wide_option
from moorage.cli.support.output import (
    CONFLICT,
    FAILED,
    USAGE,
    Failure,
    say,
    show_json,
    show_table,
)
from moorage.cli.support.tables import NOTHING, Column, show_rows
from moorage.cli.support.terminal import can_ask
from moorage.cli.support.views.cells import age_cell, id_cells, timed
from moorage.cli.support.views.consumer_text import COLUMNS, resources_text, row
from moorage.client.admission import Admission
from moorage.client.ledger import Ledger
from moorage.wire.labels import holder_of
from moorage.wire.providers import ConsumersAsked, ConsumerShown

HELD = (Column("provider", least=12), Column("uuid", dropped=1), Column("holds", last=True))

_ID = "c0000000-0000-4000-8000-000000000001"
"""The consumer of the examples."""


@click.group("consumer")
def group() -> None:
    """Look at consumers: instances, migrations, others that use providers; release what they hold.

    The ledger does not know whether a consumer still exists. `moorage audit nova` asks Nova, and
    finds those that Nova does not know any more; `moorage heal` releases them.
    """


@group.command(
    "list",
    epilog=example(
        "moorage consumer list --provider r05-n04", "moorage consumer list --type MIGRATION"
    ),
)
@administering
@click.option("--provider", help="Only consumers of this provider: its name or UUID.")
@click.option("--project", help="Only consumers of this project.")
@click.option("--user", help="Only consumers of this user.")
@click.option(
    "--type",
    "kind",
    help="Only consumers of this type, such as INSTANCE; unknown: those without a type.",
)
@click.option(
    "--older",
    type=SinceType(),
    help="Only consumers created at least this long ago, or before a date.",
)
@click.option(
    "--limit", type=WholeNumber(1, 1_000_000), help="Print at most this many; all by default."
)
@wide_option
@json_option
def list_(
    provider: str | None,
    project: str | None,
    user: str | None,
    kind: str | None,
    older: float | None,
    limit: int | None,
    wide: bool,
    as_json: bool,
) -> None:
    """Print consumers by UUID, with their allocations."""
    with at_server(Ledger) as ledger:
        uuid = None if provider is None else ids.provider_named(ledger, provider).uuid
        asked = ConsumersAsked(project=project, user=user, type=kind, provider=uuid, older=older)
        found = [*islice(ledger.consumers(asked), limit)]
    if as_json:
        show_json(found)
        return
    now, shown = server_now(), id_cells(one.uuid for one in found)
    show_rows(COLUMNS, [row(one, shown[one.uuid], now) for one in found], wide=wide)


@group.command(epilog=example(f"moorage consumer show {_ID}"))
@administering
@click.argument("text", metavar="ID", shell_complete=completion.consumers)
@wide_option
@json_option
def show(text: str, wide: bool, as_json: bool) -> None:
    """Print the consumer ID with its project, user and allocations."""
    with at_server(Ledger) as ledger:
        one = ids.consumer_with(ledger, text)
    if as_json:
        show_json(one)
        return
    now = server_now()
    facts = {
        "uuid": one.uuid,
        "type": one.type or NOTHING,
        "project": one.project,
        "user": one.user,
        "generation": str(one.generation),
        "created": timed(age_cell(one.created_at, now), " ago"),
        "changed": timed(age_cell(one.updated_at, now), " ago"),
    }
    show_table(["property", "value"], [[name, value] for name, value in facts.items()])
    rows = [
        [each.name or NOTHING, each.provider, resources_text(each.resources)]
        for each in one.allocations
    ]
    show_rows(HELD, rows, wide=wide)


@group.command(epilog=example(f'moorage consumer release {_ID} --reason "its host burnt down"'))
@administering
@click.argument("text", metavar="ID", shell_complete=completion.consumers)
@click.option("--reason", default="", help="Reason, shown in the audit log and to others.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def release(text: str, reason: str, yes: bool, as_json: bool) -> None:
    """Release all that the consumer ID holds, such as those of an instance that is gone.

    The space is free for others at once. It is a reshape: `moorage reshape undo` gives the space
    back to the consumer, unless others use it by then. ID is the whole UUID. A consumer of a lease
    is refused: end the lease with `moorage lease revoke`.
    """
    from moorage.client.reshapes import Reshapes  # deferred: for this command only
    from moorage.wire.reshapes import ReshapeWanted, releasing

    if not (yes or can_ask(as_json=as_json)):
        raise Failure(
            USAGE,
            "cannot ask for confirmation without a terminal or with --json: add --yes, or look at"
            " `moorage consumer show`",
        )
    with at_server(Ledger) as ledger:
        one = ids.consumer_with(ledger, text, whole=True)
        _check_unleased(one)
        held = "; ".join(
            f"{each.name or each.provider}: {resources_text(each.resources)}"
            for each in one.allocations
        )
        if not yes:
            if not as_json:
                say(f"{one.type or 'consumer'} {one.uuid} of {one.project} holds {held}")
            if not click.confirm("Release all of it?"):
                raise Failure(FAILED, "nothing was changed")
        plan = releasing(one.uuid, one.generation, [each.provider for each in one.allocations])
        done = Reshapes(server()).carry_out(
            ReshapeWanted(plan=plan, reason=reason or "moorage consumer release")
        )
    if as_json:
        show_json({"consumer": one, "reshape": done.id})
        return
    say(f"released {held} of consumer {one.uuid}")
    say(f"undo it with: moorage reshape undo {done.id}")


def _check_unleased(one: ConsumerShown) -> None:
    """Raise Failure: 4, a lease holds the allocations of a consumer, and would end without them."""
    held = Admission(server()).leases(state="granted", consumer=one.uuid)
    lease = next(held, None)
    if lease is not None:
        raise Failure(
            CONFLICT,
            f"lease {lease.id} of {holder_of(lease.owner, lease.labels)} has the consumer"
            f" {one.uuid}: end it with 'moorage lease revoke {lease.id}'",
            "conflict",
        )
