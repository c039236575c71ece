"""What becomes of the leases of BareMetalHosts: renewed, released with an outcome, given back."""

import logging
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from moorage.client.transport import Transport
from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metal3.governor import Governor
from moorage.integrations.metal3.hosts import BareMetalHost
from moorage.integrations.metal3.reconcile import Reconciler
from moorage.integrations.metal3.requests import HostRequests
from moorage.integrations.metal3.rules import Rules
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.wire.admission import Lease, LeaseWanted, NeedWanted
from tests.integrations.metal3.govern.process import governing
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, OWN, POOL, World, play
from tests.support.bmo_double.hosts import PAUSED, annotations, state
from tests.support.kubernetes_client import host

TTL = 1.0


def leases(world: World, wanted: str) -> list[Lease]:
    """Return the leases in a state."""
    return [*world.operator.leases(POOL, wanted)]


def failing_name(world: World, *, fails: bool, among: Iterable[int] = range(100)) -> str:
    """Return the name of a host of which the first deployment fails, or does not."""
    names = (f"host-{number}" for number in among)
    return next(name for name in names if world.nodes.fails(f"metal3~{name}") is fails)


def test_leases_are_renewed(tmp_path: Path) -> None:
    """A lease is never shown as unheard while a governor runs, however long its host works.

    Without passes it soon is.
    """

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
        async with world.governor() as governor:
            while not world.reached(["a"], "provisioned"):
                await world.until(lambda: True)
                assert await governor.tick()
                assert not any(lease.unheard for lease in leases(world, "granted"))
                await world.double.storage.changed(0.1)
            await world.until(lambda: not world.held(), governor)
            (ended,) = leases(world, "ended")
            assert ended.granted_at is not None and ended.ended_at is not None
            assert (ended.ended_at - ended.granted_at).total_seconds() > TTL
            await world.api.create(ALL, host("b", image=IMAGE, annotations=OWN))
            await world.until(lambda: world.held() == 1, governor)
        await world.until(lambda: leases(world, "granted")[0].unheard)

    play(tmp_path, scene, ttl=TTL, failing=0.0)


def test_outcomes_are_reported(tmp_path: Path) -> None:
    """A lease ends with ok once its host is provisioned, also if its first deployment has failed,
    or available without an image.
    """

    async def scene(world: World) -> None:
        bad = failing_name(world, fails=True)
        await world.api.create(ALL, host(bad, image=IMAGE, annotations=OWN))
        await world.api.create(ALL, host("idle", annotations=OWN))
        async with world.governor() as governor:
            await world.until(lambda: len(leases(world, "ended")) == 2, governor)
        assert state(world.host(bad)) == "provisioned"
        assert world.nodes.book.times(f"metal3~{bad}", "deploying") == 2
        found = {lease.labels["holder"]: lease.outcome for lease in leases(world, "ended")}
        assert found == {f"metal3/{bad}": "ok", "metal3/idle": "ok"}

    play(tmp_path, scene)


def test_a_host_that_the_operator_gives_up(tmp_path: Path) -> None:
    """The host gets our pause again and gives its only unit back, which another one uses; it asks
    again after some time, gives the unit back again, and is provisioned once its image is changed.
    """

    async def scene(world: World) -> None:
        bad, good = (failing_name(world, fails=fails) for fails in (True, False))

        def given_up(times: int) -> bool:
            status = world.host(bad).get("status", {})
            held = annotations(world.host(bad)).get(PAUSED) == "moorage"
            return held and status.get("errorCount", 0) >= times

        async with world.governor(now=world.bmo.now, stuck_seconds=0.0) as governor:
            await world.api.create(ALL, host(bad, image=IMAGE, annotations=OWN))
            await world.until(lambda: world.held() == 1, governor)
            await world.api.create(ALL, host(good, image=IMAGE, annotations=OWN))
            await world.until(lambda: given_up(1), governor)
            await world.until(lambda: bool(leases(world, "ended")), governor)
            (ended,) = leases(world, "ended")
            assert (ended.labels["holder"], ended.outcome) == (f"metal3/{bad}", "failed")
            uid = world.host(bad)["metadata"]["uid"]
            why = "retry limit (1) reached"
            await world.until(lambda: why in governor.remarks.get(uid, ""), governor)
            await world.until(lambda: world.reached([good], "provisioned"), governor)
            await world.until(lambda: given_up(2), governor)
            await world.until(lambda: not world.held(), governor)
            image = {"image": {"url": "http://other", "checksum": "c"}}
            await world.api.merge(f"{ALL}/{bad}", {"spec": image})
            await world.until(lambda: world.reached([bad], "provisioned"), governor)
            await world.until(lambda: not world.held(), governor)
        assert world.nodes.book.most_busy == 1
        assert world.nodes.book.times(f"metal3~{bad}", "deploying") == 2
        outcomes = [lease.outcome for lease in leases(world, "ended")]
        assert (outcomes.count("failed") > 1, outcomes.count("ok")) == (True, 2)

    play(tmp_path, scene, limit=1, failing=0.5, retries=1)


def test_a_host_that_waits_takes_no_unit_at_once(tmp_path: Path) -> None:
    """A host that could not start takes no unit before its time has come, whatever is free."""

    async def scene(world: World) -> None:
        moment = world.bmo.now()
        async with world.governor(now=lambda: moment, stuck_seconds=0.0) as governor:
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await world.until(lambda: bool(leases(world, "ended")), governor)
            for _ in range(20):
                assert await governor.tick()
                await world.double.storage.changed(0.02)
            assert not leases(world, "waiting") and not world.held()
            assert annotations(world.host("a"))[PAUSED] == "moorage"

    play(tmp_path, scene, failing=1.0, retries=1)


