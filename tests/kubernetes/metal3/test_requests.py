"""The governor's requests to a real API server: its rights, conflicts, lists, watches, restarts."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from moorage.integrations.kubernetes.api import PAGE, KubernetesApi, KubernetesError
from moorage.integrations.kubernetes.connection import by_kubeconfig
from moorage.integrations.metal3.events import Event, State
from moorage.integrations.metal3.hosts import OWN, PAUSED
from moorage.integrations.metal3.mirror import HostMirror
from moorage.integrations.metal3.requests import HostRequests
from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.installed import applied, manifests, policy, uninstall
from tests.kubernetes.metal3.policies import admission as served
from tests.support.kubernetes_client import host, hosts_in

ALL = hosts_in("metal3")
POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
SECONDS = 90.0
TRIES = 400
CLOSING_SECONDS = 0.5
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def paused(cluster: KubernetesCluster) -> Iterator[None]:
    """Install the policy and the rights of the manifests."""
    with policy(cluster):
        yield


def play(cluster: KubernetesCluster, scene: Callable[[KubernetesApi], Awaitable[None]]) -> None:
    """Run a scene with the governor's own account."""
    connection = by_kubeconfig(str(cluster.kubeconfig_of("moorage", "moorage")))

    async def run() -> None:
        async with KubernetesApi(connection) as api:
            await asyncio.wait_for(scene(api), SECONDS)
        # A TLS connection is closed when the server has said so, too; nothing shows that.
        await asyncio.to_thread(cluster.server.gone, CLOSING_SECONDS)

    asyncio.run(run())


def made(cluster: KubernetesCluster, name: str) -> None:
    """Create a host, which is paused."""
    found = cluster.call("POST", ALL, host(name))
    assert found["metadata"]["annotations"] == {PAUSED: OWN}


def test_the_rights_of_the_manifests(cluster: KubernetesCluster) -> None:
    """Everything that a governor does is permitted, and nothing else."""
    made(cluster, "rights")

    async def scene(api: KubernetesApi) -> None:
        requests = HostRequests(api)
        (found,) = [one for one in await requests.now() if one["metadata"]["name"] == "rights"]
        assert await requests.note(found, 'code: "limit"')
        noted = await requests.again(found)
        assert noted is not None
        await requests.create_event(
            Event(noted, State.WAITING, "ticket", "Place 1 in line of deploy", AT).object()
        )
        assert await requests.unpause(noted)
        assert await requests.holds.why_now(noted) is None
        for path in ("/api/v1/secrets", "/api/v1/pods", "/api/v1/namespaces", POLICIES):
            with pytest.raises(KubernetesError, match="403"):
                await api.all(path)
        for refused in (
            api.delete(f"{ALL}/rights"),
            api.create(ALL, host("other")),
            api.merge(f"{ALL}/rights/status", {"status": {"poweredOn": True}}),
            api.merge("/api/v1/namespaces/metal3", {"metadata": {"labels": {"a": "b"}}}),
        ):
            with pytest.raises(KubernetesError, match="403"):
                await refused

    play(cluster, scene)


def test_of_two_writes_of_one_version_the_second_is_refused(cluster: KubernetesCluster) -> None:
    """So a governor never removes the pause of a host that has changed since."""
    made(cluster, "conflict")

    async def scene(api: KubernetesApi) -> None:
        requests = HostRequests(api)
        (found,) = [one for one in await requests.now() if one["metadata"]["name"] == "conflict"]
        merge = {"spec": {"online": False}}
        cluster.call("PATCH", f"{ALL}/conflict", merge, "application/merge-patch+json")
        assert not await requests.unpause(found)
        now = await requests.again(found)
        assert now is not None and now["metadata"]["annotations"] == {PAUSED: OWN}
        assert await requests.unpause(now)

    play(cluster, scene)


def test_a_list_has_all_pages(cluster: KubernetesCluster) -> None:
    """More hosts than one page has are all listed."""
    names = {f"page-{number}" for number in range(PAGE + 20)}
    for name in names:
        made(cluster, name)

    async def scene(api: KubernetesApi) -> None:
        found = {one["metadata"]["name"] for one in await api.all(ALL)}
        assert found >= names

    play(cluster, scene)


