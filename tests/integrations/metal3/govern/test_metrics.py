"""What the governor of hosts serves: metrics, and whether it lives and is ready."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import aiohttp
from prometheus_client import generate_latest

from moorage.integrations.metal3.reconcile import HOSTS, Picture
from moorage.integrations.metrics_server import READY_SECONDS, ready_seconds
from moorage.integrations.provisioning.pass_metrics import GovernorMetrics
from tests.docs.test_links import ROOT
from tests.integrations.ironic.test_metrics import ROW, TYPE
from tests.integrations.metal3.govern.process import governing
from tests.integrations.metal3.govern.test_governor import ALL, IMAGE, LIMIT, OWN, POOL, World, play
from tests.support.alert_rules import alerts
from tests.support.kubernetes_client import host
from tests.support.kubernetes_double.server import KubernetesDouble

SECONDS = 60.0


def free_address() -> str:
    """Return an address on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@dataclass
class Running:
    """A governor in a process of its own."""

    process: asyncio.subprocess.Process
    address: str
    session: aiohttp.ClientSession

    async def get(self, path: str) -> tuple[int, str]:
        """Return status and body of what it serves; waits until it listens."""
        while True:
            try:
                async with self.session.get(f"http://{self.address}{path}") as answer:
                    return answer.status, await answer.text()
            except aiohttp.ClientConnectorError:
                # It ends if it cannot begin; the stream ends with it.
                assert self.process.returncode is None
                await asyncio.wait([asyncio.ensure_future(self.process.wait())], timeout=0.05)

    async def metrics(self) -> dict[str, float]:
        """Return our metrics."""
        _, text = await self.get("/metrics")
        return {
            name: float(value) for name, value in re.findall(r"(?m)^(moorage_\S+) (\S+)$", text)
        }

    async def stop(self) -> int | None:
        """End it with SIGTERM; return its exit code."""
        self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), SECONDS)


@asynccontextmanager
async def running(
    folder: Path, cluster: str, url: str, token: str = "any"
) -> AsyncIterator[Running]:
    """Run `moorage metal3 govern` with metrics."""
    address = free_address()
    options = "--pool", POOL, "--url", url, "--interval", "0.2", "--metrics-listen", address
    async with (
        governing(folder, cluster, *options, token=token) as process,
        aiohttp.ClientSession() as session,
    ):
        yield Running(process, address, session)


def test_metrics_are_documented() -> None:
    """Each with its type, and no other; their names are those of Ironic's, with other hosts."""
    text = generate_latest(GovernorMetrics(HOSTS, Picture()).registry).decode()
    exported = {(name, kind) for name, kind in TYPE.findall(text) if not name.endswith("_created")}
    assert {*ROW.findall((ROOT / "docs/reference/metal3-governor.md").read_text())} == exported
    others = {*ROW.findall((ROOT / "docs/reference/gate.md").read_text())}
    alike = {
        (name.replace("ironic", "metal3").replace("nodes", "hosts"), kind) for name, kind in others
    }
    assert exported == {one for one in alike if "metal3" in one[0]}
    assert "moorage_metal3_busy_hosts 0.0" in text


def test_a_governor_serves_what_it_sees(tmp_path: Path) -> None:
    """While hosts wait, it shows them, and the units of those that work; it lives and is ready."""

    async def scene(world: World) -> None:
        for number in range(LIMIT + 2):
            await world.api.create(ALL, host(f"h{number}", image=IMAGE, annotations=OWN))
        async with running(tmp_path, world.double.url, world.url, world.token) as governor:
            waiting = f'moorage_metal3_waiting_hosts{{pool="{POOL}"}}'
            found: dict[str, float] = {}
            while waiting not in found:
                found = await governor.metrics()
            assert found["moorage_metal3_hosts"] == LIMIT + 2
            assert found[waiting] <= LIMIT + 2
            units = f'moorage_metal3_units{{pool="{POOL}"}}'
            while found.get(units) != LIMIT:
                found = await governor.metrics()
            assert found["moorage_metal3_uncounted_hosts"] == 0
            assert found["moorage_metal3_pass_age_seconds"] < SECONDS
            assert await governor.get("/healthz") == (HTTPStatus.OK, "ok\n")
            assert await governor.get("/readyz") == (HTTPStatus.OK, "ok\n")
            assert await governor.stop() == 0

    play(tmp_path, scene)


def test_it_lives_while_the_cluster_does_not_answer(tmp_path: Path) -> None:
    """It is not ready, and says why; it becomes ready when the API server is there."""

    async def scene(world: World) -> None:
        await world.double.stop()
        async with running(tmp_path, world.double.url, world.url, world.token) as governor:
            while (await governor.metrics())["moorage_metal3_failed_passes_total"] < 3:
                pass
            assert await governor.get("/healthz") == (HTTPStatus.OK, "ok\n")
            status, text = await governor.get("/readyz")
            assert status == HTTPStatus.SERVICE_UNAVAILABLE
            assert text.startswith("no pass has succeeded yet: ")
            assert f"cannot identify {world.double.url}: no answer from " in text
            await world.double.start()
            while (await governor.get("/readyz"))[0] != HTTPStatus.OK:
                pass
            assert await governor.stop() == 0

    play(tmp_path, scene)


def test_it_lives_while_moorage_does_not_answer(tmp_path: Path) -> None:
    """Also when it begins: it is not ready, says why, and does not end before SIGTERM."""

    async def scene() -> None:
        away = f"http://{free_address()}"
        async with KubernetesDouble() as double, running(tmp_path, double.url, away) as governor:
            while (await governor.metrics())["moorage_metal3_failed_passes_total"] < 3:
                pass
            assert await governor.get("/healthz") == (HTTPStatus.OK, "ok\n")
            status, text = await governor.get("/readyz")
            assert status == HTTPStatus.SERVICE_UNAVAILABLE
            assert text.startswith("no pass has succeeded yet: ")
            assert away in text
            assert await governor.stop() == 0

    asyncio.run(asyncio.wait_for(scene(), SECONDS))


def test_when_a_governor_is_not_ready() -> None:
    """Until a pass has succeeded, and when the last one that did is too old."""
    metrics = GovernorMetrics(HOSTS, Picture())
    assert metrics.trouble(60) == "no pass has succeeded yet"
    metrics.failed("Moorage is away")
    assert metrics.trouble(60) == "no pass has succeeded yet: Moorage is away"
    metrics.passed(Picture())
    assert metrics.trouble(60) is None
    metrics.failed("Moorage is away")
    assert metrics.trouble(60) is None
    text = "the last pass that succeeded ended 0 s ago, and 0 s are allowed"
    assert metrics.trouble(0) == f"{text}: Moorage is away"


def test_the_alert_and_the_probe_agree() -> None:
    """A governor whose passes are so old that an alert is raised is not ready, either."""
    ages = [one["expr"] for one in alerts() if one["alert"].endswith("PassTooOld")]
    assert [one.rpartition("> ")[2] for one in ages] == [f"{READY_SECONDS:.0f}"] * 2
    assert ready_seconds(2) == READY_SECONDS
    assert ready_seconds(60) == 180
