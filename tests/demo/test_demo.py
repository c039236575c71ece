"""The example of `make demo`: complete from the first moment, alive, the same for the same seed."""

from pathlib import Path
from threading import Timer

from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from tests.demo.running import JOBS, PAST_MINUTES, SECONDS, example

READY_SECONDS = 30
"""How soon a reader can sign in, on a machine that is busy with other tests."""


def seen(transport: Transport) -> dict[str, object]:
    """Return what does not change while the example lives: its things, and its past."""
    ledger, fleet, admission = Ledger(transport), Fleet(transport), Admission(transport)
    ended = [one for one in admission.leases() if one.key.rpartition("-")[2] in {"1", "2", "3"}]
    return {
        "providers": [(one.uuid, one.name) for one in ledger.providers()],
        "agents": [(one.id, one.group) for one in fleet.agents()],
        "pools": [(one.name, one.units, one.paused) for one in admission.pools()],
        "first jobs": sorted((one.key, *one.labels.values(), one.priority) for one in ended),
    }


def test_the_example_is_complete_and_repeats(tmp_path: Path) -> None:
    """Everything that the pages show is there; another seed has other jobs."""
    with example(tmp_path, 7) as started:
        assert int(started.named["seconds"]) <= READY_SECONDS
        first = seen(started.admin)
        admission = Admission(started.admin)
        pools = {one.name: one for one in admission.pools()}
        assert pools["install/aws"].paused
        assert pools["gpu"].slots
        assert sum(one.occupied + one.waiting for one in pools.values()) >= JOBS // 2
        ledger, fleet = Ledger(started.admin), Fleet(started.admin)
        lines = {one.resource_class: one for one in ledger.capacity().lines}
        assert lines["VCPU"].used > 0
        assert any(one.failure is not None for one in fleet.agents())
        holders = [one for one in admission.leases(state="granted") if "build" in one.labels]
        assert holders[0].labels["build"].startswith("https://")
    with example(tmp_path, 7) as started:
        assert seen(started.admin) == first
    with example(tmp_path, 8) as started:
        other = seen(started.admin)
    assert other["providers"] == first["providers"]
    assert other["first jobs"] != first["first jobs"]


def test_plots_have_a_past(tmp_path: Path) -> None:
    """Jobs ran before the start, as the service counts them."""
    with example(tmp_path) as started:
        history = Admission(started.admin).pool_history("install/azure", 3_600.0, 10)
        assert PAST_MINUTES * 60 <= history.covered_seconds <= PAST_MINUTES * 60 + SECONDS
        occupied = [point.occupied_high for point in history.points]
        assert occupied[0] < max(occupied)
        assert min(occupied[3:]) > 0
        report = Admission(started.admin).pool_report("install/azure")
        assert report.leases > 0


def test_a_rollout_works_on_hosts(tmp_path: Path) -> None:
    """Its leases name machines of the fleet, with the labels of `moorage ironic rollout`."""
    with example(tmp_path) as started:
        names = {one.uuid: one.name for one in Ledger(started.admin).providers()}
        leases = [*Admission(started.admin).leases("rollout/firmware-7.2")]
        assert leases
        for lease in leases:
            assert names[lease.labels["node"]] == lease.labels["holder"]
            assert lease.labels["wave"] == "firmware-7.2"


def test_the_example_lives(tmp_path: Path) -> None:
    """Its jobs end and others begin, as the change feed shows."""
    with example(tmp_path) as started:
        watch, kinds = Ledger(started.admin).watch(kinds=("lease", "consumer")), set()
        late = Timer(SECONDS, watch.close)
        late.start()
        for change in watch:
            kinds.add(change.kind)
            if kinds == {"lease", "consumer"}:
                break
        late.cancel()
        assert kinds == {"lease", "consumer"}
