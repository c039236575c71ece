"""I30: before the next time that is noted, time alone lets nobody start, end, or be asked to stop.

A line that nothing wakes would wait until somebody asks by chance. So between two batches a sweep
of all pools is decided for times before that, and nothing is kept of it.
"""

from copy import copy
from random import Random

from moorage.core.admission.model import Lease
from moorage.core.service_time import OUTAGE
from tests.simulation.admission import calls as do
from tests.simulation.admission.books import claim
from tests.simulation.admission.server import Server


def nothing_moves(server: Server, wall: int, monotonic: int, random: Random) -> None:
    """Look at all pools just before the next time that is noted, and at some time before that."""
    memory = server.memory
    if server.last is None or memory.wanting():  # a ticket for the ledger is tried at other times
        return
    if server.mapped != memory.timeline.skew and memory.booked():
        return  # a sweep is about to map the times of bookings
    at, due = server.last + monotonic - server.monotonic, memory.next_due()
    # Nobody sweeps for longer than this only if there is an outage, which moves other times.
    most = memory.timeline.alive_at + OUTAGE
    left = (most if due is None else min(due, most)) - at
    if left < 2:
        return
    for passes in (left - 1, random.randrange(1, left)):
        batch = copy(server).decide(
            [do.Sweep(frozenset(memory.pools))], wall + passes, monotonic + passes
        )
        moved = [
            key
            for key, after in batch.changes.leases.items()
            if after is None or _state(after) != _state(memory.leases[key])
        ]
        said = ("after", passes, "and due is", None if due is None else due - at)
        claim(not moved, "I30", moved, "would move", *said)
        claim(not batch.changes.bookings, "I30", "units would be given back", *said)


def _state(lease: Lease) -> tuple[str, int | None]:
    return lease.state, lease.stop_until
