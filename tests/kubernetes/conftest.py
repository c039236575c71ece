"""A real API server of Kubernetes for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import KubernetesCluster

OLDER = "--runtime-config=admissionregistration.k8s.io/v1beta1=true"
"""Serves policies in their older version, too, as a cluster that was upgraded may."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """Serve BareMetalHosts; the namespaces `metal3` and `moorage` are there."""
    with KubernetesCluster(tmp_path_factory.mktemp("cluster"), OLDER) as started:
        started.serve_hosts()
        for name in ("metal3", "moorage"):
            started.create_namespace(name)
        yield started
