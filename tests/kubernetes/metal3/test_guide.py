"""An administrator types docs/howto/metal3.md on a real API server, in its order."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from moorage.client.admission import Admission
from moorage.client.transport import Transport
from moorage.integrations.metal3.hosts import PAUSED
from tests.e2e.support.server import serve
from tests.e2e.support.typed import free_port, steps_of
from tests.kubernetes.cluster import KubernetesCluster
from tests.kubernetes.metal3.containers import Containers, environment
from tests.kubernetes.metal3.policies import admission as served
from tests.kubernetes.metal3.policies import required
from tests.kubernetes.metal3.world import CLASS_NAME
from tests.support.kubernetes_client import host, hosts_in

GUIDE = Path(__file__).resolve().parents[3] / "docs/howto/metal3.md"
ALL = hosts_in("metal3")
LIMIT = 20
OTHERS = [f"host-{number}" for number in range(1, LIMIT + 3) if number not in (7, 8)]
SECONDS = 60.0
OPERATOR = "baremetal-operator-system"


class Shell:
    """Types the commands of a section; each must succeed, and warn of nothing."""

    def __init__(self, folder: Path, variables: dict[str, str], replaced: dict[str, str]) -> None:
        self.folder, self._variables, self._replaced = folder, variables, replaced
        self.typed: list[str] = []

    def section(self, title: str) -> list[str]:
        """Type all commands of a section; return what each has printed."""
        return [self.run(step.command) for step in steps_of(GUIDE, title)]

    def run(self, command: str) -> str:
        """Type one command; return what it has printed."""
        self.typed.append(command)
        done = subprocess.run(
            self._bash(command),
            cwd=self.folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=2 * SECONDS,
        )
        assert done.returncode == 0, (command, done.stdout)
        assert "Warning:" not in done.stdout, (command, done.stdout)
        return done.stdout

    @contextmanager
    def beside(self, command: str) -> Iterator[None]:
        """Run a command that ends with `&`, from its first line on; end it at the end."""
        assert command.endswith("&")
        self.typed.append(command)
        with subprocess.Popen(
            self._bash(f"exec {command.removesuffix('&')}"),
            cwd=self.folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline()
                yield
            finally:
                process.terminate()

    def _bash(self, command: str) -> list[str]:
        for shown, real in self._replaced.items():
            command = command.replace(shown, real)
        return ["bash", "-o", "pipefail", "-c", command]


def until(cluster: KubernetesCluster, holds: Callable[[], bool]) -> None:
    """Return when something holds."""
    begun = monotonic()
    while not holds():
        assert not cluster.server.gone(0.1)
        assert monotonic() - begun < SECONDS


def annotations(cluster: KubernetesCluster, name: str) -> dict[str, str]:
    """Return those of a host."""
    found: dict[str, str] = cluster.call("GET", f"{ALL}/{name}")["metadata"].get("annotations", {})
    return found


def operator_deployment() -> dict[str, Any]:
    """Return a Deployment like that of metal3's operator."""
    labels = {"app": "bmo"}
    container = {"name": "manager", "image": "quay.io/metal3-io/baremetal-operator"}
    return {
        "metadata": {"name": "baremetal-operator-controller-manager"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cluster with hosts' definition and the namespace `metal3`, and nothing of ours."""
    with KubernetesCluster(tmp_path_factory.mktemp("guide"), *required()) as started:
        started.serve_hosts()
        started.create_namespace("metal3")
        yield started


def test_the_guide(bare: KubernetesCluster, tmp_path: Path) -> None:
    """Every command succeeds without a warning, and does what the guide says of it."""
    database = tmp_path / "moorage.sqlite"
    with serve(database) as server:
        token = Path(f"{database}.token").read_text().strip()
        variables = environment(tmp_path, server.url, token, bare)
        proxy = free_port()
        replaced = {
            "https://moorage.example": server.url,
            "install --print": f"install --print --admission {served()}",
            "--port 8001": f"--port {proxy}",
            "http://127.0.0.1:8001": f"http://127.0.0.1:{proxy}",
        }
        shell = Shell(tmp_path, variables, replaced)
        shell.run("kubectl config set-context --current --namespace metal3")
        with Containers(bare, tmp_path / "containers") as containers:
            admission = Admission(Transport(server.url, token))
            install(shell)
            wait_in_line(bare, shell, admission)
            several_pools(shell)
            hold(bare, shell)
            own_limit(bare, shell)
            remove(bare, shell)
            said = containers.log.read_text()
        assert [one.command for one in steps_of(GUIDE) if one.command not in shell.typed] == []
        assert not CLASS_NAME.search(said), said


def install(shell: Shell) -> None:
    """Install it: the governor runs, and hosts are paused."""
    *_, rollout, proof = shell.section("Install it")
    assert "successfully rolled out" in rollout
    assert proof == "new hosts are paused\n"


def wait_in_line(cluster: KubernetesCluster, shell: Shell, admission: Admission) -> None:
    """Of more hosts than the limit two wait: the guide shows why, and one is let pass."""
    for name in OTHERS:
        cluster.call("POST", ALL, host(name))
    until(cluster, lambda: len([*admission.leases("deploy", "granted")]) == LIMIT)
    for name in ("host-8", "host-7"):
        cluster.call("POST", ALL, host(name))
    written = {**host("host-99"), "metadata": {"name": "host-99"}}
    (shell.folder / "host.yaml").write_text(json.dumps(written))
    columns, dry = shell.section("Try it")
    assert re.search(r"host-7 +moorage\n", columns)
    assert f"{PAUSED}: moorage" in dry
    until(cluster, lambda: "moorage.dev/waiting" in annotations(cluster, "host-7"))

    def told() -> bool:
        return "Waiting" in shell.run(
            "kubectl get events -n metal3 --field-selector involvedObject.name=host-7"
        )

    until(cluster, told)
    described, events, waiting = shell.section("See why a host waits")
    for field in ("place: ", "eta_seconds: ", "code: ", "reason: ", "since: ", "noted: "):
        assert re.search(rf"(?m)^ +{field}", described), described
    assert re.search(r"Normal +Waiting +\S+ +moorage +Place \d in line of deploy", described)
    assert re.search(r"Normal +Waiting +baremetalhost/host-7", events)
    assert "host-7" in waiting
    (failed,) = shell.section("If a host fails")  # the note of a host that waits looks the same
    assert failed.lstrip().startswith('reason: "')
    shell.section("Let one host pass")
    assert PAUSED not in annotations(cluster, "host-7")
    until(cluster, lambda: len([*admission.leases("deploy", "granted")]) == LIMIT + 1)
    assert PAUSED not in annotations(cluster, "host-7")


def several_pools(shell: Shell) -> None:
    """The rules of the guide are installed in place of the pool."""
    rules = GUIDE.read_text().split("```toml\n", 1)[1].split("```", 1)[0]
    (shell.folder / "rules.toml").write_text(rules)
    *_, replaced = shell.section("Several pools")
    assert replaced == "secret/moorage-governor replaced\n"
    shell.run("kubectl apply --dry-run=server -f moorage.yaml")


def hold(cluster: KubernetesCluster, shell: Shell) -> None:
    """The hosts of a namespace are held, and go on."""
    (held,) = shell.section("Hold hosts back, and move them")
    number = len(cluster.call("GET", ALL)["items"])
    assert held == f"held: {number} of {number} hosts\n"
    resumed = shell.run("moorage metal3 resume metal3 --kubeconfig ~/.kube/config")
    assert resumed == f"resumed: {number} of {number} hosts\n"


def own_limit(cluster: KubernetesCluster, shell: Shell) -> None:
    """The limit of metal3's operator is found, and the warning is that of the guide."""
    cluster.create_namespace(OPERATOR)
    cluster.call("POST", f"/apis/apps/v1/namespaces/{OPERATOR}/deployments", operator_deployment())
    (step,) = steps_of(GUIDE, "metal3's own limit")
    assert shell.run(step.command).splitlines() == step.shown


def remove(cluster: KubernetesCluster, shell: Shell) -> None:
    """Nothing is left in the cluster, and no host is paused."""
    steps = [step.command for step in steps_of(GUIDE, "Remove it")]
    scale, foretold, removed, deleted, proxy, through_it = steps
    shell.run(scale)
    said = shell.run(foretold)
    assert said.startswith("would remove: 2 admission objects, ")
    assert shell.run(removed) == said.replace("would remove", "removed")
    assert not any(
        PAUSED in (one["metadata"].get("annotations") or {})
        for one in cluster.call("GET", ALL)["items"]
    )
    with shell.beside(proxy):
        assert shell.run(through_it) == "removed: 0 admission objects, 0 pauses of hosts\n"
    shell.run(deleted)
    found = cluster.kubectl("get", "namespace,clusterrole,clusterrolebinding", "-o", "name")
    assert "moorage" not in found.stdout, found.stdout
