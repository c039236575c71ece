"""Boskos' resources move from a real cluster into Moorage, and back into the cluster."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import moorage
from tests.cli.test_boskos_moving import CONFIGURATION, RESOURCES, resource
from tests.e2e.support.server import serve
from tests.kubernetes.cluster import CRDS, KubernetesCluster

NAMESPACE = "test-pods"
GROUP = "/apis/boskos.k8s.io/v1"
ALL = f"{GROUP}/namespaces/{NAMESPACE}/resources"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str, kind: str, status: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a kind of Boskos: its status is no subresource."""
    schema = {"type": "object", "properties": {"spec": ANYTHING, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/boskos/pull/105"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.boskos.k8s.io", "annotations": approved},
        "spec": {
            "group": "boskos.k8s.io",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": plural.removesuffix("s"),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


STATUS = {
    "type": "object",
    "properties": {
        "state": {"type": "string"},
        "owner": {"type": "string"},
        "lastUpdate": {"type": "string", "format": "date-time"},
        "userData": ANYTHING,
        "expirationDate": {"type": "string", "format": "date-time"},
    },
}


@pytest.fixture(scope="module")
def boskos(cluster: KubernetesCluster) -> KubernetesCluster:
    """Return the cluster with what Boskos has left in it."""
    cluster.create_namespace(NAMESPACE)
    cluster.call("POST", CRDS, definition("resources", "ResourceObject", STATUS))
    cluster.call("POST", CRDS, definition("dynamicresourcelifecycles", "DRLCObject", ANYTHING))
    for name in ("resources", "dynamicresourcelifecycles"):
        crd = f"crd/{name}.boskos.k8s.io"
        done = cluster.kubectl("wait", "--for=condition=Established", crd, "--timeout=60s")
        assert done.returncode == 0, done.stderr
    cycle = {
        "apiVersion": "boskos.k8s.io/v1",
        "kind": "DRLCObject",
        "metadata": {"name": "cluster", "namespace": NAMESPACE},
        "spec": {"state": "free", "min-count": 1, "max-count": 4},
    }
    applied(cluster, [*RESOURCES, cycle])
    return cluster


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Serve the configuration of Boskos from a folder; return the folder."""
    (tmp_path / "boskos.yaml").write_text(CONFIGURATION)
    (tmp_path / "moorage.toml").write_text('database = "sqlite:///moorage.sqlite"\n')
    options = ("--boskos-listen", "127.0.0.1:0", "--boskos-config", str(tmp_path / "boskos.yaml"))
    with serve(tmp_path / "moorage.sqlite", *options):
        yield tmp_path


def applied(cluster: KubernetesCluster, objects: list[dict[str, Any]]) -> None:
    """Write objects as an operator does."""
    plain = [json.loads(json.dumps(one)) for one in objects]
    for one in plain:
        one["metadata"].pop("uid", None)
        one["metadata"].pop("resourceVersion", None)
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": plain})
    done = cluster.kubectl("apply", "--validate=strict", "-f", "-", text=items)
    assert done.returncode == 0, done.stderr


def statuses(cluster: KubernetesCluster) -> dict[str, Any]:
    """Return the status of each resource in the cluster, by name."""
    found = cluster.call("GET", ALL)["items"]
    return {one["metadata"]["name"]: one["status"] for one in found}


def test_from_the_cluster_and_back(boskos: KubernetesCluster, folder: Path) -> None:
    """What is exported is, in the cluster, what Boskos had left there."""
    before = statuses(boskos)
    words = ("import", "boskos", "--kubeconfig", str(boskos.admin))
    done = moorage(*words, directory=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "project: 3 imported" in done.stdout
    assert (
        moorage(*words, "--namespace", NAMESPACE, directory=folder).stdout.count("unchanged") == 2
    )
    for name in before:
        boskos.call("DELETE", f"{ALL}/{name}")
    assert statuses(boskos) == {}
    done = moorage("export", "boskos", "--namespace", NAMESPACE, directory=folder)
    assert (done.returncode, done.stderr) == (0, "")
    applied(boskos, json.loads(done.stdout)["items"])
    after = statuses(boskos)
    assert {name: {"userData": {}, **one} for name, one in before.items()} == after


def test_what_kubectl_prints_is_a_file(boskos: KubernetesCluster, folder: Path) -> None:
    """As YAML and as JSON."""
    for form in ("yaml", "json"):
        done = boskos.kubectl("-n", NAMESPACE, "get", "resources.boskos.k8s.io", "-o", form)
        (folder / "resources").write_text(done.stdout)
        done = moorage("import", "boskos", "--file", "resources", directory=folder)
        assert (done.returncode, done.stderr) == (0, ""), form


def test_other_places(boskos: KubernetesCluster, folder: Path) -> None:
    """A namespace without Boskos, and two with one: the command names them."""
    words = ("import", "boskos", "--kubeconfig", str(boskos.admin))
    done = moorage(*words, "--namespace", "moorage", directory=folder)
    assert done.returncode == 1
    assert "Boskos has no resources in the namespace moorage" in done.stderr
    other = resource("project", "project-1", "free")
    other["metadata"]["namespace"] = "moorage"
    applied(boskos, [other])
    done = moorage(*words, directory=folder)
    assert done.returncode == 2
    assert "use --namespace: Boskos is in moorage, test-pods" in done.stderr
    boskos.call("DELETE", f"{GROUP}/namespaces/moorage/resources/project-1")
