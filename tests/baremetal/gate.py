"""A gate before a real Ironic: unmodified clients, and spellings that must not slip through."""

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import openstack

from moorage.integrations.ironic.states import BUSY
from tests.e2e.support.server import Server, serve
from tests.integrations.ironic.gate.gates import READY
from tests.integrations.ironic.gate.hostile import HOSTILE
from tests.support.ironic import ROOT, Ironic
from tests.support.suites import print_line

MOORAGE = (str(ROOT / ".venv/bin/python"), "-m", "moorage")
LIMIT = 2
CHANGE_SECONDS = 120
UNDERSTOOD = b"requested action"


class Observer:
    """Counts busy nodes until closed; `most` is the largest number."""

    def __init__(self, ironic: Ironic) -> None:
        self._ironic = ironic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.most = 0
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            busy = sum(state in BUSY for state in self._ironic.states().values())
            self.most = max(self.most, busy)

    def close(self) -> None:
        """Stop counting."""
        self._over.set()
        self._thread.join()


@contextmanager
def gate(ironic: str, folder: Path) -> Iterator[Server]:
    """Start Moorage and a gate with a pool of LIMIT units."""
    database = folder / "moorage.sqlite"
    with serve(database, moorage=MOORAGE) as server:

        def administer(*words: str) -> str:
            command = [*MOORAGE, *words, "--database", f"sqlite:///{database}"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return done.stdout.strip()

        administer("pool", "create", "deploy", "--limit", str(LIMIT), "--expire", "keep")
        token = administer(
            *("token", "create", "--name", "gate", "--role", "governor", "--for", "pool=deploy")
        )
        command = [*MOORAGE, "gate", "--ironic", ironic, "--pool", "deploy"]
        command += ["--listen", "127.0.0.1:0", "--url", server.url, "--token", token]
        with Server(command, ready=READY) as made:
            yield made


def check_limit(ironic: Ironic, url: str) -> None:
    """All nodes are deployed by the SDK at once: no error, and never more than LIMIT are busy."""
    names = list(ironic.states())
    observer = Observer(ironic)

    def deploy(name: str) -> None:
        nodes = openstack.connect(auth_type="none", endpoint=url).baremetal
        nodes.set_node_provision_state(name, "active")
        nodes.wait_for_nodes_provision_state([name], "active", timeout=CHANGE_SECONDS)

    try:
        with ThreadPoolExecutor(len(names)) as clients:
            list(clients.map(deploy, names))
    finally:
        observer.close()
    assert set(ironic.states().values()) == {"active"}
    assert 0 < observer.most <= LIMIT, f"{observer.most} nodes were busy at once"
    nodes = openstack.connect(auth_type="none", endpoint=url).baremetal
    for name in names:
        nodes.set_node_provision_state(name, "deleted")
    nodes.wait_for_nodes_provision_state(names, "available", timeout=CHANGE_SECONDS)


def check_hostile(ironic: str, gate: str) -> int:
    """Nothing of the table reaches Ironic; return how many of it Ironic itself would execute."""
    executed = 0
    for name, sent in HOSTILE.items():
        executed += UNDERSTOOD in _answer(ironic, sent)
        answer = _answer(gate, sent)
        assert UNDERSTOOD not in answer, f"{name}: {answer!r}"
        assert answer[9:12] in (b"", b"400", b"404"), f"{name}: {answer!r}"
    return executed


def _answer(url: str, sent: bytes) -> bytes:
    """Return what a server answers to bytes, after which the client has nothing more to say."""
    parts = urlsplit(url)
    found = b""
    with create_connection((parts.hostname, parts.port), timeout=2.0) as client:
        client.sendall(sent)
        try:
            while piece := client.recv(65_536):
                found += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return found


def check_gate(ironic: Ironic, folder: Path) -> None:
    """Try the gate before an Ironic whose nodes are available."""
    with gate(ironic.url, folder) as made:
        check_limit(ironic, made.url)
        ironic.ask("node-1", "manage")
        executed = check_hostile(ironic.url, made.url)
    print_line(
        f"e2e: baremetal: {len(HOSTILE)} ambiguous requests are refused; Ironic would execute "
        f"{executed} of them"
    )
