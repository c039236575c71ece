"""Boskos' clients, the lease proxy and native clients on the same slots, seed after seed."""

from tests.simulation.admission.slots_play import SlotsPlay
from tests.support.seeds import seeds


@seeds(400, chunk=50)
def test_slots(seeds: range) -> None:
    """After every call each slot and each lease equals the naive model's."""
    plays = [SlotsPlay(seed).run() for seed in seeds]
    ended = {one.state for play in plays for one in play.model.leases}
    assert {"released", "revoked", "ttl_over", "hold_over", "unheard", "withdrawn"} <= ended
