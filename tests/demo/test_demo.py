"""The example of `make demo`: complete from the first moment, alive, the same for the same seed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Timer

import pytest

from moorage.client.admission import Admission
from moorage.client.fleet import Fleet
from moorage.client.ledger import Ledger
from moorage.client.transport import Transport
from moorage.integrations.ironic.rollout import WAVE
from tests.demo.running import JOBS, PAST_MINUTES, SECONDS, Started, example

READY_SECONDS = 30
"""How soon a reader can sign in, on a machine that is busy with other tests."""

EARLY = [f"{pool}-{number}" for pool in ("install/azure", "provision/rack") for number in (1, 2)]
"""The keys of jobs that come in the first minute."""

TIMES = ("asked_at", "granted_at", "expires_at")
UNCONFIRMED = timedelta(seconds=15)
"""How long a grant lasts that nobody confirms."""


def seen(transport: Transport) -> dict[str, object]:
    """Return what does not change while the example lives: its things, and its past."""
    ledger, fleet, admission = Ledger(transport), Fleet(transport), Admission(transport)
    early = [one for one in admission.leases() if one.key in EARLY]
    return {
        "providers": [(one.uuid, one.name) for one in ledger.providers()],
        "agents": [(one.id, one.group) for one in fleet.agents()],
        "pools": [(one.name, one.units, one.paused) for one in admission.pools()],
        "first jobs": sorted((one.key, *one.labels.values(), one.priority) for one in early),
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Return an example that is ready."""
    with example(tmp_path_factory.mktemp("shown")) as started:
        yield started


def test_the_example_is_complete(shown: Started) -> None:
    """Everything that the pages show is there, and soon."""
    assert int(shown.named["seconds"]) <= READY_SECONDS
    admission = Admission(shown.admin)
    pools = {one.name: one for one in admission.pools()}
    assert pools["install/aws"].paused
    assert pools["gpu"].slots
    assert sum(one.occupied + one.waiting for one in pools.values()) >= JOBS // 2
    lines = {one.resource_class: one for one in Ledger(shown.admin).capacity().lines}
    assert lines["VCPU"].used > 0
    assert any(one.failure is not None for one in Fleet(shown.admin).agents())
    holders = [one for one in admission.leases(state="granted") if "build" in one.labels]
    assert holders[0].labels["build"].startswith("https://")


def test_plots_have_a_past(shown: Started) -> None:
    """Jobs ran before the start, as the service counts them."""
    history = Admission(shown.admin).pool_history("provision/rack", 3_600.0, 10)
    assert PAST_MINUTES * 60 <= history.covered_seconds <= PAST_MINUTES * 60 + SECONDS
    occupied = [point.occupied_high for point in history.points]
    assert occupied[0] < max(occupied)
    assert min(occupied[3:]) > 0


def test_a_rollout_works_on_hosts(shown: Started) -> None:
    """Its leases name machines of the fleet, with the labels of `moorage ironic rollout`."""
    names = {one.uuid: one.name for one in Ledger(shown.admin).providers()}
    leases = [*Admission(shown.admin).leases("rollout/firmware-7.2")]
    assert leases
    for lease in leases:
        assert names[lease.labels["node"]] == lease.labels["holder"]
        assert lease.labels[WAVE] == "firmware-7.2"


def test_the_example_lives(shown: Started) -> None:
    """Its jobs end and others begin, as the change feed shows."""
    watch, kinds = Ledger(shown.admin).watch(kinds=("lease", "consumer")), set()
    late = Timer(SECONDS, watch.close)
    late.start()
    for change in watch:
        kinds.add(change.kind)
        if kinds == {"lease", "consumer"}:
            break
    late.cancel()
    assert kinds == {"lease", "consumer"}


def test_jobs_that_waited_confirm_their_grants(shown: Started) -> None:
    """A grant that nobody confirms is taken back after 15 s."""
    watch = Ledger(shown.admin).watch(kinds=("lease",))
    late = Timer(SECONDS, watch.close)
    late.start()
    kept = None
    for _ in watch:
        path = "/v1/leases?pool=install/azure&state=granted"
        for lease in shown.admin.request("GET", path)["leases"]:
            asked, granted, ends = (datetime.fromisoformat(lease[name]) for name in TIMES)
            if asked < granted and granted + UNCONFIRMED < ends:
                kept = lease
        if kept is not None:
            break
    late.cancel()
    assert kept is not None


def test_the_same_seed_is_the_same_example(shown: Started, tmp_path: Path) -> None:
    """Another seed has other jobs on the same machines."""
    first = seen(shown.admin)
    with example(tmp_path) as again:
        assert seen(again.admin) == first
    with example(tmp_path, seed=2) as another:
        other = seen(another.admin)
    assert other["providers"] == first["providers"]
    assert other["first jobs"] != first["first jobs"]
