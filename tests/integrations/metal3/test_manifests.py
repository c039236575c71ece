"""The manifests: as Kubernetes' API reference has them, and with the least rights that suffice."""

from typing import Any

import jsonschema
import pytest
import yaml

from moorage.integrations.metal3.admission_webhook import CLOSE_SECONDS
from moorage.integrations.metal3.install import FILES, manifest
from tests.kubernetes.draining import undrainable
from tests.support.manifest_schemas import SCHEMAS

VALUES = {
    "failure_policy": "Ignore",
    "failure_reason": "why",
    "image": "registry.example/moorage:1",
    "namespace": "moorage",
    "policy_version": "v1",
    "limits": "--pool=deploy",
    "rules": "    [[rule]]",
    "rules_hash": "none",
    "rules_optional": "true",
    "url": "https://moorage.example",
}


def documents(name: str, **more: str) -> list[dict[str, Any]]:
    """Return the documents of a manifest."""
    return list(yaml.safe_load_all(manifest(name, {**VALUES, **more})))


def only(name: str, kind: str) -> dict[str, Any]:
    """Return the one document of a kind."""
    (found,) = [one for one in documents(name) if one["kind"] == kind]
    return found


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_every_document_is_as_the_reference_has_it(name: str, version: str) -> None:
    """Every document has only fields of its kind, with values of the right types."""
    for one in documents(name, policy_version=version):
        jsonschema.validate(one, SCHEMAS[one["kind"]])


def test_the_governor_may_do_nothing_else() -> None:
    """It patches hosts, reads Clusters and namespaces, and creates events; no secrets."""
    assert only("governor", "ClusterRole")["rules"] == [
        {
            "apiGroups": ["metal3.io"],
            "resources": ["baremetalhosts"],
            "verbs": ["get", "list", "watch", "patch"],
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    ]


@pytest.mark.parametrize("name", ["governor", "webhook"])
def test_a_process_can_write_nothing_and_is_not_root(name: str) -> None:
    """Containers have no privileges and a read-only file system; both are probed."""
    pod = only(name, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"ports", "livenessProbe", "readinessProbe"} <= container.keys()


def test_a_drained_node_blocks_no_write() -> None:
    """One webhook answers while another moves to a new node, and finishes what it has accepted."""
    assert undrainable(documents("webhook")) == []
    pod = only("webhook", "Deployment")["spec"]["template"]["spec"]
    wait = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    given = pod.get("terminationGracePeriodSeconds", 30)  # Kubernetes' default
    assert given > wait + CLOSE_SECONDS


def test_what_a_drain_would_stop_is_found() -> None:
    """This is the control: without its budget, all webhooks may be gone at once."""
    left = [one for one in documents("webhook") if one["kind"] != "PodDisruptionBudget"]
    assert undrainable(left) == [
        "Deployment/moorage-webhook can lose all pods at once, or keeps a node from being drained"
    ]


def test_the_governor_is_probed_and_scraped_where_it_listens() -> None:
    """Liveness asks whether it answers, readiness whether it works; Prometheus finds the port."""
    pod = only("governor", "Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    (port,) = container["ports"]
    assert port["name"] == "metrics"
    assert f"--metrics-listen=0.0.0.0:{port['containerPort']}" in container["command"]
    probes = {name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert probes == {
        "livenessProbe": {"path": "/healthz", "port": "metrics"},
        "readinessProbe": {"path": "/readyz", "port": "metrics"},
    }
    scraped = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port["containerPort"]),
        "prometheus.io/path": "/metrics",
    }
    assert scraped.items() <= pod["metadata"]["annotations"].items()


def test_policy_and_webhook_see_the_same_writes() -> None:
    """Both are about hosts alone: their status is a subresource, which neither names."""
    constraints = only("policy", "MutatingAdmissionPolicy")["spec"]["matchConstraints"]
    (hook,) = only("webhook", "MutatingWebhookConfiguration")["webhooks"]
    assert constraints["resourceRules"] == hook["rules"]
    (rule,) = hook["rules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE", "UPDATE"], ["baremetalhosts"])
    user = only("governor", "ServiceAccount")["metadata"]
    governor = f"system:serviceaccount:{user['namespace']}:{user['name']}"
    first = only("policy", "MutatingAdmissionPolicy")["spec"]["matchConditions"][0]
    assert first["expression"] == f'request.userInfo.username != "{governor}"'
    (container,) = only("webhook", "Deployment")["spec"]["template"]["spec"]["containers"]
    assert f"--governor={governor}" in container["command"]


def test_the_shell_of_the_mutation_is_what_kubernetes_documents() -> None:
    """The patch is a list of `JSONPatch`, with the key escaped by `jsonpatch.escapeKey`."""
    (mutation,) = only("policy", "MutatingAdmissionPolicy")["spec"]["mutations"]
    assert mutation["patchType"] == "JSONPatch"
    assert mutation["jsonPatch"]["expression"] == (
        "[has(object.metadata.annotations) "
        '? JSONPatch{op: "add", path: "/metadata/annotations/" '
        '+ jsonpatch.escapeKey("baremetalhost.metal3.io/paused"), value: "moorage"} '
        ': JSONPatch{op: "add", path: "/metadata/annotations", '
        'value: {"baremetalhost.metal3.io/paused": "moorage"}}]'
    )
