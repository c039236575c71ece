"""A real API server of Kubernetes and its etcd, on free ports of this machine.

`scripts/kubernetes-tools` builds the programs; `KUBERNETES_TOOLS` names the folder of others than
the newest. There are no nodes and no controllers: Deployments
stay as they are written, and nothing empties a namespace that is deleted. Everything else is real:
etcd, TLS, RBAC, tokens of service accounts, definitions of resources, admission.

`cluster.admin` is the kubeconfig file of a user who may do everything; `kubeconfig_of` makes that
of a service account. Both processes can be killed, stopped with SIGSTOP, and started again at the
same addresses, with what was stored.
"""

import json
import os
import re
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from http.client import HTTPException
from pathlib import Path
from socket import SO_REUSEPORT, SOL_SOCKET, socket
from time import monotonic
from typing import Any
from urllib.error import HTTPError

from tests.support.certificates import certificate
from tests.support.closing import Closing
from tests.support.guard import Guard, ended
from tests.support.kubeconfig import kubeconfig
from tests.support.kubernetes_client import HOSTS, Answered
from tests.support.kubernetes_double import kinds

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("KUBERNETES_TOOLS", ROOT / ".kubernetes-tools" / "current"))
READY_SECONDS = 60.0
POLL_SECONDS = 0.05
LOG_TAIL = 4_000
"""Bytes of a log that an error shows."""

JSON = "application/json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts"


class NoKubernetes(Exception):
    """There is no API server; the message says why."""


def tool(name: str) -> Path:
    """Return a program of `scripts/kubernetes-tools`. Raises NoKubernetes."""
    found = TOOLS / name
    if not found.exists():
        raise NoKubernetes(f"there is no {found}: run `make kubernetes-tools`")
    return found.resolve()


@cache
def minor() -> int:
    """Return 36 for Kubernetes 1.36, as the API server itself says. Raises NoKubernetes."""
    words: list[str | Path] = [tool("kube-apiserver"), "--version"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60.0).stdout
    found = re.fullmatch(r"Kubernetes v1\.(\d+)\.\d+\n", said)
    assert found, said
    return int(found[1])


