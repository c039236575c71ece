"""The Prometheus metrics of pools."""

from pathlib import Path

from prometheus_client.samples import Sample

from moorage.core.admission.requests import Proof
from moorage.core.clock import SECOND
from moorage.serve.metrics import PoolMetrics
from moorage.service.admission.lease_cases import LeaseRelease, LeaseRenew
from tests.service.pools import ask, pass_time, pool_delete, pool_put, spec, with_manual_clock
from tests.service.running import Running


def values_of(one: Running, name: str) -> dict[str, float]:
    """Return the values of a metric by pool."""
    return {sample.labels["pool"]: sample.value for sample in samples_of(one, name)}


def samples_of(one: Running, name: str) -> list[Sample]:
    """Return the samples of a metric."""
    families = PoolMetrics(one.service.admission).collect()
    (family,) = (family for family in families if family.name == name)
    return family.samples


def histogram_of(one: Running, name: str, pool: str) -> tuple[float, float, float]:
    """Return how many durations of a pool are at most a minute, how many there are, their sum."""
    found = {
        (sample.name, sample.labels.get("le")): sample.value
        for sample in samples_of(one, name)
        if sample.labels["pool"] == pool
    }
    count, total = found[f"{name}_count", None], found[f"{name}_sum", None]
    assert found[f"{name}_bucket", "+Inf"] == count
    return found[f"{name}_bucket", "60.0"], count, total


def test_unheard_leases_are_counted(tmp_path: Path) -> None:
    """A lease counts in each of its pools while it is unheard, until it is renewed."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "keep", spec(5, expire="keep"))
        await pool_put(admission, "free", spec(5))
        gone = (await ask(admission, "gone", "keep", "free")).lease
        there = (await ask(admission, "there", "keep")).lease
        await ask(admission, "over", "free")
        await pass_time(one, 50 * SECOND)
        await admission.change(LeaseRenew(there.id, Proof("me")))
        await pass_time(one, 50 * SECOND)
        await admission.look_at_pools()
        assert values_of(one, "moorage_pool_unheard") == {"keep": 1, "free": 1}
        await admission.change(LeaseRenew(gone.id, Proof("me")))
        await admission.look_at_pools()
        assert values_of(one, "moorage_pool_unheard") == {"keep": 0, "free": 0}
        assert values_of(one, "moorage_pool_occupied") == {"keep": 2, "free": 1}

    with_manual_clock(tmp_path, scenario)


def test_waits_and_holds_are_counted_by_pool(tmp_path: Path) -> None:
    """A grant counts its wait, an end its hold, once in each pool; a withdrawn ticket neither."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        for name in ("p", "q"):
            await pool_put(admission, name, spec(1, hold=None))
        first = (await ask(admission, "first", "p", "q", ttl=600 * SECOND)).lease
        await ask(admission, "second", "p", ttl=600 * SECOND, patience=600 * SECOND)
        gone = (await ask(admission, "gone", "p", patience=600 * SECOND)).lease
        one.clock.at += 50 * SECOND
        await admission.change(LeaseRelease(gone.id, Proof("me")))
        one.clock.at += 50 * SECOND
        await admission.change(LeaseRelease(first.id, Proof("me")))
        assert histogram_of(one, "moorage_lease_wait_seconds", "p") == (1, 2, 100)
        assert histogram_of(one, "moorage_lease_wait_seconds", "q") == (1, 1, 0)
        for name in ("p", "q"):
            assert histogram_of(one, "moorage_lease_held_seconds", name) == (0, 1, 100)
        await pool_delete(admission, "q")
        waits = samples_of(one, "moorage_lease_wait_seconds")
        assert {sample.labels["pool"] for sample in waits} == {"p"}

    with_manual_clock(tmp_path, scenario)


def test_ages_of_the_oldest(tmp_path: Path) -> None:
    """The age is that of the oldest lease, and of the oldest ticket, as of the last look."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await pool_put(admission, "p", spec(1))
        await pool_put(admission, "idle", spec(1))
        first = (await ask(admission, "first", "p", ttl=600 * SECOND)).lease
        one.clock.at += 20 * SECOND
        await ask(admission, "second", "p", patience=600 * SECOND)
        one.clock.at += 40 * SECOND
        assert values_of(one, "moorage_pool_oldest_ticket_seconds") == {"p": 0, "idle": 0}
        await admission.look_at_pools()
        assert values_of(one, "moorage_pool_oldest_lease_seconds") == {"p": 60, "idle": 0}
        assert values_of(one, "moorage_pool_oldest_ticket_seconds") == {"p": 40, "idle": 0}
        await admission.change(LeaseRelease(first.id, Proof("me")))
        one.clock.at += 5 * SECOND
        await admission.look_at_pools()
        assert values_of(one, "moorage_pool_oldest_lease_seconds") == {"p": 5, "idle": 0}
        assert values_of(one, "moorage_pool_oldest_ticket_seconds") == {"p": 0, "idle": 0}

    with_manual_clock(tmp_path, scenario)
