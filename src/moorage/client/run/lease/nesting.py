"""A run inside a run: whether a lease around us already has units of what is asked for.

The outer lease lasts until the outer command has ended, and that waits for us. If we then wait for
a unit of the same pool, the two wait for each other, at the latest when all its units are held by
others who do the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.client.run.api_types import Lease, StrangeAnswerError, Wish
from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.run.lease.api import Leases
from moorage.client.run.variables import LEASE_PREFIX
from moorage.client.transport import RefusedError

REFUSE, SHARE, WAIT = "refuse", "share", "wait"
CHOICES = (REFUSE, SHARE, WAIT)
"""What may be done about a lease around us: nothing, work under it, or wait for one more."""

DEPTH_MAX = 8
"""How many leases around us are remembered."""


class NestedError(NotGrantedError):
    """A lease around us has units of a pool that is asked for."""

    def __init__(self, around: Lease, pools: str) -> None:
        super().__init__(
            "nested",
            f"this runs inside a command with lease {around.id} of {pools}, and would wait for that"
            " to end: see --nested share and --nested wait",
        )
        self.around = around


def leases_around(environ: Mapping[str, str]) -> list[str]:
    """Return the leases of the runs around us, from the outermost to the innermost."""
    outer = environ.get(f"{LEASE_PREFIX}OUTER", "").split()
    inner = environ.get(f"{LEASE_PREFIX}ID", "").split()
    return (outer + inner)[-DEPTH_MAX:]


def check_nesting(leases: Leases, wish: Wish, environ: Mapping[str, str]) -> None:
    """Raise NestedError if a lease around us is held and has units of a pool of the wish.

    A hold may be over, and the same name may be another server's: so the server is asked. Raises
    what keeps it from answering.
    """
    wanted = {pool for pool, _ in wish.needs}
    for lease_id in reversed(leases_around(environ)):
        try:
            around = leases.look(lease_id)
        except RefusedError as refusal:
            if refusal.status >= 500:
                raise
            continue  # it knows no such lease, or will refuse what is asked next, too
        except StrangeAnswerError:
            continue
        common = wanted & {pool for pool, _ in around.needs}
        if around.state == "granted" and common:
            raise NestedError(around, ", ".join(sorted(common)))


def covers(around: Lease, wish: Wish) -> bool:
    """Does a lease have all units of a wish?"""
    held = dict(around.needs)
    return all(units <= held.get(pool, 0) for pool, units in wish.needs)
