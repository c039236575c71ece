"""Nested runs: detects whether an outer run's lease already has units of a requested pool.

The outer lease lasts until the outer command ends, and that waits for the inner run. If the inner
run waits for a unit of the same pool, this can be a deadlock: at the latest when all units of the
pool are occupied by outer runs whose inner runs wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.client.run.api_types import Lease, LeaseRequest, StrangeAnswerError
from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.run.lease.api import Leases
from moorage.client.run.variables import LEASE_PREFIX
from moorage.client.transport import RefusedError

REFUSE, SHARE, WAIT = "refuse", "share", "wait"
"""What to do if an outer run has such a lease: fail, use its lease, or wait for another one."""

DEPTH_MAX = 8
"""How many leases of outer runs are checked."""


class NestedError(NotGrantedError):
    """The lease of an outer run has units of a requested pool."""

    def __init__(self, around: Lease, pools: str) -> None:
        super().__init__(
            "nested",
            f"the outer command has lease {around.id} of {pools}, and this one would wait for it to"
            " end: use --nested share or --nested wait",
        )
        self.around = around


def leases_around(environ: Mapping[str, str]) -> list[str]:
    """Return the leases of the outer runs, from the outermost to the innermost."""
    outer = environ.get(f"{LEASE_PREFIX}OUTER", "").split()
    inner = environ.get(f"{LEASE_PREFIX}ID", "").split()
    return (outer + inner)[-DEPTH_MAX:]


def check_nesting(leases: Leases, wish: LeaseRequest, environ: Mapping[str, str]) -> None:
    """Raise NestedError if an outer run's lease is granted and has units of a pool of the wish.

    Asks the server, because the lease may have ended or belong to another server. Raises the errors
    of the transport, too.
    """
    wanted = {pool for pool, _ in wish.needs}
    for lease_id in reversed(leases_around(environ)):
        try:
            around = leases.look(lease_id)
        except RefusedError as refusal:
            if refusal.status >= 500:
                raise
            continue  # an unknown lease, or an error that the next request meets as well
        except StrangeAnswerError:
            continue
        common = wanted & {pool for pool, _ in around.needs}
        if around.state == "granted" and common:
            raise NestedError(around, ", ".join(sorted(common)))


def covers(around: Lease, wish: LeaseRequest) -> bool:
    """Return whether a lease has all units of a wish; not known if that asks for labels."""
    if wish.slot_labels:
        return False
    held = dict(around.needs)
    return all(units <= held.get(pool, 0) for pool, units in wish.needs)
