"""A real API server of Kubernetes for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.policies import serving_policies


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """Serve BareMetalHosts; the namespaces `metal3` and `moorage` are there."""
    with KubernetesCluster(tmp_path_factory.mktemp("cluster"), *serving_policies()) as started:
        started.serve_hosts()
        for name in ("metal3", "moorage"):
            started.create_namespace(name)
        yield started
