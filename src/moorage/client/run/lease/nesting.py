"""Waiting for oneself: detects that an own lease has the units that a request waits for.

The lease of an outer run lasts until its command ends, and that waits for the inner run. If the
inner run waits for a unit of the same pool, this can be a deadlock: at the latest when all units of
the pool are occupied by outer runs whose inner runs wait. So `moorage run` refuses this before it
asks (`check_nesting`). Whatever else waits looks at what its own leases leave (`check_own`): if
that is too little, the request can never be granted. What is certainly around it is refused; what
is only of the same process, or of an ancestor, may end by itself, and is named.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moorage.client.run.api_types import Lease, LeaseRequest, StrangeAnswerError
from moorage.client.run.labels import accepted
from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.run.lease.api import Leases
from moorage.client.run.process.starters import lineage
from moorage.client.run.variables import LEASE_PREFIX
from moorage.client.transport import RefusedError, UnreachableError

REFUSE, SHARE, WAIT = "refuse", "share", "wait"
"""What to do if an outer run has such a lease: fail, use its lease, or wait for another one."""

SHORT_SECONDS = 5.0
"""A wait of at most this long ends by itself: it may be for an own lease, which is only named."""

NESTED = "nested"
DEPTH_MAX = 8
"""How many leases of outer runs are checked."""

LEASES_MAX = 100
"""How many leases are looked at for those of this process and its ancestors."""


class NestedError(NotGrantedError):
    """An own lease has units of a requested pool, and would have to end first."""

    def __init__(self, around: Lease, message: str) -> None:
        super().__init__(NESTED, message)
        self.around = around


class OwnLeases(NamedTuple):
    """The ids of own leases: those `around` end after the request, those `beside` may do so.

    `complete`: those are all of this process that matter. Otherwise it may be any of them.
    """

    around: Sequence[str]
    beside: Sequence[str] = ()
    complete: bool = False


def leases_around(environ: Mapping[str, str]) -> list[str]:
    """Return the leases of the outer runs, from the outermost to the innermost."""
    outer = environ.get(f"{LEASE_PREFIX}OUTER", "").split()
    inner = environ.get(f"{LEASE_PREFIX}ID", "").split()
    return (outer + inner)[-DEPTH_MAX:]


def check_nesting(leases: Leases, wish: LeaseRequest, environ: Mapping[str, str]) -> None:
    """Raise NestedError if an outer run's lease is granted and has units of a pool of the wish.

    Of a wish with alternatives: of a pool of each of them. Asks the server, because the lease may
    have ended or belong to another server. Raises the errors of the transport, too.
    """
    options = [set(needs) for needs in wish.alternatives]
    for lease_id in reversed(leases_around(environ)):
        try:
            around = leases.look(lease_id)
        except RefusedError as refusal:
            if refusal.status >= 500:
                raise
            continue  # an unknown lease, or an error that the next request meets as well
        except StrangeAnswerError:
            continue
        held = {pool for pool, _ in around.needs}
        common = held & wish.pool_names
        if around.state == "granted" and all(held & option for option in options):
            raise NestedError(
                around,
                f"the outer command has lease {around.id} of {', '.join(sorted(common))}, and this"
                f" command would wait for that lease to end: use --nested share or --nested wait",
            )


def check_own(
    leases: Leases, wish: LeaseRequest, ticket: Lease, own: OwnLeases, tell: Callable[[str], None]
) -> bool:
    """Check whether a ticket waits for own leases; return False if asking again may tell more.

    Advisory: other errors of the server are ignored.

    Args:
        leases: calls the server.
        wish: what is requested.
        ticket: that waits.
        own: the leases that are known to be own ones; more are found by their labels.
        tell: called with a line that names an own lease for which this may wait.

    Raises NestedError: leases around it leave too few units as long as they last.
    """
    try:
        around = _granted(leases, own.around)
        for pool, units in wish.needs:
            _check_pool(leases, pool, units, ticket, around, own, tell)
    except UnreachableError:
        return False
    except RefusedError as refusal:
        return not (refusal.is_temporary or refusal.token_may_change)
    except StrangeAnswerError:
        return True
    return True


def _check_pool(
    leases: Leases,
    pool: str,
    units: int,
    ticket: Lease,
    around: Sequence[Lease],
    own: OwnLeases,
    tell: Callable[[str], None],
) -> None:
    capacity, quota = leases.units_of(pool)

    def leaves(holders: Iterable[Lease]) -> int:
        mine = [one for one in holders if quota is not None and one.owner == ticket.owner]
        left = capacity - sum(map(_units(pool), holders))
        return left if quota is None else min(left, quota - sum(map(_units(pool), mine)))

    holding = [one for one in around if _units(pool)(one)]
    lasting = [one for one in holding if one.hold_until is None]
    if lasting and leaves(lasting) < units <= leaves([]):
        first = max(lasting, key=_units(pool))
        raise NestedError(
            first, f"{_said(first, pool, capacity)}, and this command would wait for itself"
        )
    known = {one.id for one in around}
    found = [one for one in _beside(leases, pool, own) if one.id not in known]
    holding += [one for one in found if _units(pool)(one) and one.id != ticket.id]
    if holding and leaves(holding) < units <= leaves([]):
        first = max(holding, key=_units(pool))
        whose = f" (process {pid})" if (pid := first.labels.get("pid")) else ""
        tell(f"{_said(first, pool, capacity)}{whose}: this command waits until that lease ends")


def _said(own: Lease, pool: str, capacity: int) -> str:
    return f"your own lease {own.id} holds {_units(pool)(own)} of {capacity} units of {pool}"


def _units(pool: str) -> Callable[[Lease], int]:
    return lambda lease: dict(lease.needs).get(pool, 0)


def _beside(leases: Leases, pool: str, own: OwnLeases) -> list[Lease]:
    """Return granted leases of this process, and those that name it or an ancestor of it."""
    found = {one.id: one for one in _granted(leases, own.beside)}
    processes = {str(pid) for pid in (*(() if own.complete else (os.getpid(),)), *lineage())}
    for one in leases.held_here(pool, accepted(socket.gethostname()), LEASES_MAX):
        if one.labels.get("pid") in processes:
            found[one.id] = one
    return [*found.values()]


def _granted(leases: Leases, ids: Iterable[str]) -> list[Lease]:
    found = []
    for lease_id in [*ids][-DEPTH_MAX:]:
        try:
            lease = leases.look(lease_id)
        except RefusedError as refusal:
            if refusal.status >= 500:
                raise
            continue  # it is unknown, or of another server
        if lease.state == "granted":
            found.append(lease)
    return found


def covers(around: Lease, wish: LeaseRequest) -> bool:
    """Return whether a lease has all units of a wish; not known if that asks for labels."""
    if wish.slot_labels or any(need.labels for needs in wish.any_of for need in needs):
        return False
    held = dict(around.needs)
    return any(
        all(units <= held.get(pool, 0) for pool, units in needs.items())
        for needs in wish.alternatives
    )
