"""docs/howto/kubernetes.md, typed: Helm and kubectl against a real API server.

There are no nodes. `kubectl rollout status` starts a pod's container as a process, as `pods.py`
does it, `kubectl exec` runs a command beside it, and `kubectl port-forward` finds its port.
"""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.e2e.support.server import Server
from tests.e2e.support.typed import Step, steps_of
from tests.kubernetes.chart.helm import CHART, Helm, Object
from tests.kubernetes.chart.pods import Pod, said
from tests.kubernetes.chart.sets import IMAGE
from tests.kubernetes.cluster import ROOT, KubernetesCluster, tool
from tests.kubernetes.metal3.policies import admission
from tests.support.cluster import Cluster

GUIDE = ROOT / "docs/howto/kubernetes.md"
FORWARDED = "http://127.0.0.1:8778"
SECTIONS = (
    *("With SQLite", "Sign in", "Upgrade", "Back up and restore", "Boskos", "The gate"),
    *("The governor of metal3", "Remove it"),
)
POSTGRESQL = ("With PostgreSQL", "Migrate PostgreSQL first")
"""These are typed on PostgreSQL."""

GOVERNOR = "--set governor.enabled=true"
"""With this, `governor.admission` depends on the version of Kubernetes."""

STORED = ("secret", "configmap", "statefulset", "deployment", "job")
HERE = re.compile(r"<<'END'$", re.M)
PRIVATE = re.compile(r"\(umask 077; (.*)\)")


