"""`moorage lease why`: why somebody waits, or since when and for what somebody holds units."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice

import click
import msgspec

from moorage.cli.support import completion
from moorage.cli.support.command import administering, at_server, server_now
from moorage.cli.support.ids import lease_id, leases_with
from moorage.cli.support.options import example, json_option
from moorage.cli.support.output import NOT_FOUND, Failure, show_json, show_table
from moorage.cli.support.tables import NOTHING
from moorage.cli.support.views.cells import age_cell, end_cell, timed
from moorage.cli.support.views.lease_text import (
    eta_text,
    late_lines,
    needs_text,
    since_of,
    until_of,
)
from moorage.client.admission import Admission
from moorage.client.transport import RefusedError
from moorage.core.admission.owners import LEASE_PROXY
from moorage.core.ids import is_normal, is_prefix
from moorage.wire.admission import Lease
from moorage.wire.labels import HOLDER, HOST, JOB, USER, holder_of

SEARCHED_MAX = 50_000
"""Leases and tickets that are searched for a name."""

NAMED_BY = (HOLDER, "node", JOB, HOST, USER)
"""Labels that name the holder."""

ABOUT = (
    *("verb", "image", "error", "conductor", "ironic", "wave"),
    *("job", "build", "host", "user", "pid", "command"),
)
"""Labels that say what the units are for."""


@click.command(epilog=example("moorage lease why node-7"))
@administering
@click.argument("name", metavar="NAME", shell_complete=completion.leases)
@json_option
def why(name: str, as_json: bool) -> None:
    """Print why NAME waits, or since when it holds units: the id of a lease, or a holder.

    A holder is named by its owner, or by a label of its leases: `holder`, `node`, `job`, `host` or
    `user`.
    """
    with at_server() as admission:
        found = [_whole(admission, lease) for lease in _found(admission, name)]
    if not found:
        raise Failure(NOT_FOUND, f"there is no lease and no ticket of '{name}'")
    if as_json:
        show_json(msgspec.to_builtins(found))
        return
    now = server_now()
    for lease in found:
        show_table(["property", "value"], [*_rows(lease, now)])


def _found(admission: Admission, name: str) -> Iterator[Lease]:
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
        if name == lease.owner or name in (lease.labels.get(label) for label in NAMED_BY):
            yield lease


def _whole(admission: Admission, lease: Lease) -> Lease:
    """Return a lease with its late releases, which lists do not have."""
    return admission.lease(lease.id) if lease.owner == LEASE_PROXY and lease.slots else lease


def _rows(lease: Lease, now: datetime) -> Iterator[list[str]]:
    """Yield properties, in the words and in the order of the lists."""
    yield ["id", lease.id]
    yield ["holder", holder_of(lease.owner, lease.labels)]
    yield ["state", f"{lease.state}, unheard" if lease.unheard else lease.state]
    yield ["needs", needs_text(lease)]
    for name in ABOUT:
        if name in lease.labels:
            yield [name, lease.labels[name]]
    if lease.waiting is not None:
        yield ["place", str(lease.waiting.position)]
    yield ["since", timed(age_cell(since_of(lease), now), " ago")]
    if lease.waiting is not None:
        yield ["eta", eta_text(lease.waiting) or NOTHING]
        yield ["reason", lease.waiting.reason]
    elif lease.ended_at is not None:
        yield ["reason", str(lease.cause)]
    elif until_of(lease) is not None:
        yield ["ends", timed(end_cell(until_of(lease), now))]
    for line in late_lines(lease):
        yield ["late release", line]
