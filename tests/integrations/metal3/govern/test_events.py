"""Events about hosts, against a real Moorage and the double of an API server."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.integrations.kubernetes import denials
from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3 import events as posting_events
from moorage.integrations.metal3.events import EVENTS_MAX, Event, Events, State
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.hosts import WAITING, BareMetalHost, uid_of
from moorage.integrations.metal3.install import manifest
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, LIMIT, OWN, World, play
from tests.integrations.metal3.test_manifests import VALUES
from tests.support.bmo_double.hosts import annotations
from tests.support.kubernetes_client import Kubernetes, Object, host
from tests.support.kubernetes_double.access import ADMIN, service_account
from tests.support.kubernetes_double.faults import Fault
from tests.support.kubernetes_double.server import KubernetesDouble

AT = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MISSING = "missing"
"""A pool that there is not."""


def events(double: KubernetesDouble) -> list[Object]:
    """Return our events that are stored."""
    found = [one.object for one in double.storage.after(0) if one.key[1] == "events"]
    return [one for one in found if one.get("source", {}).get("component") == "moorage"]


def reasons(double: KubernetesDouble) -> Counter[tuple[str, str]]:
    """Return how many of our events there are, by host and reason."""
    return Counter((one["involvedObject"]["name"], one["reason"]) for one in events(double))


def test_hosts_have_an_event_for_each_state(tmp_path: Path) -> None:
    """Of two governors that see the same, each host gets one event when it waits and one when it
    starts to work; a third one, started later, adds none.
    """
    names = [f"host-{number}" for number in range(LIMIT + 2)]

    async def scene(world: World) -> None:
        for name in names[:LIMIT]:
            await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
        async with world.governor() as first, world.governor() as second:
            await world.until(lambda: world.held() == LIMIT, first, second)
            for name in names[LIMIT:]:
                await world.api.create(ALL, host(name, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.reached(names, "provisioned"), first, second)
        async with world.governor() as third:
            await third.tick()
        found = reasons(world.double)
        waiting = {name for name, reason in found if reason == "Waiting"}
        assert waiting == {*names[LIMIT:]}
        started = {name for name, reason in found if reason == "Started"}
        assert started == {*names}
        # An inspection and a deployment are two starts.
        assert max(found.values()) <= 2
        tried = world.double.counts["create", "events"]
        assert tried > len(events(world.double))
        texts = {one["reason"]: one["message"] for one in events(world.double)}
        assert re.fullmatch(
            r"Place \d in line of deploy(, .*)?: .*limit: 4 of 4 .*", texts["Waiting"]
        )
        assert re.fullmatch(
            r"1 unit of deploy granted after \d+ s: the host starts to (inspect|provision)",
            texts["Started"],
        )

    play(tmp_path, scene)


def test_what_moorage_refuses_is_shown(tmp_path: Path) -> None:
    """A host that works without being counted, and one that cannot wait, have a warning each, with
    Moorage's words; repeated passes add none.
    """

    @asynccontextmanager
    async def governing(world: World) -> AsyncIterator[Governor]:
        async with (
            LeaseApi(world.url, world.token) as leases,
            KubernetesApi(Connection(world.double.url)) as api,
        ):
            rules = Rules.of_pool(MISSING)
            governor = Governor(HostLeases(leases), HostRequests(api), rules)
            yield governor
            assert await governor.tick()
            await governor.close()

    def said(world: World, name: str) -> str:
        return str(annotations(world.host(name)).get(WAITING))

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("works", image=IMAGE))
        await world.until(lambda: world.reached(["works"], "inspecting"))
        await world.api.create(ALL, host("waits", image=IMAGE, annotations=OWN))
        async with governing(world) as governor:
            await world.until(lambda: "be counted" in said(world, "waits"), governor)
        assert reasons(world.double) == {("works", "Uncounted"): 1, ("waits", "NotStarted"): 1}
        await world.until(lambda: world.reached(["works"], "provisioned"))
        async with governing(world) as governor:
            await world.until(lambda: reasons(world.double)["waits", "NotStarted"] == 2, governor)
            await world.until(lambda: MISSING in said(world, "waits"), governor)
        assert reasons(world.double) == {("works", "Uncounted"): 1, ("waits", "NotStarted"): 2}
        found = {one["reason"]: one for one in events(world.double)}
        assert {one["type"] for one in found.values()} == {"Warning"}
        assert all(MISSING in one["message"] for one in found.values())
        assert yaml.safe_load(said(world, "waits"))["code"] == "not_possible"

    play(tmp_path, scene)


def event(of: BareMetalHost, cause: str = "1", state: State = State.WAITING) -> Event:
    """Return an event about a host."""
    return Event(of, state, cause, "Place 1", AT)


def test_the_object_and_its_name() -> None:
    """It is as Kubernetes' API reference has it, and its name is valid, whatever the host's."""
    read = host("a" * 199 + "." + "b" * 50, namespace="metal3", uid="u")
    found = event(read).object()
    assert found == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": found["metadata"]["name"], "namespace": "metal3"},
        "involvedObject": {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "namespace": "metal3",
            "name": read["metadata"]["name"],
            "uid": "u",
        },
        "type": "Normal",
        "reason": "Waiting",
        "message": "Place 1",
        "source": {"component": "moorage"},
        "reportingComponent": "moorage.dev/governor",
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 1,
    }
    assert NAME.fullmatch(found["metadata"]["name"])
    assert len(found["metadata"]["name"]) <= 253
    other = host("a" * 199 + "." + "b" * 50, namespace="metal3", uid="v")
    names = {event(read).name, event(read, "2").name, event(other).name}
    assert len({*names, event(read, state=State.STARTED).name}) == 4


Scene = Callable[[KubernetesDouble, HostRequests, dict[str, BareMetalHost]], Awaitable[None]]


def posting(number: int, scene: Scene, rights: list[Object] | None = None) -> None:
    """Run a scene with some hosts, and the rights of a role; None: all."""

    async def run() -> None:
        accounts = {"admin": ADMIN}
        if rights is not None:
            accounts["governor"] = service_account(rights, "moorage", "moorage")
        token = "admin" if rights is None else "governor"
        connection_headers = {"Authorization": f"Bearer {token}"}
        async with (
            KubernetesDouble(accounts=accounts) as double,
            Kubernetes(double.url, token="admin") as client,
            KubernetesApi(Connection(double.url, lambda: connection_headers)) as api,
        ):
            for one in range(number):
                await client.create(ALL, host(f"h{one}"))
            requests = HostRequests(api)
            hosts = {uid_of(one): one for one in await requests.all()}
            await asyncio.wait_for(scene(double, requests, hosts), 60)

    asyncio.run(run())


def test_an_event_that_fails_is_tried_later_and_holds_nothing_up() -> None:
    """Errors and lost answers raise nothing; the hosts concerned rest, the others have theirs."""

    async def scene(
        double: KubernetesDouble, requests: HostRequests, hosts: dict[str, BareMetalHost]
    ) -> None:
        double.faults.pending += [
            Fault("create", "events", answer=500),
            Fault("create", "events", answer="drop", carry_out=True),
        ]
        posted = Events(requests)
        wanted = {uid: event(one) for uid, one in hosts.items()}
        await posted.post(hosts, wanted)
        assert len(events(double)) == 3  # one was carried out, although its answer was lost
        await posted.post(hosts, wanted)
        assert double.counts["create", "events"] == 4
        await Events(requests).post(hosts, wanted)
        assert len(events(double)) == 4

    posting(4, scene)


def test_one_pass_creates_only_some_and_what_matters_most_first() -> None:
    """Warnings come before starts, and these before places in line; all are created in the end."""

    async def scene(
        double: KubernetesDouble, requests: HostRequests, hosts: dict[str, BareMetalHost]
    ) -> None:
        posted = Events(requests)
        wanted = {uid: event(one) for uid, one in hosts.items()}
        last = [*hosts][-1]
        wanted[last] = event(hosts[last], "x", State.UNCOUNTED)
        await posted.post(hosts, wanted)
        assert len(events(double)) == EVENTS_MAX
        assert "Uncounted" in {one["reason"] for one in events(double)}
        await posted.post(hosts, wanted)
        assert len(events(double)) == len(hosts)

    posting(EVENTS_MAX + 5, scene)


def governor_manifest() -> list[Any]:
    """Return the documents with the rights of the governor."""
    kinds = ("ClusterRole", "ClusterRoleBinding")
    found = yaml.safe_load_all(manifest("governor", VALUES))
    return [one for one in found if one["kind"] in kinds]


def test_the_rights_of_the_manifest_suffice() -> None:
    """With them, events are created, and hosts are read and annotated."""

    async def scene(
        double: KubernetesDouble, requests: HostRequests, hosts: dict[str, BareMetalHost]
    ) -> None:
        (uid,) = hosts
        await Events(requests).post(hosts, {uid: event(hosts[uid])})
        assert len(events(double)) == 1
        assert await requests.note(hosts[uid], "x")
        assert not double.access.denied

    posting(1, scene, governor_manifest())


def rights_without_events() -> list[Any]:
    """Return the documents with all rights of the governor but one."""
    rights = governor_manifest()
    for one in rights:
        one["rules"] = [rule for rule in one.get("rules", ()) if rule["resources"] != ["events"]]
    return rights


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time stand still; the test adds to its one number."""
    seconds = [1_000.0]
    for module in (denials, posting_events):
        monkeypatch.setattr(module, "monotonic", lambda: seconds[0])
    return seconds


