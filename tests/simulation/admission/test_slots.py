"""Boskos' clients, the lease proxy and native clients on the same slots, seed after seed."""

import pytest

from tests.simulation.admission.slots_play import SlotsPlay

SEEDS = 400
CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_slots(chunk: int) -> None:
    """After every call each slot and each lease equals the naive model's."""
    size = SEEDS // CHUNKS
    plays = [SlotsPlay(seed).run() for seed in range(chunk * size, (chunk + 1) * size)]
    ended = {one.state for play in plays for one in play.model.leases}
    assert {"released", "revoked", "ttl_over", "hold_over", "unheard", "withdrawn"} <= ended
