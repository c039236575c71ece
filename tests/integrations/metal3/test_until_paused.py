"""`moorage metal3 wait`: hosts that are created afterwards are paused."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml

from moorage.integrations.kubernetes.api import Connection, KubernetesApi, KubernetesError
from moorage.integrations.metal3 import until_paused as until_paused_module
from moorage.integrations.metal3.hosts import OWN, PAUSED
from moorage.integrations.metal3.install import Installation, documents
from moorage.integrations.metal3.until_paused import PROOFS, NotPausedError, until_paused
from tests.cli.command import moorage, refusal
from tests.support.kubernetes_client import Kubernetes, hosts_in
from tests.support.kubernetes_double.admission import Asked
from tests.support.kubernetes_double.faults import DROP, Fault
from tests.support.kubernetes_double.server import KubernetesDouble

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
SECONDS = 30.0
Scene = Callable[[KubernetesDouble, KubernetesApi], Awaitable[None]]


def pausing(_policy: dict[str, Any], _asked: Asked, wanted: dict[str, Any]) -> dict[str, Any]:
    """Pause every host, as a policy in force."""
    wanted["metadata"].setdefault("annotations", {})[PAUSED] = OWN
    return wanted


async def install(double: KubernetesDouble) -> None:
    """Store the policy and its binding."""
    text = documents(Installation(image="i", url="http://m", pool="deploy"))
    async with Kubernetes(double.url) as client:
        for one in yaml.safe_load_all(text):
            if one["kind"] == "MutatingAdmissionPolicy":
                await client.create(f"{ADMISSION}/mutatingadmissionpolicies", one)
            if one["kind"] == "MutatingAdmissionPolicyBinding":
                await client.create(f"{ADMISSION}/mutatingadmissionpolicybindings", one)


def play(scene: Scene) -> None:
    """Run a scene with a double and our client."""

    async def run() -> None:
        async with KubernetesDouble() as double, KubernetesApi(Connection(double.url)) as api:
            await asyncio.wait_for(scene(double, api), 2 * SECONDS)

    asyncio.run(run())


def test_it_ends_when_hosts_are_paused() -> None:
    """Not before, also if the policy is stored already; some proofs in a row are needed, and
    nothing is stored.
    """

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        await install(double)
        waiting = asyncio.create_task(until_paused(api, "metal3", SECONDS))
        await double.received("create", "baremetalhosts", 2)
        assert not waiting.done()
        tried = double.counts["create", "baremetalhosts"]
        double.admission.engine = pausing
        await waiting
        assert double.counts["create", "baremetalhosts"] >= tried + PROOFS - 1
        assert await api.all(hosts_in("metal3")) == []

    play(scene)


def test_one_server_of_several_is_not_enough() -> None:
    """A dry run without a pause, or one that fails, begins the count again."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        await install(double)
        double.admission.engine = pausing
        double.faults.pending = [
            *(Fault("create", "baremetalhosts") for _ in range(PROOFS - 1)),
            Fault("create", "baremetalhosts", answer=503),
            Fault("create", "baremetalhosts", answer=500),
            Fault("create", "baremetalhosts", answer=DROP),
        ]
        await until_paused(api, "metal3", SECONDS)
        assert double.counts["create", "baremetalhosts"] == PROOFS - 1 + 3 + PROOFS

    play(scene)


def test_it_says_why_not() -> None:
    """Without the policy; with one that does nothing; and what the server says at the end."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        with pytest.raises(NotPausedError, match="neither the policy nor the webhook"):
            await until_paused(api, "metal3", 0.0)
        await install(double)
        with pytest.raises(NotPausedError, match="although the cluster has v1/mutatingadmission"):
            await until_paused(api, "metal3", 0.0)
        double.faults.pending = [Fault("create", "baremetalhosts", answer=503)]
        with pytest.raises(KubernetesError, match="503"):
            await until_paused(api, "metal3", 0.0)

    play(scene)


def test_a_webhook_that_hangs_does_not_make_it_wait_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request may take a minute, and one that the server defers far longer."""
    monkeypatch.setattr(until_paused_module, "LEAST_SECONDS", 0.5)

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        for fault in (
            Fault("create", "baremetalhosts", wait=2 * SECONDS),
            Fault("create", "baremetalhosts", times=10, answer=429, retry_after=30),
        ):
            double.faults.pending = [fault]
            async with asyncio.timeout(10.0):
                with pytest.raises(KubernetesError, match=r"no answer from .* in time") as found:
                    await until_paused(api, "metal3", 1.0)
            assert found.value.status is None

    play(scene)


@pytest.mark.parametrize("status", [403, 422])
def test_a_refused_host_ends_it(status: int) -> None:
    """Trying again would not help."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        double.faults.pending = [Fault("create", "baremetalhosts", answer=status)]
        with pytest.raises(KubernetesError, match=str(status)):
            await until_paused(api, "metal3", SECONDS)
        assert double.counts["create", "baremetalhosts"] == 1

    play(scene)


def test_the_command() -> None:
    """It prints one line, or fails with one."""

    async def scene(double: KubernetesDouble, api: KubernetesApi) -> None:
        words = ("metal3", "wait", "--kubernetes", double.url)
        said = await asyncio.to_thread(refusal, 1, *words, "--timeout", "0")
        assert said == (
            "after 0 s a new host gets no pause: the cluster has neither the policy nor the"
            " webhook; apply the manifests of moorage metal3 install"
        )
        await install(double)
        double.admission.engine = pausing
        done = await asyncio.to_thread(moorage, *words)
        assert (done.returncode, done.stdout) == (0, "new hosts are paused\n"), done.stderr
        said = await asyncio.to_thread(refusal, 2, *words, "--namespace", "A")
        assert said.startswith("--namespace must be a DNS label")

    play(scene)
    gone = ("metal3", "wait", "--kubernetes", "http://127.0.0.1:9", "--timeout", "0")
    assert "no answer from" in refusal(5, *gone)
