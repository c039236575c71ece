"""Runs the containers of pods as processes of this machine, as a kubelet would run them.

Each volume is a folder, in place of whose mount path its own path stands in commands and variables;
ports are free ones. Nothing else is changed: a process gets no variable that its container does not
have. The folder of a claim has the mode that a kubelet gives it for an `fsGroup`, and keeps its
files from one pod to the next.
"""

import os
import re
import ssl
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

from tests.e2e.support.server import Server
from tests.e2e.support.typed import free_port
from tests.kubernetes.chart.helm import Object, named

GROUP = 65_532
LISTEN = re.compile(r"(0\.0\.0\.0|\[::\]):(\d+)")
READY = re.compile(r"moorage: (?:serving|gate|governing|answering reviews on) (?P<url>\S+)")
PROGRAMS = {"moorage": [sys.executable, "-m", "moorage"], "python3": [sys.executable]}

Stored = Mapping[str, Mapping[str, str]]
"""The contents of Secrets and ConfigMaps, by kind and name."""


class Pod:
    """A pod of a workload. `start` starts its container; `execute` runs a command beside it."""

    def __init__(
        self,
        objects: list[Object],
        workload: str,
        folder: Path,
        stored: Stored,
        *,
        variables: Mapping[str, str] | None = None,
        addresses: Mapping[str, str] | None = None,
        ports: dict[str, int] | None = None,
    ) -> None:
        """Make its volumes in a folder, in which those of claims may be already.

        Args:
            objects: of the release.
            workload: kind and name of what makes the pod.
            folder: for the volumes.
            stored: what else there is in the namespace.
            variables: those that stand for what a kubelet mounts.
            addresses: those that only a cluster can resolve, with what stands for them.
            ports: of an earlier pod of this workload, to have the same.
        """
        self._spec: Object = named(objects, workload)["spec"]["template"]["spec"]
        (self.container,) = self._spec["containers"]
        self._stored = {
            **stored,
            **{
                f"ConfigMap/{one['metadata']['name']}": one["data"]
                for one in objects
                if one["kind"] == "ConfigMap"
            },
        }
        self._folder = folder
        self._more, self._addresses = variables or {}, addresses or {}
        self._volumes = {
            volume["name"]: self._volume(volume) for volume in self._spec.get("volumes", [])
        }
        self._ports = {} if ports is None else ports

    def _volume(self, volume: Object) -> Path:
        if "persistentVolumeClaim" in volume:
            made: Path = self._folder / volume["persistentVolumeClaim"]["claimName"]
            if not made.exists():
                made.mkdir()
                if os.geteuid() == 0:
                    os.chown(made, 0, GROUP)
                made.chmod(0o2775)
            return made
        number = sum(1 for _ in self._folder.iterdir())
        made = self._folder / f"{volume['name']}-{number}"
        made.mkdir()
        if "emptyDir" in volume:
            return made
        source = volume.get("secret") or volume["configMap"]
        kind = "Secret" if "secret" in volume else "ConfigMap"
        name = source.get("secretName") or source["name"]
        if source.get("optional") and f"{kind}/{name}" not in self._stored:
            return made
        content = self._stored[f"{kind}/{name}"]
        items = source.get("items") or [{"key": key, "path": key} for key in content]
        for item in items:
            (made / item["path"]).write_text(content[item["key"]])
        return made

    def _local(self, container: Object, text: str) -> str:
        """Return a text of the container with the paths and ports of this machine."""
        mounts = {
            one["mountPath"]: self._volumes[one["name"]]
            for one in container.get("volumeMounts", [])
        }
        found = text
        if mounts:
            longest = sorted(mounts, key=len, reverse=True)
            paths = re.compile(f'({"|".join(map(re.escape, longest))})(?=/|"|$)')
            found = paths.sub(lambda hit: str(mounts[hit[1]]), text)
        for address, local in self._addresses.items():
            found = found.replace(address, local)
        return LISTEN.sub(lambda hit: f"{hit[1]}:{self.port(hit[2])}", found)

    def port(self, number: str | int) -> int:
        """Return the port of this machine for one of the container."""
        return self._ports.setdefault(str(number), free_port())

    def variables(self) -> dict[str, str]:
        """Return the variables of the process."""
        found = {"PATH": os.environ["PATH"], **self._more}
        for mount in self.container.get("volumeMounts", []):
            if mount["mountPath"] == "/tmp":
                found["TMPDIR"] = str(self._volumes[mount["name"]])
        for one in self.container.get("env", []):
            if "valueFrom" in one:
                reference = one["valueFrom"]["secretKeyRef"]
                found[one["name"]] = self._stored[f"Secret/{reference['name']}"][reference["key"]]
            else:
                found[one["name"]] = self._local(self.container, one.get("value", ""))
        return found

    def prepare(self) -> None:
        """Run the init containers."""
        for one in self._spec.get("initContainers", []):
            command = [self._local(one, word) for word in one["command"]]
            subprocess.run(
                [*PROGRAMS[command[0]], *command[1:]],
                env={"PATH": os.environ["PATH"]},
                check=True,
            )

    def start(self) -> Server:
        """Start the container; return its process when it is ready. Raises NotStarted."""
        return Server(self.command(), self.variables(), self._folder, READY)

    def command(self) -> list[str]:
        """Return the command of the container."""
        words = [self._local(self.container, word) for word in self.container["command"]]
        return [*PROGRAMS[words[0]], *words[1:]]

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the container until it ends."""
        return self.execute(*self.container["command"])

    def execute(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container."""
        local = [self._local(self.container, word) for word in words]
        return subprocess.run(
            [*PROGRAMS[local[0]], *local[1:]],
            cwd=self._folder,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )

    def probe(self, name: str) -> int:
        """Ask a probe as a kubelet does, which calls the pod by its address; return the status."""
        asked = self.container[name]["httpGet"]
        scheme = asked.get("scheme", "HTTP")
        return self.status(asked["port"], asked["path"], scheme, "10.244.1.7")

    def status(self, port: str, path: str, scheme: str, host: str) -> int:
        """Return the status of the answer to a request for a host, at a port by its name."""
        (number,) = (one["containerPort"] for one in self.container["ports"] if one["name"] == port)
        address = ("127.0.0.1", self.port(number))
        connection: HTTPConnection
        if scheme.upper() == "HTTPS":
            unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
            connection = HTTPSConnection(*address, timeout=30.0, context=unverified)
        else:
            connection = HTTPConnection(*address, timeout=30.0)
        try:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status
        finally:
            connection.close()


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a command has printed; it must have succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def asked(url: str, token: str, *words: str, authority: Path | None = None) -> str:
    """Run `moorage` as a client of a server, which an authority vouches for; return its output."""
    variables = {"PATH": os.environ["PATH"], "MOORAGE_URL": url, "MOORAGE_TOKEN": token}
    if authority is not None:
        variables["SSL_CERT_FILE"] = str(authority)
    command = [*PROGRAMS["moorage"], *words]
    return said(subprocess.run(command, env=variables, capture_output=True, text=True, check=False))
