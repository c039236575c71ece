"""The counters of admission for metrics."""

from pathlib import Path

from moorage.core.admission.requests import Proof
from moorage.service.admission.lease_cases import LeaseOutcome, LeaseRelease
from moorage.service.admission.service import Admission
from tests.service.pools import ask, play, pool_put, spec


def test_a_lease_ends_once(tmp_path: Path) -> None:
    """An outcome that is reported after the end does not count as another end."""

    async def scenario(admission: Admission) -> None:
        await pool_put(admission, "p", spec())
        lease = (await ask(admission, "a", "p")).lease
        await admission.change(LeaseRelease(lease.id, Proof("me")))
        told = await admission.change(LeaseOutcome(lease.id, Proof("me", lease.token), "ok", ""))
        assert told.lease.outcome == "ok"
        assert admission.tally.granted == {"p": 1}
        assert admission.tally.ended == {("p", "released"): 1}

    play(f"sqlite:///{tmp_path}/m.sqlite", scenario)
