"""The command of each container starts with the variables and files of its pod, and is ready.

There is no kubelet: `pods.py` does what one would do.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support.server import NotStarted, Server
from tests.kubernetes.chart.helm import Helm, Object, pods
from tests.kubernetes.chart.pods import Pod, asked, said
from tests.kubernetes.chart.sets import EVERYTHING, GATE_RULES, MADE, SETS
from tests.kubernetes.cluster import KubernetesCluster
from tests.support.certificates import certificate
from tests.support.cluster import Cluster

TOKEN = ("moorage", "token", "create", "--name", "alice", "--role", "admin")
LIMIT = ("--limit", "2", "--expire", "keep")
NAMES = ("moorage", "moorage.moorage", "moorage.moorage.svc", "moorage.moorage.svc.cluster.local")


@pytest.fixture(scope="module")
def rendering(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


def secret_of(folder: Path) -> dict[str, str]:
    """Return the content of a Secret with a certificate."""
    made = certificate(folder, "DNS:moorage.moorage.svc", "IP:127.0.0.1").folder
    return {
        "tls.crt": (made / "cert.pem").read_text(),
        "tls.key": (made / "key.pem").read_text(),
    }


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The content of a Secret with a certificate."""
    return secret_of(tmp_path_factory.mktemp("tls"))


def is_probed(pod: Pod) -> bool:
    """Return whether all probes of a container with HTTP succeed."""
    names = [name for name in pod.container if name.endswith("Probe")]
    return bool(names) and all(
        pod.probe(name) == 200 for name in names if "httpGet" in pod.container[name]
    )


def test_sqlite(rendering: Helm, tmp_path: Path) -> None:
    """It serves, under the names of its Service only; a command in the pod makes a token."""
    pod = Pod(rendering.template(SETS["sqlite"]), "StatefulSet/moorage", tmp_path, {})
    pod.prepare()
    with pod.start():
        assert is_probed(pod)
        for name in (*NAMES, "10.96.3.4"):
            assert pod.status("http", "/readyz", "HTTP", f"{name}:8778") == 200
        assert pod.status("http", "/readyz", "HTTP", "moorage.example.org") == 421
        token = said(pod.execute(*TOKEN))
        assert "alice" in asked(f"http://127.0.0.1:{pod.port(8778)}", token, "token", "list")
    # Another pod has the same volume.
    other = Pod(rendering.template(SETS["sqlite"]), "StatefulSet/moorage", tmp_path, {})
    other.prepare()
    with other.start():
        url = f"http://127.0.0.1:{other.port(8778)}"
        assert "alice" in asked(url, token, "token", "list")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another group")
def test_the_init_container_is_needed(rendering: Helm, tmp_path: Path) -> None:
    """This is the control: in the volume's own folder, which a group may write to, a command in the
    pod does not find its server.
    """
    objects = rendering.template(SETS["sqlite"])
    container = pods(objects)["StatefulSet/moorage"]["spec"]["containers"][0]
    for one in container["env"]:
        if one["name"] == "MOORAGE_DATABASE":
            one["value"] = one["value"].replace("/ledger", "")
    pod = Pod(objects, "StatefulSet/moorage", tmp_path, {})
    with pod.start():
        refused = pod.execute(*TOKEN)
    assert refused.returncode == 2 and "others of its group can write" in refused.stderr


def test_a_wrong_option_is_found(rendering: Helm, tmp_path: Path) -> None:
    """This is the control: a variable that Moorage does not know ends the start."""
    misspelt = "MOORAGE_" + "LISTN"
    values = {**SETS["sqlite"], "server": {"extraEnv": [{"name": misspelt, "value": "x"}]}}
    pod = Pod(rendering.template(values), "StatefulSet/moorage", tmp_path, {})
    pod.prepare()
    with pytest.raises(NotStarted, match=misspelt):
        pod.start()


