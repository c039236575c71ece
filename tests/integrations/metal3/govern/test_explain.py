"""What explains a pass to people holds no pass up, and repeats nothing."""

import asyncio
from datetime import UTC, datetime, timedelta

from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.metal3.events import RECENT, events_of
from moorage.integrations.metal3.explain import EXPLAIN_SECONDS, Explainer
from moorage.integrations.metal3.governor import utc_now
from moorage.integrations.metal3.hosts import uid_of
from moorage.integrations.metal3.notes import PUT_SECONDS
from moorage.integrations.metal3.requests import HostRequests
from moorage.wire.admission import Lease
from tests.integrations.metal3.govern.test_events import events
from tests.integrations.metal3.govern.test_governor import ALL, OWN
from tests.support.granted import granted
from tests.support.kubernetes_client import Kubernetes, host
from tests.support.kubernetes_double.faults import Fault
from tests.support.kubernetes_double.server import KubernetesDouble

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def started(uid: str, verb: str, age: timedelta, *, begun: bool = True) -> Lease:
    """Return the lease of a host that was granted some time ago."""
    return granted(
        f"metal3/{uid}/{verb}",
        {"deploy": 1, "rack": 2},
        id=f"lease-{verb}-{age}",
        asked_at=NOW - age - timedelta(seconds=75),
        granted_at=NOW - age,
        record={"begun": begun, "sent": []},
    )


def test_an_api_server_that_is_slow_holds_no_pass_up() -> None:
    """After a second for each note that hangs a pass goes on, and events need no notes."""

    async def scene() -> None:
        async with (
            KubernetesDouble() as double,
            Kubernetes(double.url) as client,
            KubernetesApi(Connection(double.url)) as api,
        ):
            for number in range(3):
                await client.create(ALL, host(f"h{number}", annotations=OWN))
            double.faults.pending.append(Fault("patch", wait=600.0, times=3))
            loop = asyncio.get_running_loop()
            begun = loop.time()
            requests = HostRequests(api)
            hosts = {uid_of(one): one for one in await requests.all()}
            explainer = Explainer(requests, utc_now)
            await explainer.explain(hosts, {}, {}, dict.fromkeys(hosts, "why"), {})
            assert PUT_SECONDS <= loop.time() - begun < EXPLAIN_SECONDS + 5
            assert [one["reason"] for one in events(double)] == ["NotStarted"] * 3
            await explainer.explain(hosts, {}, {}, dict.fromkeys(hosts, "why"), {})
            assert len(events(double)) == 3

    asyncio.run(asyncio.wait_for(scene(), 60))


def test_only_starts_of_late_have_an_event() -> None:
    """A process that was restarted does not repeat what was long ago, and work that others started
    is no start of ours.
    """
    second = timedelta(seconds=1)
    leases = {
        "new": started("new", "provision", second),
        "old": started("old", "provision", RECENT + second),
        "adopted": started("adopted", "adopted", second),
        "unsent": started("unsent", "provision", second, begun=False),
    }
    hosts = {name: host(name, uid=name) for name in leases}
    held = {name: [lease] for name, lease in leases.items()}
    ((uid, found),) = events_of(hosts, {}, held, {}, {}, NOW)
    assert uid == "new"
    assert found.message == (
        "1 unit of deploy and 2 units of rack granted after 75 s: the host starts to provision"
    )
    paused = {name: host(name, uid=name, annotations=OWN) for name in leases}
    assert not [*events_of(paused, {}, held, {}, {}, NOW)]
