"""The real agent of a machine, whose kernel is a folder, beside a real server."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from platform import node
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID, uuid4, uuid5

import pytest

from tests.cli.command import answer, moorage
from tests.client.single import BARE, ROOT
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import Server, serve
from tests.support.fake_kernel import FakeKernel

AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
NUMA0 = str(uuid5(UUID(AGENT), "numa0"))
SMALL = "CUSTOM_HUGEPAGES_2MB"

PROGRAM = """
import sys
from pathlib import Path
from moorage.client.agent.run import run_agent
from moorage.client.main import _parser
from moorage.client.run.progress import Progress
from tests.support.fake_kernel import FakeKernel

words = vars(_parser().parse_args(sys.argv[2:]))
sys.exit(run_agent(words, Progress(), FakeKernel(Path(sys.argv[1]))))
"""
"""The agent's program with a kernel that can be short of memory."""


class Machine:
    """A machine in a folder, the server of its fleet, and the operator's command line."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.server = server
        self.kernel = FakeKernel.made(folder / "machine")
        self.token = folder / "token"
        self.run("agent", "create", AGENT)
        made = self.run(
            "token", "create", "--name", "m", "--role", "agent", "--for", f"agent={AGENT}"
        )
        self.token.write_text(made["token"])
        self.token.chmod(0o600)

    def run(self, *words: str) -> Any:
        """Run a command of an operator; return its JSON."""
        return answer(*words, directory=self.folder)

    def agent(self) -> Any:
        """Return the agent as the server shows it."""
        return self.run("agent", "show", AGENT)

    def pages(self) -> Any:
        """Return the pages as the server shows them."""
        return self.agent()["parts"][0]["classes"][SMALL]

    def start(self) -> "subprocess.Popen[str]":
        """Start the agent."""
        places = [
            *("--sysfs", str(self.folder / "machine/sys")),
            *("--procfs", str(self.folder / "machine/proc")),
            *("--lock-file", str(self.folder / "lock")),
        ]
        words = ["agent", "run", "--reservoir", "hugepages", "--agent-id", AGENT, *places]
        words += ["--url", self.server.url, "--token-file", str(self.token)]
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.folder / "machine"), *words],
            env={**BARE, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def wait(self, consumer: str, timeout: str) -> int:
        """Ask whether a consumer may start; return the exit code of `moorage agent wait`."""
        return moorage(
            *("agent", "wait", "--consumer", consumer, "--timeout", timeout),
            *("--agent-id", AGENT, "--procfs", str(self.folder / "machine/proc")),
            *("--url", self.server.url, "--token-file", str(self.token)),
            directory=self.folder,
        ).returncode

    def claim(self, pages: int) -> tuple[str, int]:
        """Claim pages for a new consumer; return it and the status."""
        consumer = str(uuid4())
        body = {
            "allocations": {NUMA0: {"resources": {SMALL: pages}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        secret = (self.folder / "moorage.sqlite.token").read_text().strip()
        request = Request(
            f"{self.server.url}/allocations/{consumer}",
            json.dumps(body).encode(),
            {
                "X-Auth-Token": secret,
                "Content-Type": "application/json",
                "OpenStack-API-Version": "placement 1.38",
            },
            method="PUT",
        )
        try:
            with urlopen(request) as answered:
                return consumer, answered.status
        except HTTPError as refused:
            return consumer, refused.code


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Provide a machine and a server that knows its agent."""
    database = tmp_path / "moorage.sqlite"
    (tmp_path / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        yield Machine(tmp_path, server)


def until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something is so."""
    eventually(lambda: is_so() or None, seconds)


def ended(agent: "subprocess.Popen[str]") -> None:
    """Kill the agent, as a power cut would."""
    agent.kill()
    agent.wait()


def test_a_machine_offers_what_it_has(machine: Machine) -> None:
    """Pages are prepared and offered; after a boot nothing starts before they are there again."""
    agent = machine.start()
    try:
        until(lambda: machine.agent()["readiness"] == "ready")
        machine.run("agent", "set-desired", AGENT, SMALL, "1024")
        until(lambda: machine.pages()["offered"] == 1024)
        assert machine.kernel.pool("2MB")["nr"] == 1024
        guest, status = machine.claim(800)
        assert status == 204
        assert machine.claim(300)[1] == 409
        assert machine.wait(guest, "5s") == 0
        ended(agent)
        machine.kernel.boot()
        assert machine.wait(guest, "1s") == 4, "the server knows only the boot before"
        agent = machine.start()
        assert machine.wait(guest, "20s") == 0
        assert machine.kernel.pool("2MB")["nr"] >= 800
        assert machine.wait(str(uuid4()), "1s") == 4, "it holds nothing here"
    finally:
        ended(agent)


def test_a_reservoir_that_fails_is_seen_and_offers_nothing(machine: Machine) -> None:
    """One report after the failure the operator sees it, and nothing more is placed there."""
    machine.kernel.change(read_only=True)
    agent = machine.start()
    try:
        until(lambda: machine.agent()["phase"] == "done")
        machine.run("agent", "set-desired", AGENT, SMALL, "512")
        until(lambda: machine.agent()["readiness"] == "failed")
        shown = machine.agent()
        assert shown["failure"] is not None
        assert machine.pages()["offered"] == 0
        assert machine.claim(1)[1] == 409
        assert [one["id"] for one in machine.run("agent", "list", "--not-offered")] == [AGENT]
        explained = moorage("explain", f"{SMALL}=512", directory=machine.folder)
        assert explained.returncode == 1
        (named,) = [line for line in explained.stdout.splitlines() if AGENT in line]
        failure = shown["failure"]["message"]
        assert named.split("\t") == [f"  {AGENT}", node(), SMALL, "failed", failure]
        machine.kernel.change(read_only=False)
    finally:
        ended(agent)


def test_a_silent_agent_offers_nothing(machine: Machine) -> None:
    """An agent that is killed is withdrawn within 25 seconds; its allocations stay."""
    agent = machine.start()
    try:
        until(lambda: machine.agent()["readiness"] == "ready")
        machine.run("agent", "set-desired", AGENT, SMALL, "512")
        until(lambda: machine.pages()["offered"] == 512)
        assert machine.claim(100)[1] == 204
    finally:
        ended(agent)
    until(lambda: machine.agent()["liveness"] == "late", seconds=25.0)
    assert (machine.pages()["offered"], machine.pages()["used"]) == (0, 100)
    assert machine.claim(1)[1] == 409