def stored(tls: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Return the Secrets and ConfigMaps that the set with everything names."""
    return {
        "Secret/moorage-tls": tls,
        "Secret/gate-tls": tls,
        "Secret/moorage-boskos": {"passwords": "ci:secret\n"},
        "Secret/ironic-token": {"token": "ironic"},
        "ConfigMap/site-authority": {"bundle.pem": tls["tls.crt"]},
    }


def everything(**more: Any) -> dict[str, Any]:
    """Return the set with everything, of which some parts have other values."""
    return {
        **EVERYTHING,
        **{name: {**EVERYTHING.get(name, {}), **value} for name, value in more.items()},
    }


def test_everything_of_a_server(rendering: Helm, tmp_path: Path, tls: dict[str, str]) -> None:
    """TLS, Boskos' configuration and passwords, other settings, a backup, and its restore."""
    objects = rendering.template(EVERYTHING)
    pod = Pod(objects, "StatefulSet/moorage", tmp_path, stored(tls))
    pod.prepare()
    copy = "/var/backups/moorage/monday.sqlite"
    with pod.start():
        assert is_probed(pod)
        for host in ("moorage.example.org", "moorage.example.net", "moorage.internal"):
            assert pod.status("http", "/readyz", "HTTPS", host) == 200
        assert said(pod.execute(*TOKEN))
        slots = said(pod.execute("moorage", "pool", "slots", "slice"))
        assert "slice-1" in slots and "slice-2" in slots
        assert pod.status("boskos", "/metric?type=slice", "HTTPS", "anything") == 403
        assert said(pod.execute("moorage", "db", "backup", copy)).startswith("wrote ")
        said(pod.execute("moorage", "pool", "create", "after", "--limit", "1"))
    paused = rendering.template(everything(server={**EVERYTHING["server"], "maintenance": True}))
    other = Pod(paused, "StatefulSet/moorage", tmp_path, stored(tls))
    other.prepare()
    waiting = subprocess.Popen(other.command(), env=other.variables())
    assert "restored" in said(other.execute("moorage", "db", "restore", copy))
    waiting.send_signal(signal.SIGTERM)
    waiting.wait(30.0)
    with pod.start():
        names = said(pod.execute("moorage", "pool", "list"))
        assert "slice" in names and "after" not in names


def test_postgresql(rendering: Helm, tmp_path: Path) -> None:
    """Two processes share a database; a token that one pod makes is good for both."""
    database = {"addressSecret": {"name": "moorage-database", "key": "where"}}
    authority = {"authority": {"configMap": "site-authority"}}
    values = {
        **SETS["postgresql"],
        "server": {
            "replicas": 2,
            "database": {"engine": "postgresql", "postgresql": {**database, **authority}},
        },
    }
    objects = rendering.template(values)
    with Cluster() as cluster:
        content = {
            "Secret/moorage-database": {"where": cluster.create("ledger")},
            "ConfigMap/site-authority": {"ca.crt": "not read without TLS"},
        }
        with ExitStack() as stack:
            both = []
            for name in ("a", "b"):
                (tmp_path / name).mkdir()
                both.append(Pod(objects, "Deployment/moorage", tmp_path / name, content))
                stack.enter_context(both[-1].start())
            assert all(map(is_probed, both))
            token = said(both[0].execute(*TOKEN))
            for pod in both:
                url = f"http://127.0.0.1:{pod.port(8778)}"
                assert "alice" in asked(url, token, "token", "list")


@pytest.fixture(scope="module")
def server(
    rendering: Helm, tls: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The address of a server with TLS, and a token that governs its pools."""
    folder = tmp_path_factory.mktemp("server")
    values = {**SETS["sqlite"], "server": {"tls": {"secret": "moorage-tls"}}}
    pod = Pod(rendering.template(values), "StatefulSet/moorage", folder, stored(tls))
    pod.prepare()
    with pod.start():
        url = f"https://127.0.0.1:{pod.port(8778)}"
        said(pod.execute("moorage", "pool", "create", "deploy", *LIMIT))
        governs = ("--name", "g", "--role", "governor", "--for", "pool=deploy")
        yield url, said(pod.execute("moorage", "token", "create", *governs))


@pytest.fixture(scope="module")
def ironic() -> Iterator[str]:
    """The address of a double of Ironic, which wants a token."""
    command = [sys.executable, "-m", "tests.support.ironic_double", "--nodes", "3"]
    with Server(
        [*command, "--token", "ironic"], ready=re.compile(r"(?P<url>http://\S+)")
    ) as double:
        yield double.url


@pytest.mark.parametrize("limit", ["pool", "rules"])
def test_gate(
    rendering: Helm,
    tmp_path: Path,
    server: tuple[str, str],
    ironic: str,
    tls: dict[str, str],
    limit: str,
) -> None:
    """It has read all nodes of Ironic with its token, and serves HTTPS with its certificate."""
    url, token = server
    limits = {"pool": "deploy", "rules": ""} if limit == "pool" else {"rules": GATE_RULES}
    values = everything(gate={"ironicUrl": ironic, **limits})
    values |= {"moorageUrl": url}
    pod = Pod(
        rendering.template(values),
        "Deployment/moorage-gate",
        tmp_path,
        {**stored(tls), "Secret/moorage-gate": {"secret": token}},
    )
    with pod.start() as gate:
        assert "3 nodes, 0 busy" in "".join(gate.said)
        assert is_probed(pod)
        # The readiness probe only connects; that is no event.
        lines = len(gate.said)
        with socket.create_connection(("127.0.0.1", pod.port(6385))):
            pass
        assert pod.status("ironic", "/v1/nodes", "HTTPS", "moorage-gate.moorage.svc") in (200, 401)
        assert gate.said[lines:] == []


def governed(
    api: KubernetesCluster, helm: Helm, values: Mapping[str, Any]
) -> tuple[list[Object], dict[str, str]]:
    """Install a release; return its objects, and the variables of its governor.

    A kubelet would mount the token of the account where clients look for it.
    """
    helm.install(values)
    config = api.kubeconfig_of("moorage", "moorage")
    return helm.template(values), {"KUBECONFIG": str(config)}


@pytest.mark.parametrize("limit", [{"pool": "deploy"}, {"rules": GATE_RULES.split("verbs")[0]}])
def test_governor(
    api: KubernetesCluster,
    helm: Helm,
    tmp_path: Path,
    server: tuple[str, str],
    tls: dict[str, str],
    limit: dict[str, str],
) -> None:
    """With the rights of its account on the real API server it makes its first pass."""
    url, token = server
    values = {
        **SETS["policy"],
        "moorageUrl": url,
        "governor": {"enabled": True, **limit},
        "trustedAuthorities": {"configMap": "site-authority", "key": "bundle.pem"},
    }
    objects, more = governed(api, helm, values)
    folder = tmp_path / "pod"
    folder.mkdir()
    content = {**stored(tls), "Secret/moorage-governor": {"token": token}}
    pod = Pod(objects, "Deployment/moorage-governor", folder, content, variables=more)
    with pod.start():
        assert is_probed(pod)
    helm.run("uninstall", "moorage", "--namespace", "moorage")


def test_webhook(rendering: Helm, tmp_path: Path, tls: dict[str, str]) -> None:
    """It answers over HTTPS with the certificate of cert-manager's Secret."""
    pod = Pod(
        rendering.template(SETS["webhook"]),
        "Deployment/moorage-webhook",
        tmp_path,
        {"Secret/moorage-webhook-tls": tls},
    )
    with pod.start():
        assert is_probed(pod)


def test_every_workload_is_started() -> None:
    """A new workload of the chart needs a test here."""
    workload = re.compile("(Deployment|StatefulSet|DaemonSet|CronJob|Job|Pod)/")
    made = {name for names in MADE.values() for name in names if workload.match(name)}
    assert made == {
        *("StatefulSet/moorage", "Deployment/moorage", "Deployment/moorage-gate"),
        *("Deployment/moorage-governor", "Deployment/moorage-webhook"),
    }