class Program:
    """A process that can be killed, stopped and started again; its output goes to a file."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.command = [*command]
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of the process that runs."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None:
            return
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._guard = Guard(self._process.pid, "KILL", group=True)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal that ends it, also if it is stopped; return when it has ended."""
        if self._process is None:
            return
        self._guard.close()
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)
        self._process.wait()
        self._process = None

    def freeze(self) -> None:
        """Stop it: it keeps its connections, and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def gone(self, seconds: float) -> bool:
        """Wait for its end for some time; return whether it has ended by itself."""
        descriptor = os.pidfd_open(self.pid)
        try:
            return ended(descriptor, seconds)
        finally:
            os.close(descriptor)

    def said(self) -> str:
        """Return the end of its output."""
        return self.log.read_bytes()[-LOG_TAIL:].decode(errors="replace")


def reserved() -> socket:
    """Return a socket that keeps a free port for programs that share it (SO_REUSEPORT)."""
    made = socket()
    made.setsockopt(SOL_SOCKET, SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", 0))
    return made


@dataclass(frozen=True)
class Another:
    """One more API server of a cluster, with a process and an address of its own."""

    process: Program
    url: str


class KubernetesCluster(Closing):
    """An API server with its etcd. Context manager; both end when this process does.

    `etcd` and `server` are the processes, `url` is the address, `tls` what a client needs that
    trusts it, `token` that of the user who may do everything, `admin` that user's kubeconfig file.
    """

    def __init__(self, folder: Path, *options: str, ready: bool = True) -> None:
        """Start it in an empty folder, and wait until it is ready. Raises NoKubernetes.

        `options` are more options of the API server.
        """
        self.folder = folder
        self._has_kind = False
        etcd, apiserver = tool("etcd"), tool("kube-apiserver")
        self._ports = [reserved() for _ in range(3)]
        store, peer, serve = (one.getsockname()[1] for one in self._ports)
        self.store_url = f"http://127.0.0.1:{store}"
        self.url = f"https://127.0.0.1:{serve}"
        (folder / "tls").mkdir()
        self.trusted = certificate(folder / "tls", "IP:127.0.0.1", "DNS:localhost")
        self.tls: ssl.SSLContext = self.trusted.client()
        self.token = "admin-token"
        (folder / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        stores = self._etcd(f"http://127.0.0.1:{peer}")
        self._options = options
        serves = [*self._apiserver(serve, self.store_url), *options]
        self.etcd = Program([etcd, *stores], folder / "etcd.log")
        self.server = Program([apiserver, *serves], folder / "apiserver.log")
        self.admin = self.kubeconfig_file("admin", self.token)
        try:
            self.etcd.start()
            self.server.start()
            if ready:
                self.wait_ready()
        except BaseException:
            self.close()
            raise

    def _etcd(self, peer: str) -> list[str]:
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={self.store_url}",
            f"--advertise-client-urls={self.store_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--socket-reuse-port",
            # What a killed process has written stays in the memory of the system.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver(self, port: int, store: str) -> list[str]:
        key, public = (self.trusted.folder / name for name in ("key.pem", "cert.pem"))
        return [
            f"--etcd-servers={store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            "--permit-port-sharing",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--tls-cert-file={public}",
            f"--tls-private-key-file={key}",
            f"--cert-dir={self.folder / 'tls'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={key}",
            "--profiling=false",
        ]

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Return when the API server is ready, and serves hosts if it should.

        Raises NoKubernetes.
        """
        until = monotonic() + seconds
        while not (self.is_ready() and (self._has_hosts() or not self._has_kind)):
            if self.server.gone(POLL_SECONDS):
                raise NoKubernetes(f"the API server has ended: {self.server.said()}")
            if monotonic() > until:
                raise NoKubernetes(f"the API server is not ready: {self.server.said()}")

    def start_another(self, store_url: str) -> "Another":
        """Start one more API server, which reaches the same store at some address.

        It is ready, and serves hosts. The caller ends it. Raises NoKubernetes.
        """
        self._ports.append(port := reserved())
        number = port.getsockname()[1]
        words = [*self._apiserver(number, store_url), *self._options]
        log = self.folder / f"apiserver-{number}.log"
        process = Program([tool("kube-apiserver"), *words], log)
        other = Another(process, f"https://127.0.0.1:{number}")
        process.start()
        until = monotonic() + READY_SECONDS
        while not (self.is_ready(other.url) and self._has_hosts(other.url)):
            if process.gone(POLL_SECONDS) or monotonic() > until:
                process.end()
                raise NoKubernetes(f"the other API server is not ready: {process.said()}")
        return other

    def is_ready(self, url: str | None = None) -> bool:
        """Return whether the API server says that it is ready; `url`: another one."""
        try:
            self.raw("GET", "/readyz", seconds=5.0, url=url)
        except (Answered, OSError, HTTPException):
            return False
        return True

    def restart_server(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the API server by a signal, start it again, and wait until it is ready."""
        self.server.end(number)
        self.server.start()
        self.wait_ready()

    def restart_etcd(self) -> None:
        """Kill etcd, start it again, and wait until the API server is ready."""
        self.etcd.end()
        self.etcd.start()
        self.wait_ready()

    def compact(self) -> None:
        """Let etcd forget all versions but the present one."""
        found = self._store("range", {"key": "AA==", "limit": 1})
        self._store("compaction", {"revision": found["header"]["revision"], "physical": True})

    def _store(self, name: str, body: Mapping[str, Any]) -> Any:
        asked = urllib.request.Request(
            f"{self.store_url}/v3/kv/{name}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(asked, timeout=30.0) as answer:
            return json.load(answer)

    def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = JSON,
        seconds: float = 30.0,
        url: str | None = None,
    ) -> bytes:
        """Send a request as the user who may do everything; `url`: to another API server.

        Raises Answered, OSError.
        """
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        asked = urllib.request.Request((url or self.url) + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=seconds, context=self.tls) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            with error:
                text = error.read().decode()
            is_object = text.startswith("{")
            raise Answered(error.code, json.loads(text) if is_object else text) from None

    def call(self, method: str, path: str, body: Any = None, kind: str = JSON) -> Any:
        """Send an object as `raw` does; return the object in the answer."""
        return json.loads(
            self.raw(method, path, None if body is None else json.dumps(body).encode(), kind)
        )

    def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def serve_hosts(self) -> None:
        """Define BareMetalHosts; return when they are served."""
        self.call("POST", CRDS, kinds.definition(kinds.HOSTS))
        self._has_kind = True
        self.wait_ready()

    def _has_hosts(self, url: str | None = None) -> bool:
        with suppress(Answered, OSError, HTTPException):
            self.raw("GET", f"{HOSTS}/baremetalhosts", url=url)
            return True
        return False

    def account_token(self, namespace: str, name: str) -> str:
        """Return a new token of a service account that there is."""
        path = f"{ACCOUNTS.format(namespace)}/{name}/token"
        wanted = {"spec": {"expirationSeconds": 3_600}}
        return str(self.call("POST", path, wanted)["status"]["token"])

    def kubeconfig_of(self, namespace: str, name: str, url: str | None = None) -> Path:
        """Write the kubeconfig file of a service account; return its path; `url` as below."""
        token = self.account_token(namespace, name)
        return self.kubeconfig_file(f"{namespace}-{name}", token, url)

    def kubeconfig_file(self, name: str, token: str, url: str | None = None) -> Path:
        """Write a kubeconfig file with a token; return its path; `url`: of what stands before."""
        path = self.folder / f"{name}.kubeconfig"
        trusted = {"certificate-authority-data": self.trusted.bundle}
        found = {
            "apiVersion": "v1",
            "kind": "Config",
            **kubeconfig(url or self.url, {"token": token}, **trusted),
        }
        path.write_text(json.dumps(found))
        path.chmod(0o600)
        return path

    def kubectl(
        self, *words: str, text: str | None = None, config: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, with a text on its standard input; by default as the administrator."""
        run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=120.0)
        options = ["--kubeconfig", str(config or self.admin)]
        return run(
            [tool("kubectl"), *options, *words],
            input=text or "",
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"]},
        )

    def close(self) -> None:
        """End both processes."""
        self.server.end()
        self.etcd.end()
        for one in self._ports:
            one.close()
