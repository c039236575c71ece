"""The simulator sees a line that nothing wakes; see `wakes.py`."""

from random import Random

import pytest
from msgspec import structs

from moorage.core.admission.model import Need, PoolSpec
from moorage.core.clock import SECOND
from moorage.core.ids import LeaseId
from tests.simulation.admission import calls as do
from tests.simulation.admission.auditor import Auditor
from tests.simulation.admission.books import Violation
from tests.simulation.admission.memory import Memory
from tests.simulation.admission.server import Server
from tests.simulation.admission.simulation import START
from tests.simulation.admission.wakes import nothing_moves


def test_a_line_that_nothing_wakes_is_seen() -> None:
    """A ticket waits for a cooldown, and the pool forgets when that is over."""
    memory = Memory()
    ids = iter([LeaseId("first"), LeaseId("second")])
    server = Server(memory, Auditor(), lambda: next(ids))

    def batch(call: do.Call) -> None:
        server.commit(server.decide([call], START, START), START)

    def asked(key: str) -> do.Ask:
        return do.Ask(owner="me", key=key, needs=(Need("p", 1),))

    batch(
        do.PoolPut("p", PoolSpec(limit=1, ttl=9 * SECOND, ttl_max=9 * SECOND, cooldown=3 * SECOND))
    )
    batch(asked("1"))
    batch(do.Release(LeaseId("first"), "me", None))
    batch(asked("2"))
    assert memory.leases[LeaseId("second")].state == "waiting"

    nothing_moves(server, START, START, Random(0))  # the control
    memory.pools["p"] = structs.replace(memory.pools["p"], wake_at=None)
    with pytest.raises(Violation, match=r"I30.*second"):
        nothing_moves(server, START, START, Random(0))
    assert memory.leases[LeaseId("second")].state == "waiting"  # nothing is kept of it
