"""The limit of metal3's own operator is read from its Deployment, and `install` warns of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.integrations.kubernetes.api import Connection, KubernetesApi
from moorage.integrations.metal3.operator_limit import OperatorLimit, operator_limits
from tests.cli.command import moorage
from tests.support.kubeconfig import kubeconfig
from tests.support.kubernetes_client import Kubernetes
from tests.support.kubernetes_double.server import KubernetesDouble

IMAGE = "quay.io/metal3-io/baremetal-operator:v0.9"
NAME = "metal3/bmo"
DEPLOYMENTS = "/apis/apps/v1/namespaces/metal3/deployments"
MAPS = "/api/v1/namespaces/metal3/configmaps"
BY_MAP = {"configMapRef": {"name": "ironic"}}
KEY = {"configMapKeyRef": {"name": "ironic", "key": "PROVISIONING_LIMIT"}}


async def stored(api: Kubernetes, container: dict[str, Any]) -> None:
    """Store an operator and its ConfigMap, and a Deployment that is none."""
    for name, found in (("bmo", container), ("other", {"image": "nginx", "env": [{"name": "A"}]})):
        spec = {"template": {"spec": {"containers": [found]}}}
        names = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}
        await api.create(DEPLOYMENTS, {**names, "spec": spec})
    data = {"data": {"PROVISIONING_LIMIT": "40"}, "metadata": {"name": "ironic"}}
    await api.create(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **data})


@pytest.mark.parametrize(
    ("container", "limit", "is_set"),
    [
        ({"image": IMAGE}, "20", False),
        ({"image": IMAGE, "env": [{"name": "PROVISIONING_LIMIT", "value": "7"}]}, "7", True),
        ({"image": "mine", "env": [{"name": "PROVISIONING_LIMIT", "value": "7"}]}, "7", True),
        ({"image": IMAGE, "env": [{"name": "PROVISIONING_LIMIT", "valueFrom": KEY}]}, "40", True),
        ({"image": IMAGE, "envFrom": [BY_MAP]}, "40", True),
        ({"image": IMAGE, "envFrom": [{"configMapRef": {"name": "none"}}]}, "20", False),
    ],
)
def test_where_the_limit_is_set(container: dict[str, Any], limit: str, *, is_set: bool) -> None:
    """In its environment, by a value or from a ConfigMap; otherwise it is the default."""

    async def run() -> list[OperatorLimit]:
        async with KubernetesDouble() as double, Kubernetes(double.url) as api:
            await stored(api, container)
            async with KubernetesApi(Connection(double.url)) as cluster:
                return await operator_limits(cluster)

    assert asyncio.run(run()) == [OperatorLimit(NAME, limit, is_set)]


def test_install_warns(tmp_path: Path) -> None:
    """With a cluster it says on standard error which limit stays in force, and prints the same."""
    words = ("metal3", "install", "--print", "--image", "i:1", "--url", "http://m:1")

    async def run() -> None:
        async with KubernetesDouble() as double, Kubernetes(double.url) as api:
            await stored(api, {"image": IMAGE})
            config = tmp_path / "config"
            config.write_text(json.dumps(kubeconfig(double.url, {"token": "any"})))
            plain = await asyncio.to_thread(moorage, *words, "--pool", "deploy")
            done = await asyncio.to_thread(
                moorage, *words, "--pool", "deploy", "--kubeconfig", str(config)
            )
            assert done.returncode == 0, done.stderr
            assert done.stdout == plain.stdout
            assert f"{NAME} has PROVISIONING_LIMIT=20, its default of 20" in done.stderr
            assert plain.stderr == ""

    asyncio.run(run())
