"""The Prometheus metrics of pools."""

from pathlib import Path

from moorage.core.admission.leases import Proof
from moorage.core.clock import SECOND
from moorage.serve.pool_metrics import PoolMetrics
from tests.service.pools import ask, pass_time, spec, with_manual_clock
from tests.service.running import TESTER, Running


def values_of(one: Running, name: str) -> dict[str, float]:
    """Return the values of a metric by pool."""
    families = PoolMetrics(one.service.admission).collect()
    (family,) = (family for family in families if family.name == name)
    return {sample.labels["pool"]: sample.value for sample in family.samples}


def test_unheard_leases_are_counted(tmp_path: Path) -> None:
    """A lease counts in each of its pools while it is unheard, until it is renewed."""

    async def scenario(one: Running) -> None:
        admission = one.service.admission
        await admission.pool_put("keep", spec(5, expire="keep"), None, TESTER)
        await admission.pool_put("free", spec(5), None, TESTER)
        gone = (await ask(admission, "gone", "keep", "free")).lease
        there = (await ask(admission, "there", "keep")).lease
        await ask(admission, "over", "free")
        await pass_time(one, 50 * SECOND)
        await admission.renew(there.id, Proof("me"))
        await pass_time(one, 50 * SECOND)
        await admission.look_unheard()
        assert values_of(one, "moorage_pool_unheard") == {"keep": 1, "free": 1}
        await admission.renew(gone.id, Proof("me"))
        await admission.look_unheard()
        assert values_of(one, "moorage_pool_unheard") == {"keep": 0, "free": 0}
        assert values_of(one, "moorage_pool_occupied") == {"keep": 2, "free": 1}

    with_manual_clock(tmp_path, scenario)