def test_a_missing_right_is_named_once(
    caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    """If the right is still denied after some time, one warning names it; nothing is tried again
    for a while.
    """

    async def scene(
        double: KubernetesDouble, requests: HostRequests, hosts: dict[str, BareMetalHost]
    ) -> None:
        posted = Events(requests)
        wanted = {uid: event(one) for uid, one in hosts.items()}
        with caplog.at_level(logging.WARNING, "moorage.metal3"):
            for _ in range(2):
                await posted.post(hosts, wanted)
            assert 1 <= len(double.access.denied) <= 8
            assert not caplog.records
            clock[0] += denials.SETTLE_SECONDS
            for _ in range(2):
                await posted.post(hosts, wanted)
        (record,) = caplog.records
        assert 'resources ["events"], verbs ["create"]' in record.getMessage()
        assert "moorage:moorage" in record.getMessage()
        assert len(double.access.denied) <= 16

    posting(20, scene, rights_without_events())


def test_a_right_that_is_not_known_yet_is_not_missing(
    caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    """An API server that has just started denies what it permits a moment later: all events are
    created then, and no warning names a right.
    """

    async def scene(
        double: KubernetesDouble, requests: HostRequests, hosts: dict[str, BareMetalHost]
    ) -> None:
        posted = Events(requests)
        wanted = {uid: event(one) for uid, one in hosts.items()}
        with caplog.at_level(logging.WARNING, "moorage.metal3"):
            await posted.post(hosts, wanted)
            assert double.access.denied
            double.access.accounts["governor"] = ADMIN
            clock[0] += posting_events.SETTLE_SECONDS
            await posted.post(hosts, wanted)
        assert not caplog.records
        assert len(events(double)) == len(hosts)

    posting(20, scene, rights_without_events())
