"""A real API server takes what the chart makes, and Helm changes from each set to the next."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kubernetes.chart.helm import CHART, NAMESPACE, RELEASE, Helm, Object, name_of
from tests.kubernetes.chart.sets import MADE, SETS
from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.policies import admission

KEPT = {"PersistentVolumeClaim/moorage-data", "PersistentVolumeClaim/moorage-backup"}
"""What outlives the release."""

SOURCES = {
    "serviceaccounts": "",
    "services": "",
    "configmaps": "",
    "persistentvolumeclaims": "",
    "deployments": "apps",
    "statefulsets": "apps",
    "poddisruptionbudgets": "policy",
    "ingresses": "networking.k8s.io",
    "networkpolicies": "networking.k8s.io",
    "httproutes": "gateway.networking.k8s.io",
    "servicemonitors": "monitoring.coreos.com",
    "podmonitors": "monitoring.coreos.com",
    "prometheusrules": "monitoring.coreos.com",
    "issuers": "cert-manager.io",
    "certificates": "cert-manager.io",
    "clusterroles": "rbac.authorization.k8s.io",
    "clusterrolebindings": "rbac.authorization.k8s.io",
    "mutatingadmissionpolicies": "admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings": "admissionregistration.k8s.io",
    "mutatingwebhookconfigurations": "admissionregistration.k8s.io",
}
"""The plural of every kind that the chart makes, and its group."""


def tried(api: KubernetesCluster, objects: Sequence[Object]) -> str:
    """Let the API server judge objects without storing them; return its objections and warnings."""
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})
    done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=items)
    return done.stderr


@pytest.mark.parametrize("name", SETS)
def test_each_field_is_known(api: KubernetesCluster, helm: Helm, name: str) -> None:
    """No object has an unknown field or a value that the API server refuses, and no pod has rights
    that the profile `restricted` does not permit.
    """
    assert tried(api, helm.template(usable(name))) == ""


def test_a_loose_pod_is_found(api: KubernetesCluster, helm: Helm) -> None:
    """This is the control: the API server warns of a pod that may be root."""
    values = {**SETS["sqlite"], "podSecurityContext": {"runAsNonRoot": False}}
    found = tried(api, helm.template(values))
    assert "would violate PodSecurity" in found and "runAsNonRoot != true" in found


TYPOS = [
    ("templates/_server.tpl", "readinessProbe:", "readinesProbe:"),
    ("templates/_server.tpl", "fsGroupChangePolicy:", "fsGroupChange:"),
    ("templates/server/workload.yaml", "maxUnavailable:", "maxUnavailible:"),
    ("templates/networkpolicies.yaml", "policyTypes:", "policyType:"),
    ("templates/monitoring/monitors.yaml", "relabelings:", "relabeling:"),
    ("templates/server/disruption.yaml", "unhealthyPodEvictionPolicy", "unhealthyPodEviction"),
    ("files/metal3/governor.yaml", "containerPort:", "containerPorts:"),
]


@pytest.mark.parametrize(("file", "right", "wrong"), TYPOS, ids=[typo[2] for typo in TYPOS])
def test_a_typo_is_found(
    api: KubernetesCluster, helm: Helm, tmp_path: Path, file: str, right: str, wrong: str
) -> None:
    """This is the control: a misspelt field of a template is an unknown one."""
    chart = tmp_path / "moorage"
    shutil.copytree(CHART, chart)
    text = (chart / file).read_text()
    assert right in text
    (chart / file).write_text(text.replace(right, wrong))
    values = usable("postgresql" if "workload" in file else "everything")
    found = tried(api, helm.template(values, chart=chart))
    assert "unknown field" in found and wrong.rstrip(":") in found


def usable(name: str) -> Object:
    """Return the values of a set, with the policy in the version that this API server serves."""
    values = SETS[name]
    governor = values.get("governor", {})
    if not governor.get("enabled") or governor.get("admission", "policy") != "policy":
        return values
    return {**values, "governor": {**governor, "admission": admission()}}


def stored(api: KubernetesCluster) -> set[str]:
    """Return what there is of the release, by kind and name."""
    kinds = ",".join(f"{plural}.{group}".rstrip(".") for plural, group in SOURCES.items())
    listed = api.kubectl("get", kinds, "-n", NAMESPACE, "-o", "json")
    assert listed.returncode == 0, listed.stderr
    return {
        name_of(one)
        for one in json.loads(listed.stdout)["items"]
        if one["metadata"].get("annotations", {}).get("meta.helm.sh/release-name") == RELEASE
    }


def test_a_life(api: KubernetesCluster, helm: Helm) -> None:
    """A release changes from each set to the next, forth and back, and is removed.

    After each step there is what the set makes, and the volumes of earlier ones, nothing else.
    """
    kept: set[str] = set()
    steps = [*SETS, *reversed(SETS)]
    for name in steps:
        said = helm.install(usable(name))
        assert "STATUS: deployed" in said
        kept |= MADE[name] & KEPT
        assert stored(api) == MADE[name] | kept, name
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE)
    assert stored(api) == kept == KEPT
    # Installed again, the release takes its volumes over.
    helm.install(SETS["sqlite"])
    assert stored(api) == MADE["sqlite"] | KEPT
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE)


STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "growing"},
    "provisioner": "example.org/disk",
    "allowVolumeExpansion": True,
}


def test_a_volume_can_grow(api: KubernetesCluster, helm: Helm) -> None:
    """`helm upgrade` raises the size of a bound claim: it is not a field of the StatefulSet."""
    api.call("POST", "/apis/storage.k8s.io/v1/storageclasses", STORAGE_CLASS)
    for size in ("10Gi", "20Gi"):
        volume = {"size": size, "storageClass": "growing", "accessMode": "ReadWriteOncePod"}
        values = {"fullnameOverride": "grows", "server": {"database": {"sqlite": volume}}}
        helm.install({**SETS["sqlite"], **values})
        asked = ("pvc", "grows-data", "-n", NAMESPACE)
        found = json.loads(api.kubectl("get", *asked, "-o", "json").stdout)["spec"]
        assert found["resources"]["requests"] == {"storage": size}
        assert found["accessModes"] == ["ReadWriteOncePod"]
        # Nothing else binds claims here.
        bound = ("--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Bound"}}')
        assert api.kubectl("patch", *asked, *bound).returncode == 0
    helm.run("uninstall", RELEASE, "--namespace", NAMESPACE)


def test_the_notes(api: KubernetesCluster, helm: Helm) -> None:
    """They name objects that there are, with the address that clients use."""
    for name, said in {
        "sqlite": (
            "kubectl -n moorage exec statefulset/moorage -c server -- moorage token create",
            "http://moorage.moorage.svc:8778",
            "The image is registry.example/moorage:1.0",
            "logs statefulset/moorage -c server",
            "sign in with your token",
        ),
        "postgresql": ("kubectl -n moorage exec deployment/moorage -c server",),
        "keystone": ("openstack token issue -f value -c id", "sign in with a token of Keystone"),
        "everything": (
            "\n  https://moorage.example.org/\n  https://placement.example.org/\n",
            "\n  moorage.example.net/ (HTTPRoute)\n",
            "The certificate is not for 127.0.0.1",
            "https://moorage-gate.moorage.svc:6385",
            "the Secret moorage-gate exist, with a token of the role governor in the key secret",
            "the Secret governs exist, with a token of the role governor in the key secret",
        ),
        "maintenance": ("moorage db restore FILE",),
    }.items():
        notes = helm.install(usable(name), "--dry-run=server")
        assert [words for words in said if words not in notes] == [], notes
