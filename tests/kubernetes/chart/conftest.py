"""A real API server that knows the kinds of all objects of the chart."""

import json
from pathlib import Path

import pytest

from tests.kubernetes.chart.definitions import DEFINITIONS
from tests.kubernetes.chart.helm import Helm
from tests.kubernetes.cluster import KubernetesCluster


@pytest.fixture(scope="module")
def api(cluster: KubernetesCluster) -> KubernetesCluster:
    """The API server, with the kinds that other projects define; they are served.

    It warns of pods that Kubernetes' strictest profile, `restricted`, would not admit.
    """
    documents = json.dumps({"apiVersion": "v1", "kind": "List", "items": DEFINITIONS})
    applied = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=documents)
    assert applied.returncode == 0, applied.stderr
    names = [f"crd/{one['metadata']['name']}" for one in DEFINITIONS]
    waited = cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    assert waited.returncode == 0, waited.stderr
    strict = "pod-security.kubernetes.io/warn=restricted"
    labelled = cluster.kubectl("label", "namespace", "moorage", strict)
    assert labelled.returncode == 0, labelled.stderr
    return cluster


@pytest.fixture
def helm(api: KubernetesCluster, tmp_path: Path) -> Helm:
    """Helm with the rights of an administrator of the cluster."""
    return Helm(tmp_path, api.admin)