class Reader:
    """Types commands, and plays the kubelet of the pods that they wait for."""

    def __init__(self, api: KubernetesCluster, folder: Path, addresses: dict[str, str]) -> None:
        self.folder, self.addresses = folder, addresses
        self._api = api
        self._running: dict[str, tuple[Pod, Server | None]] = {}
        self._ports: dict[str, dict[str, int]] = {}
        programs = folder / "programs"
        programs.mkdir()
        for name in ("helm", "kubectl"):
            (programs / name).symlink_to(tool(name))
        moorage = programs / "moorage"
        moorage.write_text(f'#!/bin/sh\nexec {sys.executable} -m moorage "$@"\n')
        moorage.chmod(0o755)
        (folder / ".kube").mkdir()
        (folder / ".kube/config").write_text(api.admin.read_text())
        (folder / "deploy").symlink_to(ROOT / "deploy")
        (folder / "volumes").mkdir()
        self._environment = {
            "HOME": str(folder),
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    def type(self, step: Step) -> str:
        """Type a command; return its output. It must succeed."""
        command, given = step.command, ""
        if HERE.search(command):
            lines = step.shown[: step.shown.index("END")]
            given, command = "\n".join(lines) + "\n", HERE.sub("", command)
        private = PRIVATE.fullmatch(command)
        if private is not None:
            command = private[1]
        if command.startswith("export "):
            for word in shlex.split(command)[1:]:
                name, _, value = word.partition("=")
                self._environment[name] = self._resolved(value)
            return ""
        command = command.replace(GOVERNOR, f"{GOVERNOR} --set governor.admission={admission()}")
        words = shlex.split(command)
        if words[0] == "kubectl" and "exec" in words:
            return self._execute(words, 0o600 if private else 0o644)
        if words[0] == "kubectl" and "rollout" in words:
            return self._roll_out(words[-1])
        if words[0] == "kubectl" and "port-forward" in words:
            (pod, _) = self._running["StatefulSet/moorage"]
            self.addresses[FORWARDED] = f"http://127.0.0.1:{pod.port(8778)}"
            return ""
        if words[0] == "kubectl" and "wait" in words:
            return self._complete(words)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            umask=0o077 if private else -1,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Warning:" not in done.stderr
        return said(done)

    def _resolved(self, text: str) -> str:
        return self.addresses.get(text, text)

    def _execute(self, words: list[str], mode: int) -> str:
        before, after = words[: words.index("--")], words[words.index("--") + 1 :]
        file = None
        if ">" in after:
            file, after = after[-1], after[:-2]
        workload = before[before.index("exec") + 1]
        pod, _ = self._running[kind_of(workload)]
        printed = said(pod.execute(*after))
        if file is None:
            return printed
        (self.folder / file).touch(mode)
        (self.folder / file).write_text(printed + "\n")
        return ""

    def _roll_out(self, workload: str) -> str:
        """Stop the pod of a workload, if it runs, and start the present one."""
        name = kind_of(workload)
        if name in self._running and (before := self._running[name][1]) is not None:
            assert before.stop() == 0
        variables = {}
        if name.endswith("governor"):
            config = self._api.kubeconfig_of("moorage", "moorage")
            variables["KUBECONFIG"] = str(config)
        objects, content = self._objects()
        pod = Pod(
            objects,
            name,
            self.folder / "volumes",
            content,
            variables=variables,
            addresses=self.addresses,
            ports=self._ports.setdefault(name, {}),
        )
        pod.prepare()
        serves = "readinessProbe" in pod.container
        self._running[name] = (pod, pod.start() if serves else None)
        if name == "StatefulSet/moorage":
            inside = "http://moorage.moorage.svc:8778"
            self.addresses[inside] = f"http://127.0.0.1:{pod.port(8778)}"
        return ""

    def _complete(self, words: list[str]) -> str:
        """Run the container of a Job to its end."""
        assert "--for=condition=complete" in words
        objects, content = self._objects()
        name = kind_of(words[-1])
        pod = Pod(objects, name, self.folder / "volumes", content, addresses=self.addresses)
        return said(pod.run())

    def _objects(self) -> tuple[list[Object], dict[str, dict[str, str]]]:
        """Return the workloads of the namespace, and the contents of Secrets and ConfigMaps."""
        asked = self._api.kubectl("get", ",".join(STORED), "-n", "moorage", "-o", "json")
        found: list[Object] = json.loads(said(asked))["items"]
        content = {
            f"Secret/{one['metadata']['name']}": {
                key: base64.b64decode(value).decode() for key, value in one["data"].items()
            }
            for one in found
            if one["kind"] == "Secret"
        }
        return [one for one in found if one["kind"] != "Secret"], content

    def close(self) -> None:
        """Stop all pods."""
        for _, process in self._running.values():
            if process is not None:
                process.stop()


def kind_of(workload: str) -> str:
    """Return a workload as objects name it."""
    kind, _, name = workload.partition("/")
    kinds = {"statefulset": "StatefulSet", "deployment": "Deployment", "job": "Job"}
    return f"{kinds[kind]}/{name}"


@pytest.fixture(scope="module")
def ironic() -> Iterator[str]:
    """The address of a double of Ironic."""
    command = [sys.executable, "-m", "tests.support.ironic_double", "--nodes", "3"]
    with Server(command, ready=re.compile(r"(?P<url>http://\S+)")) as double:
        yield double.url


def steps_of_all(*titles: str) -> list[Step]:
    """Return the commands of sections."""
    return [step for title in titles for step in steps_of(GUIDE, title)]


def typed(reader: Reader, *titles: str) -> None:
    """Type the commands of sections; what they print must be what the guide shows."""
    for step in steps_of_all(*titles):
        printed = reader.type(step)
        if step.shown and not HERE.search(step.command):
            shown = "\n".join(step.shown).replace("/var/backups/moorage", "DIR")
            assert re.sub(r"/\S*(?=/monday)", "DIR", printed) == shown, step.command


def test_with_sqlite(api: KubernetesCluster, tmp_path: Path, ironic: str) -> None:
    """All sections but the one about PostgreSQL, one after another."""
    reader = Reader(api, tmp_path, {"http://ironic.openstack.svc:6385": ironic})
    with ExitStack() as stack:
        stack.callback(reader.close)
        typed(reader, *SECTIONS)


def test_with_postgresql(api: KubernetesCluster, tmp_path: Path) -> None:
    """The sections about PostgreSQL, then a token as in the section after the first."""
    with Cluster() as database, ExitStack() as stack:
        address = "postgresql://moorage@db.example.org/moorage?sslmode=require"
        reader = Reader(api, tmp_path, {address: database.create("ledger")})
        stack.callback(reader.close)
        migrated = []
        for step in steps_of_all(*POSTGRESQL):
            if step.command != "kubectl create namespace moorage":  # of the other test
                migrated.append(reader.type(step))
        assert any("has the schema of this release" in printed for printed in migrated)
        create = "moorage token create --name alice --role admin"
        assert reader.type(
            Step(f"kubectl -n moorage exec deployment/moorage -c server -- {create}")
        )
        reader.type(Step("helm uninstall moorage --namespace moorage"))


def test_no_command_is_left_out() -> None:
    """Every section with commands is typed, each of its commands once."""
    typed_steps = [step.command for step in steps_of_all(*SECTIONS, *POSTGRESQL)]
    assert sorted(typed_steps) == sorted(step.command for step in steps_of(GUIDE))


def test_no_command_shows_a_secret() -> None:
    """No file with a token is readable for others, no secret is an argument of a command."""
    for step in steps_of(GUIDE):
        if "token create" in step.command and ">" in step.command:
            assert PRIVATE.fullmatch(step.command), step.command
        assert "--from-literal" not in step.command


@pytest.mark.parametrize("block", range(5))
def test_examples_of_values(tmp_path: Path, block: int) -> None:
    """The chart takes the values that the guide shows."""
    examples = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    assert len(examples) == 5
    values = yaml.safe_load(examples[block])
    assert Helm(tmp_path).template({"image": IMAGE, **values}, chart=CHART)
