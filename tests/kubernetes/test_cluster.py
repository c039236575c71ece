"""The real API server starts, keeps what it has stored, and enforces rights and schemas."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import (
    ACCOUNTS,
    TOOLS,
    KubernetesCluster,
    NoKubernetes,
    Program,
    minor,
    tool,
)
from tests.support.kubernetes_client import MERGE, Answered, host, hosts_in

ALL = hosts_in("metal3")
ROLES = "/apis/rbac.authorization.k8s.io/v1"


def refused(cluster: KubernetesCluster, method: str, path: str, body: Any) -> tuple[int, str]:
    """Send what is refused; return the status and the message."""
    with pytest.raises(Answered) as raised:
        cluster.call(method, path, body, MERGE if method == "PATCH" else "application/json")
    return raised.value.code, raised.value.body["message"]


def test_hosts_have_metal3s_schema(cluster: KubernetesCluster) -> None:
    """Defaults are stored and unknown fields are dropped; a wrong value, and a status that lacks
    what metal3 requires, are refused.
    """
    wanted = host("schema")
    wanted["spec"] |= {"unknown": 1}
    made = cluster.call("POST", ALL, wanted)
    assert made["spec"]["automatedCleaningMode"] == "metadata"
    assert "unknown" not in made["spec"]
    wrong = {"spec": {"bootMode": "BIOS"}}
    code, said = refused(cluster, "PATCH", f"{ALL}/schema", wrong)
    assert code == 422 and "spec.bootMode" in said
    status = {"status": {"provisioning": {"state": "inspecting"}}}
    code, said = refused(cluster, "PATCH", f"{ALL}/schema/status", status)
    assert code == 422 and "status.provisioning.ID" in said and "status.poweredOn" in said


def test_a_service_account_may_do_what_its_role_says(cluster: KubernetesCluster) -> None:
    """With its own token an account may read hosts once it is bound to a role, and nothing else."""
    account = ACCOUNTS.format("moorage")
    cluster.call("POST", account, {"metadata": {"name": "reader"}})
    config = cluster.kubeconfig_of("moorage", "reader")
    asked = ("get", "bmh", "-n", "metal3", "-o", "name")
    assert "cannot list resource" in cluster.kubectl(*asked, config=config).stderr
    rule = {"apiGroups": ["metal3.io"], "resources": ["baremetalhosts"], "verbs": ["list", "get"]}
    cluster.call("POST", f"{ROLES}/clusterroles", {"metadata": {"name": "r"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "moorage"}
    binding = {"metadata": {"name": "r"}, "roleRef": role, "subjects": [subject]}
    cluster.call("POST", f"{ROLES}/clusterrolebindings", binding)
    assert cluster.kubectl(*asked, config=config).returncode == 0
    deleted = cluster.kubectl("delete", "bmh", "-n", "metal3", "--all", config=config)
    assert "cannot delete" in deleted.stderr or "cannot list" in deleted.stderr


def test_a_restart_keeps_everything(cluster: KubernetesCluster) -> None:
    """The same address serves the same objects after the API server, and after etcd, was killed;
    one that is stopped answers nothing, and goes on later.
    """
    made = cluster.call("POST", ALL, host("kept"))
    cluster.restart_server()
    cluster.restart_etcd()
    cluster.restart_server(signal.SIGTERM)
    assert cluster.call("GET", f"{ALL}/kept")["metadata"]["uid"] == made["metadata"]["uid"]
    cluster.server.freeze()
    with pytest.raises(OSError, match="timed out"):
        cluster.raw("GET", "/readyz", seconds=0.5)
    cluster.server.thaw()
    cluster.wait_ready()


def test_versions_are_forgotten(cluster: KubernetesCluster) -> None:
    """After a compaction and a restart a watch from an old version gets 410."""
    old = cluster.call("GET", ALL)["metadata"]["resourceVersion"]
    cluster.call("POST", ALL, host("newer"))
    cluster.compact()
    cluster.restart_server()
    path = f"{ALL}?watch=1&timeoutSeconds=1&resourceVersion={old}"
    found = json.loads(cluster.raw("GET", path).splitlines()[0])
    assert (found["type"], found["object"]["code"]) == ("ERROR", 410)


def test_it_is_the_release_that_it_says(cluster: KubernetesCluster) -> None:
    """Clients such as Helm decide by the version of the server."""
    version = cluster.call("GET", "/version")
    newest = 36
    wanted = newest if TOOLS.name == "current" else int(TOOLS.name.removeprefix("1."))
    assert (version["major"], version["minor"]) == ("1", str(wanted))
    assert version["gitVersion"].startswith(f"v1.{wanted}.")
    assert minor() == wanted


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The end of its output is in the error, and no process is left."""
    with pytest.raises(NoKubernetes, match="unknown flag: --wrong"):
        KubernetesCluster(tmp_path, "--wrong")


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to run."""
    monkeypatch.setattr("tests.kubernetes.cluster.TOOLS", tmp_path)
    with pytest.raises(NoKubernetes, match="make kubernetes-tools"):
        tool("etcd")


def test_a_program_is_started_once(tmp_path: Path) -> None:
    """A second start changes nothing; after its end it can be started again."""
    program = Program(["sleep", "600"], tmp_path / "log")
    program.start()
    first = program.pid
    program.start()
    assert program.pid == first
    program.freeze()
    program.end()
    program.start()
    assert program.pid != first
    program.end()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
