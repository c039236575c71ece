"""In place of nodes and controllers: runs the Deployment of the governor as a process.

The process has the command of the container, the token of the service account, and the files of the
volumes. It is ready when its probe says so, which the status of the Deployment then says, too. A
namespace that is deleted loses its finalizer, as its controller does once it is empty.
"""

import base64
import os
import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from tests.e2e.support.typed import free_port
from tests.kubernetes.cluster import KubernetesCluster, Program, tool
from tests.support.closing import Closing
from tests.support.kubernetes_client import MERGE, Answered

NAMESPACE = "moorage"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/moorage-governor"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/moorage-governor"
LOOK_SECONDS = 0.1


class Containers(Closing):
    """Looks at the cluster ten times a second until it is closed; `log` has the output."""

    def __init__(self, cluster: KubernetesCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        folder.mkdir()
        self.log = folder / "governor.log"
        self._program: Program | None = None
        self._generation = 0
        self._probe = ""
        self._over = threading.Event()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the process."""
        self._over.set()
        self._thread.join()
        self._end()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self._look()
            except OSError:
                continue  # the API server does not answer
            except Exception as error:  # the test raises it
                self.error = error
                return

    def _look(self) -> None:
        self._empty_namespaces()
        found = self._read(DEPLOYMENT)
        if found is None or not found["spec"]["replicas"]:
            self._end()
        elif self._generation != found["metadata"]["generation"]:
            self._start(found)
        if found is not None:
            self._say(found)

    def _read(self, path: str) -> Any:
        try:
            return self._cluster.call("GET", path)
        except Answered as answered:
            if answered.code != 404:
                raise
            return None

    def _start(self, found: Any) -> None:
        secret = self._read(SECRET)
        if secret is None:
            return  # a container waits for its volumes
        self._end()
        (self._folder / "token").write_bytes(base64.b64decode(secret["data"]["token"]))
        (self._folder / "token").chmod(0o600)
        pod = found["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        program, *words = container["command"]
        assert program == "moorage"
        port = free_port()
        self._probe = f"http://127.0.0.1:{port}{container['readinessProbe']['httpGet']['path']}"
        words = [
            word.replace("=/moorage/", f"={self._folder}/").replace(
                "=0.0.0.0:9180", f"=127.0.0.1:{port}"
            )
            for word in words
        ]
        config = self._cluster.kubeconfig_of(NAMESPACE, pod["serviceAccountName"])
        self._program = Program(
            [sys.executable, "-m", "moorage", *words, "--kubeconfig", config], self.log
        )
        self._program.start()
        self._generation = found["metadata"]["generation"]

    def _end(self) -> None:
        if self._program is not None:
            self._program.end()
        self._program, self._generation = None, 0

    def _say(self, found: Any) -> None:
        """Write the status, as the controller does."""
        number = int(self._is_ready())
        status = {
            "observedGeneration": found["metadata"]["generation"],
            "replicas": int(self._program is not None),
            "updatedReplicas": int(self._program is not None),
            "readyReplicas": number,
            "availableReplicas": number,
        }
        if {name: found.get("status", {}).get(name, 0) for name in status} != status:
            with suppress(Answered):
                self._cluster.call("PATCH", f"{DEPLOYMENT}/status", {"status": status}, MERGE)

    def _is_ready(self) -> bool:
        if self._program is None:
            return False
        try:
            with urllib.request.urlopen(self._probe, timeout=5.0) as found:
                return bool(found.status == 200)
        except HTTPError as error:
            error.close()
        except OSError:
            pass  # it does not listen yet
        return False

    def _empty_namespaces(self) -> None:
        for one in self._cluster.call("GET", "/api/v1/namespaces")["items"]:
            if one["metadata"].get("deletionTimestamp") and one["spec"].get("finalizers"):
                path = f"/api/v1/namespaces/{one['metadata']['name']}/finalize"
                self._cluster.call("PUT", path, {**one, "spec": {}})


def environment(folder: Path, url: str, token: str, cluster: KubernetesCluster) -> dict[str, str]:
    """Return the environment of an administrator's shell: programs, files and variables."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(tool("kubectl"))
    for name, text in (
        ("moorage", f'exec {sys.executable} -m moorage "$@"'),
        ("less", 'exec cat "$@"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (folder / ".kube").mkdir()
    (folder / ".kube" / "config").write_bytes(cluster.admin.read_bytes())
    return {
        "HOME": str(folder),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "MOORAGE_URL": url,
        "MOORAGE_TOKEN": token,
    }