def test_an_old_error_is_no_new_one(tmp_path: Path) -> None:
    """A host keeps its unit for some time after it could not start, and when it was started again
    until the operator has looked at it, however long that takes.
    """

    async def scene(world: World) -> None:
        later = timedelta()

        def paused() -> bool:
            return PAUSED in annotations(world.host("a"))

        def failed() -> bool:
            return state(world.host("a")) == "available" and bool(
                world.host("a")["status"]["errorCount"]
            )

        async def stays(governor: Governor) -> None:
            for _ in range(10):
                assert await governor.tick()
                assert not paused() and world.held() == 1

        async with (
            world.governor() as patient,
            world.governor(now=lambda: world.bmo.now() + later, stuck_seconds=0.0) as governor,
        ):
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await world.until(failed, patient)
            await stays(patient)
            await world.until(lambda: paused() and not world.held(), governor)
            await world.bmo.__aexit__()
            later = timedelta(minutes=3)
            await world.until(lambda: not paused() and world.held() == 1, governor)
            await stays(governor)
            await world.bmo.__aenter__()
            await world.until(lambda: paused() and not world.held(), governor)
            assert world.host("a")["status"]["errorCount"] > 1

    play(tmp_path, scene, failing=1.0, retries=1)


def test_a_pause_that_comes_too_late(tmp_path: Path) -> None:
    """Our pause is stored only in the version of a host that was read: another one works."""

    async def scene(world: World) -> None:
        await world.api.create(ALL, host("a", image=IMAGE, annotations={PAUSED: "mine"}))
        async with KubernetesApi(Connection(world.double.url)) as api:
            requests = HostRequests(api)
            (before,) = await requests.all()
            await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
            assert not await requests.pause(before)
            assert PAUSED not in annotations(world.host("a"))

    play(tmp_path, scene)


class StaleRequests(HostRequests):
    """The requests of a governor whose list is a copy that is out of date."""

    def __init__(self, api: KubernetesApi) -> None:
        super().__init__(api)
        self.copy: list[BareMetalHost] | None = None

    async def all(self) -> list[BareMetalHost]:
        return await super().all() if self.copy is None else self.copy


def test_a_stale_list_releases_nothing(tmp_path: Path) -> None:
    """A host that a list shows as idle, or lacks, keeps its unit until it is read again and does
    not work, or is gone.
    """

    async def scene(world: World) -> None:
        async with (
            LeaseApi(world.url, world.token) as api,
            KubernetesApi(Connection(world.double.url)) as cluster,
        ):
            requests = StaleRequests(cluster)
            reconciler = Reconciler(HostLeases(api), requests, Rules.of_pool(POOL))
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            idle = await requests.all()
            await world.api.merge(f"{ALL}/a", {"metadata": {"annotations": {PAUSED: None}}})
            assert len((await reconciler.run_once()).adopted) == 1
            for copy in (idle, []):
                requests.copy = copy
                assert (await reconciler.run_once()).released == 0
            assert world.held() == 1
            await world.until(lambda: world.reached(["a"], "provisioned"))
            assert (await reconciler.run_once()).released == 1

    play(tmp_path, scene, failing=0.0)


def test_units_of_unknown_hosts_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log says once which unit nobody releases, and how people release it."""
    caplog.set_level(logging.WARNING, "moorage.metal3")

    async def scene(world: World) -> None:
        needs = [NeedWanted(pool=POOL, units=1)]
        labels = {"holder": "other/host"}
        async with LeaseApi(world.url, world.token) as api:
            made = await api.ask(
                LeaseWanted(needs=needs, key="metal3/unknown/adopted", labels=labels)
            )
        async with world.governor() as governor:
            assert await governor.tick() and await governor.tick()
            assert [one.id for one in governor.picture.foreign] == [made.id]
        said = [line for line in caplog.messages if made.id in line]
        assert len(said) == 1 and "the lease of host other/host is kept" in said[0]

    play(tmp_path, scene)


def test_the_token_is_replaced(tmp_path: Path) -> None:
    """The command uses the token that its file has now, so its tokens can be rotated."""
    admin = tmp_path / "moorage.sqlite.token"
    own = tmp_path / "governor.token"
    wanted = {"name": "made", "role": "governor", "scope": {"pool": [POOL]}}

    async def scene(world: World) -> None:
        tokens = Transport(world.url, admin.read_text().strip())
        first = tokens.request("POST", "/v1/tokens", wanted)
        own.write_text(first["token"])
        options = "--pool", POOL, "--url", world.url, "--interval", "0.2", "--token-file", str(own)
        async with governing(tmp_path, world.double.url, *options, token=None) as process:
            assert process.stdout is not None
            await process.stdout.readline()
            tokens.request("DELETE", f"/v1/tokens/{first['id']}")
            second = tokens.request("POST", "/v1/tokens", {**wanted, "name": "next"})
            own.with_suffix(".new").write_text(second["token"])
            os.replace(own.with_suffix(".new"), own)
            await world.api.create(ALL, host("a", image=IMAGE, annotations=OWN))
            await world.until(lambda: world.reached(["a"], "provisioned"))
            process.terminate()
            assert await process.wait() == 0

    play(tmp_path, scene, failing=0.0)
