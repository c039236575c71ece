"""The steps of one request that may start work: stored as sent, sent, its answer stored.

Each is stored before the next one is taken, so that a process may be killed between any two: what
may have been sent keeps its unit until a reading shows that the host is idle.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from moorage.integrations.clock import monotonic
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.provisioning.unit_release import SEND_SECONDS, RequestOutcome
from moorage.wire.admission import Lease

A = TypeVar("A")


@dataclass(frozen=True)
class Answered(Generic[A]):
    """An answer, and what it says of the work.

    `requeue`: the host will try again soon, and keeps its place in line if its unit is released.
    """

    answer: A
    outcome: RequestOutcome
    requeue: bool = False


@dataclass(frozen=True)
class Request(Generic[A]):
    """A request that may start work.

    `send` sends it; an error is an answer, too. `unsent` is called in its place if storing it has
    taken too long, or if `left` says that nobody waits for it any more.
    """

    id: str
    send: Callable[[], Awaitable[Answered[A]]]
    unsent: Callable[[], Answered[A]]
    left: Callable[[], bool] = lambda: False


async def send_with_steps(
    host_leases: HostLeases,
    lease: Lease,
    request: Request[A],
    first_marks: Mapping[str, Any] | None = None,
) -> A:
    """Send a request for a host that has its units; return its answer, which is stored, too.

    With `first_marks` it must be the first one of the lease, and these are in the record before it
    is sent.

    Raises EndedError, UnreachableError and RefusedError before it is sent; CrowdedError without,
    TakenError with `first_marks`.
    """
    began = monotonic()
    if first_marks is None:
        lease = await host_leases.steps.sent(lease, request.id)
    else:
        lease = await host_leases.steps.sent_first(lease, request.id, first_marks)
    if request.left() or monotonic() - began > SEND_SECONDS:
        # Stored, but not sent: the unit is free again.
        found = request.unsent()
    else:
        async with host_leases.steps.under_way(lease, request.id):
            found = await request.send()
    await host_leases.settle(lease, request.id, found.outcome, requeue=found.requeue)
    return found.answer
