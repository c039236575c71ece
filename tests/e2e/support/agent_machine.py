"""A machine whose real agent reads a kernel in a folder, beside a real server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.cli.command import answer, moorage, write_private
from tests.client.single import BARE, ROOT
from tests.e2e.support.machine import AGENT, PAGES, Machine
from tests.support.alert_rules import read_by
from tests.support.fake_kernel import KB_OF, FakeKernel

PROGRAM = """
import sys
from pathlib import Path
from moorage.client.agent.run import run_agent
from moorage.client.main import _parser
from moorage.client.run.progress import Progress
from tests.support.fake_kernel import FakeKernel

words = vars(_parser(sys.argv[2:]).parse_args(sys.argv[2:]))
sys.exit(run_agent(words, Progress(), FakeKernel(Path(sys.argv[1]))))
"""
"""The agent's program with a kernel that can be short of memory."""


class AgentMachine(Machine):
    """A machine in a folder, the server of its fleet, and the operator's command line."""

    def __init__(self, folder: Path, gib: int) -> None:
        super().__init__(folder, "--no-access-log")
        self._folder = folder
        self._gib = gib
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "moorage.toml").write_text(f'database = "sqlite:///{folder / "m.sqlite"}"\n')
        self.kernel = FakeKernel.made(folder / "machine", {0: gib})
        self.reboot()
        self._token = folder / "token"
        write_private(self._token, self.agent)
        self.run("agent", "create", AGENT)

    def reboot(self) -> None:
        """Boot the kernel: its pools are empty. The agent must not run, and is not started."""
        assert self._process is None
        self.boot = self.kernel.boot()

    def room(self, pages: int) -> None:
        """Let something else use the memory, except that of this many pages."""
        self.kernel.change(elsewhere=(self._gib << 20) - pages * KB_OF["2MB"])

    def start(self) -> None:
        """Start the agent."""
        places = [
            *("--sysfs", str(self._folder / "machine/sys")),
            *("--procfs", str(self._folder / "machine/proc")),
            *("--lock-file", str(self._folder / "lock")),
        ]
        words = ["agent", "run", "--reservoir", "hugepages", "--agent-id", AGENT, *places]
        words += ["--url", self.server.url, "--token-file", str(self._token)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self._folder / "machine"), *words],
            env={**BARE, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """Kill the agent if it runs, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def run(self, *words: str) -> Any:
        """Run a command of an operator; return its JSON."""
        return answer(*words, directory=self._folder)

    def explained(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `moorage explain`."""
        return moorage("explain", *words, directory=self._folder)

    def shown(self) -> Any:
        """Return the agent as an operator sees it."""
        return self.run("agent", "show", AGENT)

    def pages(self) -> Any:
        """Return the pages as an operator sees them."""
        return self.shown()["parts"][0]["classes"][PAGES]

    def offered(self) -> int:
        """Return how many pages are offered; fail if they are not there.

        Between a boot and the first message of its agent, nobody can know that they are gone.
        """
        shown = self.shown()
        offered: int = shown["parts"][0]["classes"][PAGES]["offered"]
        if shown["boot_id"] == self.boot:
            assert offered <= self.kernel.pool("2MB")["nr"]
        return offered

    def alarm(self, alert: str) -> float:
        """Return the sum of what the condition of an alert reads now: above 0, it fires."""
        with urlopen(f"{self.server.url}/metrics") as answered:
            return sum(read_by(alert, answered.read().decode()))

    def wait(self, consumer: str, timeout: str) -> int:
        """Ask whether a consumer may start; return the exit code of `moorage agent wait`."""
        return moorage(
            *("agent", "wait", "--consumer", consumer, "--timeout", timeout),
            *("--agent-id", AGENT, "--procfs", str(self._folder / "machine/proc")),
            *("--url", self.server.url, "--token-file", str(self._token)),
            directory=self._folder,
        ).returncode


@contextmanager
def agent_machine(folder: Path, gib: int = 16) -> Iterator[AgentMachine]:
    """Provide a machine and its server; the agent does not run yet, and is killed at the end."""
    machine = AgentMachine(folder, gib)
    with machine.server:
        try:
            yield machine
        finally:
            machine.kill()