@pytest.mark.parametrize("how", ["kill", "compact", "kill etcd", "freeze"])
def test_a_mirror_follows_the_server(cluster: KubernetesCluster, how: str) -> None:
    """After the server was killed, its history forgotten, its store killed, or itself stopped for
    some time, the copy shows what has changed meanwhile.
    """
    name = f"mirror-{how.replace(' ', '-')}"

    async def scene(api: KubernetesApi) -> None:
        async with HostMirror(api) as mirror:
            await mirror.tried.wait()
            await asyncio.to_thread(disturb)

            def shown() -> bool:
                try:
                    names = {one["metadata"]["name"] for one in mirror.hosts()}
                except KubernetesError:
                    return False
                return name in names

            while not shown():
                mirror.changed.clear()
                await asyncio.wait([asyncio.create_task(mirror.changed.wait())], timeout=0.2)

    def disturb() -> None:
        if how == "freeze":
            cluster.server.freeze()
            cluster.server.gone(2.0)
            cluster.server.thaw()
        elif how == "kill etcd":
            cluster.restart_etcd()
        else:
            cluster.server.end()
            if how == "compact":
                cluster.compact()
            cluster.server.start()
            cluster.wait_ready()
        create()

    def create() -> None:
        # A policy refuses it for some seconds after the start.
        words = ("create", "-n", "metal3", "-f", "-")
        for _ in range(TRIES):
            done = cluster.kubectl(*words, text=json.dumps(host(name)))
            if done.returncode == 0:
                return
        raise AssertionError(done.stderr)

    play(cluster, scene)


def test_writes_are_refused_for_a_moment_after_a_start(cluster: KubernetesCluster) -> None:
    """What the guide says of the start of an API server: a write that needs our pause is refused,
    whatever `failurePolicy` says, others are carried out; then the policy pauses hosts.
    """
    made(cluster, "before")
    applied(cluster, manifests("--gate"))
    cluster.restart_server()
    refused = 0
    for _ in range(TRIES):
        done = cluster.kubectl("create", "-n", "metal3", "-f", "-", text=json.dumps(host("after")))
        if done.returncode == 0:
            break
        refused += "There can be a delay" in done.stderr
        if refused == 1:
            changed = cluster.kubectl("label", "bmh", "before", "-n", "metal3", "rack=1")
            assert changed.returncode == 0, changed.stderr
    assert refused
    assert cluster.call("GET", f"{ALL}/after")["metadata"]["annotations"] == {PAUSED: OWN}


def test_roles_that_are_not_read_yet(cluster: KubernetesCluster) -> None:
    """What a server that starts denies to the governor is not taken for a missing right."""
    made(cluster, "roles")

    async def scene(api: KubernetesApi) -> None:
        patch = {"metadata": {"labels": {"a": "b"}}}
        for _ in range(3):
            cluster.server.end()
            cluster.server.start()
            while True:
                try:
                    await api.merge(f"{ALL}/roles", patch)
                    break
                except KubernetesError as error:
                    assert error.is_of_server, error
                    await asyncio.to_thread(cluster.server.gone, 0.02)

    play(cluster, scene)


UNKNOWN = (
    'no matches for kind "MutatingAdmissionPolicy" in version "admissionregistration.k8s.io/v1"'
)


@pytest.mark.parametrize("admission", ["policy", "policy-v1beta1", "webhook"])
def test_the_manifests_are_valid(cluster: KubernetesCluster, admission: str) -> None:
    """The API server accepts all documents with strict validation, but for cert-manager's; an older
    one has never heard of the policy of the newest, and says so.
    """
    documents = [
        one
        for one in yaml.safe_load_all(manifests("--admission", admission))
        if not one["apiVersion"].startswith("cert-manager.io")
    ]
    text = "\n---\n".join(json.dumps(one) for one in documents)
    if admission == "policy" and served() != "policy":
        refused = cluster.kubectl("apply", "-f", "-", "--dry-run=server", text=text)
        assert UNKNOWN in refused.stderr
    else:
        applied(cluster, text, "--dry-run=server")


def test_uninstall_counts_each_object_once(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """Although the server has the policy in two versions; it counts what it then removes."""
    older = cluster.call("GET", POLICIES.replace("v1", "v1beta1"))["items"]
    assert [one["metadata"]["name"] for one in older] == ["pause.moorage.dev"]
    words = "2 admission objects, "
    foretold = uninstall(cluster, "--dry-run")
    assert f"would remove: {words}" in foretold
    assert uninstall(cluster) == foretold.replace("would remove", "removed")
