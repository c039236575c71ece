"""Ids that the service makes."""

from uuid import UUID

from moorage.core.ids import is_normal
from moorage.service.ids import lease_id_new


def test_lease_ids_rise() -> None:
    """They are distinct UUIDs of version 7 and rise from one millisecond to the next."""
    made = [lease_id_new() for _ in range(2_000)]
    assert len(set(made)) == len(made)
    assert all(is_normal(one) for one in made)
    assert {UUID(one).version for one in made} == {7}
    times = [one[:13] for one in made]
    assert times == sorted(times)
