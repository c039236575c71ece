"""A real OpenStack Ironic with fake hardware: for tests, and for `make ironic`.

One process is API and conductor, without Keystone and without a message queue. Its configuration,
its SQLite database and its log are in one folder. Standard library only: other environments use it.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.support.closing import Closing
from tests.support.guard import Guard, ended

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / ".venv-ironic/bin"

CONFIGURATION = "ironic.conf"
OPTIONS = ("--config-file", CONFIGURATION)
DATABASE = "ironic.sqlite"
LOG = "ironic.log"
API_VERSION = "1.95"
READY_SECONDS = 60.0
STOP_SECONDS = 15.0
PROGRESS_SECONDS = 60.0
"""The longest time in which an enrolment may change nothing."""
PAUSE_SECONDS = 0.1
ANSWER_SECONDS = 30.0

DELAYS = (
    *("bios", "boot", "deploy", "firmware", "inspect", "management"),
    *("power", "raid", "rescue", "storage", "vendor"),
)
"""The operations of the fake hardware that can take time."""

INTERFACES = {
    **dict.fromkeys(("bios", "boot", "deploy", "firmware", "management", "power"), "fake"),
    **{name: f"no-{name}" for name in ("console", "inspect", "raid", "rescue", "vendor")},
    **dict.fromkeys(("network", "storage"), "noop"),
}
"""Without those of BIOS and firmware, Ironic would log a warning for each node."""

HARDWARE = {
    "driver": "fake-hardware",
    "properties": {"cpus": 8, "memory_mb": 16_384, "local_gb": 100, "cpu_arch": "x86_64"},
}

ENROLLING = {"enroll": "manage", "manageable": "provide"}
"""What brings a node that is not yet available to its next state."""
UNFINISHED = ("", "verifying", "cleaning", *ENROLLING)
"""A node is missing, or passes through one of these states until it is available."""
BUSY = (409, 503)
"""The node is locked, or all workers are busy: ask again."""


class NoIronic(Exception):
    """There is no Ironic, or it does not start; the message says why."""


@dataclass(frozen=True)
class Setup:
    """How an Ironic is set up.

    `delays` are seconds for each of DELAYS that is not instantaneous: a whole number, or two for a
    random time between them (`3,6`). Ironic applies that of `deploy` twice to each deployment.
    `max_concurrent_deploy` is Ironic's own limit, `workers` the number of its threads. `cleaning`
    cleans nodes before they become available. `port` 0 chooses a free one. `options` are added to
    the sections of the configuration, or replace what is there.
    """

    nodes: int = 50
    delays: Mapping[str, str] = field(default_factory=lambda: {"deploy": "3"})
    max_concurrent_deploy: int = 1_000
    workers: int = 300
    cleaning: bool = False
    resource_class: str = "baremetal"
    port: int = 0
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def configuration(port: int, setup: Setup) -> dict[str, dict[str, str]]:
    """Return the sections of Ironic's configuration file; `port` is that of its API.

    Paths are relative to the folder: Ironic would substitute a `$` in its name.
    """
    interfaces = {f"enabled_{kind}_interfaces": name for kind, name in INTERFACES.items()}
    sections = {
        "DEFAULT": {
            "auth_strategy": "noauth",
            "rpc_transport": "none",
            "host": "moorage",
            "my_ip": "127.0.0.1",
            "state_path": ".",
            "tempdir": ".",
            "log_file": LOG,
            "use_stderr": "false",
            "enabled_hardware_types": "fake-hardware",
            **interfaces,
        },
        "api": {
            "host_ip": "127.0.0.1",
            "port": str(port),
            "max_limit": str(max(1_000, setup.nodes)),
        },
        "conductor": {
            "automated_clean": str(setup.cleaning),
            "max_concurrent_clean": "1000",
            "max_concurrent_deploy": str(setup.max_concurrent_deploy),
            "sync_power_state_interval": "0",
            "workers_pool_size": str(setup.workers),
        },
        "database": {"connection": f"sqlite:///{DATABASE}"},
        "fake": {f"{kind}_delay": delay for kind, delay in setup.delays.items()},
        "oslo_concurrency": {"lock_path": "locks"},
    }
    for name, options in setup.options.items():
        sections[name] = {**sections.get(name, {}), **options}
    return sections


class Ironic(Closing):
    """One Ironic in a folder, with nodes named node-1 to node-N. Context manager.

    It ends when this process does, in any way. `url` is its address, also after another `start`.
    """

    def __init__(
        self,
        folder: Path | None = None,
        setup: Setup | None = None,
        programs: Path = PROGRAMS,
    ) -> None:
        """Start it, and enrol the nodes that the folder's database does not have yet.

        Without `folder` it is a temporary one that `close` removes. `programs` is the `bin` of an
        environment with Ironic.

        Raises:
            NoIronic: it is not installed, does not start, or refuses a node.
        """
        if not (programs / "ironic").exists():
            raise NoIronic(f"there is no {programs / 'ironic'}; build it with `make environments`")
        self._temporary = folder is None
        self.folder = (folder or Path(tempfile.mkdtemp(prefix="moorage-ironic-"))).resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / LOG
        self.setup = setup or Setup()
        self._programs = programs.absolute()
        self._reserved = socket()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.url = f"http://127.0.0.1:{self._reserve(self.setup.port)}"
            self.start()
        except BaseException:
            self.close()
            raise

    def _reserve(self, port: int) -> int:
        """Keep a port free for each start, by a socket that is bound and never listens."""
        self._reserved.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        try:
            self._reserved.bind(("127.0.0.1", port))
        except OSError as error:
            raise NoIronic(f"port {port}: {error.strerror}") from error
        found: int = self._reserved.getsockname()[1]
        return found

    def start(self, setup: Setup | None = None) -> None:
        """Start it again after `stop` or `kill`, on its database and at its address.

        `setup` replaces the earlier one, except for the port. Raises NoIronic.
        """
        self.setup = setup or self.setup
        with (self.folder / "lock").open("a") as lock:
            self._lock(lock.fileno())
            self._configure()
            self._launch(lock.fileno())
        # From here on, only Ironic's own processes hold the lock.
        try:
            self._until_ready()
            self._enrol()
        except BaseException:
            self.kill()
            raise

    def _lock(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NoIronic(f"another Ironic is using {self.folder}") from None

    def _configure(self) -> None:
        """Write the configuration, and create the database if there is none."""
        database = self.folder / DATABASE
        port = self._reserved.getsockname()[1]
        parser = RawConfigParser(default_section="")
        parser.read_dict(configuration(port, self.setup))
        with (self.folder / CONFIGURATION).open("w") as out:
            parser.write(out)
        if not database.exists():
            fresh = database.with_suffix(".new")
            fresh.unlink(missing_ok=True)
            self._create(fresh)
            # Renamed when complete: an interrupted start leaves no half of a schema.
            fresh.rename(database)

    def _create(self, database: Path) -> None:
        done = subprocess.run(
            [self._programs / "ironic-dbsync", *OPTIONS, "create_schema"],
            env={**os.environ, "OS_DATABASE__CONNECTION": f"sqlite:///{database.name}"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoIronic(f"ironic-dbsync failed: {done.stderr[-2_000:]}")

    def _launch(self, lock: int) -> None:
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [self._programs / "ironic", *OPTIONS],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                start_new_session=True,
            )
        # Not only the parent: its worker outlives it, and would go on deploying.
        self._guard = Guard(self._process.pid, "KILL", group=True)
        self._end = os.pidfd_open(self._process.pid)

    def _until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            if ended(self._end, PAUSE_SECONDS) or time.monotonic() > deadline:
                raise NoIronic(f"Ironic does not answer; its log ends with:\n{self._tail()}")

    def _answers(self) -> bool:
        try:
            return self.send("GET", "/v1")[0] == 200
        except OSError:
            return False

    def _tail(self) -> str:
        logs = (self.folder / "output.log", self.log)
        return "\n".join(log.read_text()[-2_000:] for log in logs if log.exists())

    def _enrol(self) -> None:
        """Create the missing nodes, and make available those that are not enrolled completely."""
        deadline, before = 0.0, None
        while todo := self._unfinished():
            if todo != before:
                before, deadline = todo, time.monotonic() + PROGRESS_SECONDS
            for name, state in todo.items():
                self._advance(name, state)
            if ended(self._end, PAUSE_SECONDS) or time.monotonic() > deadline:
                raise NoIronic(f"no progress of {todo}; the log ends with:\n{self._tail()}")

    def _unfinished(self) -> dict[str, str]:
        """Return the states of the nodes that are missing, or not enrolled completely."""
        now = self.states()
        names = [f"node-{number}" for number in range(1, self.setup.nodes + 1)]
        states = {name: now.get(name, "") for name in names}
        return {name: state for name, state in states.items() if state in UNFINISHED}

    def _advance(self, name: str, state: str) -> None:
        """Send what brings a node to its next state, unless it is on its way. Raises NoIronic."""
        status, answer = 200, None
        if not state:
            body = {"name": name, "resource_class": self.setup.resource_class, **HARDWARE}
            status, answer = self.send("POST", "/v1/nodes", body)
        elif state in ENROLLING:
            status, answer = self.ask(name, ENROLLING[state])
        if status >= 400 and status not in BUSY:
            raise NoIronic(f"Ironic refuses {name} with {status}: {answer}")

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return the status and the JSON of the answer.

        Raises:
            OSError: there is no answer.
        """
        headers = {
            "Content-Type": "application/json",
            "X-OpenStack-Ironic-API-Version": API_VERSION,
        }
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, headers, method=method)
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def ask(self, node: str, target: str) -> tuple[int, Any]:
        """Ask for a change of a node's provision state: `active`, `deleted`, `manage` ..."""
        return self.send("PUT", f"/v1/nodes/{node}/states/provision", {"target": target})

    def states(self) -> dict[str, str]:
        """Return the provision state of every node by its name, or by its UUID if it has none."""
        status, answer = self.send("GET", "/v1/nodes?fields=uuid,name,provision_state")
        if status != 200:
            raise NoIronic(f"Ironic does not list its nodes: {status} {answer}")
        return {node["name"] or node["uuid"]: node["provision_state"] for node in answer["nodes"]}

    def pause(self, seconds: float) -> None:
        """Let a moment pass, as clients that ask again do; less if Ironic ends."""
        ended(self._end, seconds)

    def wait(self) -> str:
        """Wait until Ironic ends by itself; return the end of its log."""
        ended(self._end, None)
        return self._tail()

    def stop(self) -> None:
        """Stop it in order: it waits a while for the work that is under way."""
        if self._process is not None:
            self._process.terminate()
            ended(self._end, STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill all its processes at once, as a crash would; return when all of them are gone."""
        if self._process is None:
            return
        # Until `wait`, the number of the process, and so of its group, belongs to nobody else.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._guard.close()
        self._process.wait()
        os.close(self._end)
        self._process = None
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """End it; remove its folder if it is a temporary one."""
        self.kill() if self._temporary else self.stop()
        self._reserved.close()
        if self._temporary:
            shutil.rmtree(self.folder)
