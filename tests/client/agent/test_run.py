"""`moorage agent run` as a process: the single file, against a server over HTTP.

Plain files below `--sysfs` are a kernel that grants every page. Where a test needs one that does
not, the process runs with a `FakeKernel`.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4, uuid5

import pytest

from moorage import __version__
from moorage.client.agent.hugepages import HugePages, provider_of
from moorage.client.agent.identity import boot_of
from moorage.client.agent.kernel_files import KernelFiles
from moorage.client.run.clock import elapsed
from moorage.wire.fleet import ReportRequest
from tests.client.agent.fleet_server import Served, serving
from tests.client.single import BARE, ROOT, SECONDS, Started, finished, started
from tests.support.fake_kernel import FakeKernel
from tests.support.real_hugepages import real_pool

AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
NUMA0 = str(uuid5(UUID(AGENT), "numa0"))
SMALL = "CUSTOM_HUGEPAGES_2MB"

SLOW = """
import os, sys
from pathlib import Path
from moorage.client.agent.run import run_agent
from moorage.client.main import _parser
from moorage.client.run.progress import Progress
from tests.support.fake_kernel import FakeKernel

class Kernel(FakeKernel):
    def write(self, path, text):
        if gate.exists():
            with open(gate) as opened:  # blocks until the test opens the other end
                opened.read()
        super().write(path, text)

folder = Path(sys.argv[1])
gate = folder / "gate"
words = vars(_parser(sys.argv[2:]).parse_args(sys.argv[2:]))
sys.exit(run_agent(words, Progress(), Kernel(folder)))
"""
"""The program with a kernel that can be short of memory, and waits at a gate if there is one."""


class Host:
    """A machine in a folder, and the command line of its agent."""

    def __init__(self, folder: Path, served: Served) -> None:
        self.folder = folder
        self.kernel = FakeKernel.made(folder / "machine")
        self.served = served
        self.token = folder / "token"
        self.token.write_text("first\n")

    def words(self, *more: str) -> list[str]:
        """Return the arguments of an agent."""
        places = {"--sysfs": "machine/sys", "--procfs": "machine/proc", "--lock-file": "run/lock"}
        given = [word for name, path in places.items() for word in (name, str(self.folder / path))]
        server = ["--url", self.served.url, "--token-file", str(self.token)]
        return ["agent", "run", "--reservoir", "hugepages", *given, *server, *more]

    def start(self, *more: str) -> Started:
        """Start the single file on plain files."""
        return started(*self.words("--agent-id", AGENT, *more))

    def start_on_fake_kernel(self) -> Started:
        """Start the program on the fake kernel."""
        words = self.words("--agent-id", AGENT)
        return Started(
            [sys.executable, "-c", SLOW, str(self.folder / "machine"), *words],
            env={**BARE, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def small_pages(self) -> int:
        """Return the number of pages of 2 MiB that the plain files show."""
        folder = self.folder / "machine/sys/devices/system/node/node0/hugepages"
        return int((folder / "hugepages-2048kB/nr_hugepages").read_text())


@pytest.fixture
def served() -> Iterator[Served]:
    """Provide a server."""
    with serving() as served:
        served.fleet.next_in = 0.2
        yield served
        assert served.most_at_once <= 1


@pytest.fixture
def host(tmp_path: Path, served: Served) -> Host:
    """Provide a machine."""
    return Host(tmp_path, served)


def ended(process: Started, number: int | None = None) -> tuple[int, str]:
    """Send a signal if one is given; return the exit code and the standard error."""
    if number is not None:
        process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors


def reported(served: Served, pages: int, phase: str = "done") -> bool:
    """Return whether the server has a report of this many pages of 2 MiB."""
    report = served.fleet.report
    return report is not None and report.phase == phase and small(report) == pages


def small(report: ReportRequest) -> int:
    """Return the pages of 2 MiB in a report."""
    return report.actual[NUMA0][SMALL]


def test_it_prepares_reports_and_lives(host: Host, served: Served) -> None:
    """The pages are there when the server hears of them; SIGTERM ends it with 0."""
    served.fleet.want(**{SMALL: 1300})
    with host.start("--label", "rack=7", "--root", str(uuid4())) as process:
        served.await_(lambda: reported(served, 1300) and served.count("alive") > 2)
        code, errors = ended(process, signal.SIGTERM)
    assert (code, host.small_pages()) == (0, 1300)
    registered = served.fleet.registered
    assert registered is not None
    assert registered.facts.hostname == os.uname().nodename
    assert (registered.facts.kernel, registered.facts.version) == (os.uname().release, __version__)
    assert registered.labels == {"rack": "7"}
    assert registered.root is not None
    assert [part.provider for part in registered.parts] == [NUMA0]
    assert served.headers["X-Auth-Token"] == "first"
    assert "registered" in errors
    assert "stops: SIGTERM" in errors
    assert served.count("register") == 1


def test_a_killed_agent_continues(host: Host, served: Served) -> None:
    """After SIGKILL the lock is free, generations continue, and no report says less is there."""
    served.fleet.want(**{SMALL: 700})
    with host.start() as process:
        served.await_(lambda: reported(served, 700))
        assert ended(process, signal.SIGKILL)[0] == -signal.SIGKILL
    before = len(served.fleet.writes)
    with host.start() as process:
        served.await_(lambda: served.count("register") == 2 and served.count("alive") > 1)
        served.fleet.want(**{SMALL: 800})
        served.await_(lambda: reported(served, 800))
        assert ended(process, signal.SIGTERM)[0] == 0
    assert all(small(report) >= 700 for report in served.fleet.writes[before:])
    assert all(report.phase == "done" for report in served.fleet.writes[before:])
    generations = [report.report_generation for report in served.fleet.writes]
    assert generations == [*range(1, len(generations) + 1)]


def test_after_a_boot_everything_is_prepared_again(host: Host, served: Served) -> None:
    """A new boot registers with its id, and the empty pools grow again."""
    served.fleet.want(**{SMALL: 64})
    for boot in (1, 2):
        with host.start() as process:
            served.await_(lambda boot=boot: len(served.fleet.boots) == boot)  # type: ignore[misc] # binds the value
            served.await_(lambda: reported(served, 64))
            assert ended(process, signal.SIGTERM)[0] == 0
        host.kernel.boot()
        assert host.small_pages() == 0


@pytest.mark.parametrize("kind", ["register", "report", "alive"])
@pytest.mark.parametrize("fault", ["lost", "unanswered"])
def test_lost_requests_and_answers(host: Host, served: Served, kind: str, fault: str) -> None:
    """The first request of each kind is lost, or its answer is: the agent recovers."""
    served.fleet.want(**{SMALL: 8})
    faults = [fault]
    served.fault = lambda sent: faults.pop() if faults and sent == kind else None
    with host.start() as process:
        served.await_(lambda: not faults and reported(served, 8) and served.count("alive") > 2)
        code, errors = ended(process, signal.SIGTERM)
    assert code == 0
    assert "no answer from" in errors
    assert served.count("register") == 2
    reports = [body for sent, body in served.requests if sent == "report"]
    for before, after in pairwise(reports):
        assert after["report_generation"] == before["report_generation"] + 1 or after == before
    if kind == "report" and fault == "lost":
        assert reports[0] == reports[1]


def test_a_decommissioned_agent_stops(host: Host, served: Served) -> None:
    """It ends with 0, and leaves the pages as they are."""
    served.fleet.want(**{SMALL: 8})
    with host.start() as process:
        served.await_(lambda: reported(served, 8))
        served.fleet.decommissioned = True
        code, errors = ended(process)
    assert code == 0
    assert "decommissioned" in errors
    assert host.small_pages() == 8


def test_a_cloned_machine_stops(host: Host, served: Served) -> None:
    """Another boot has registered with this id since: exit code 4, and no further request."""
    with host.start() as process:
        served.await_(lambda: reported(served, 0))
        served.fleet.boots.append(str(uuid4()))
        code, errors = ended(process)
    assert code == 4
    assert "another machine with the same agent id" in errors
    assert served.requests[-1][0] == "alive"


def test_only_one_agent_on_a_machine(host: Host, served: Served) -> None:
    """The second one ends at once, and says which lock it needs."""
    with host.start() as process:
        served.await_(lambda: reported(served, 0))
        second = finished(*host.words("--agent-id", str(uuid4())))
        assert (second.returncode, second.stdout) == (1, "")
        assert second.stderr.startswith("moorage: another agent runs on this machine")
        assert ended(process, signal.SIGTERM)[0] == 0


def test_a_new_token_is_read(host: Host, served: Served) -> None:
    """Each register reads the token again, so that a token can be replaced."""
    with host.start() as process:
        served.await_(lambda: reported(served, 0))
        host.token.write_text("second\n")
        served.fleet.directives = ["register"]
        served.await_(lambda: served.count("register") == 2)
        assert served.headers["X-Auth-Token"] == "second"
        assert ended(process, signal.SIGTERM)[0] == 0


def test_a_step_blocks_no_sign_of_life(host: Host, served: Served) -> None:
    """While the kernel is busy the agent lives; SIGTERM waits for the step, and begins no other."""
    gate = host.folder / "machine/gate"
    os.mkfifo(gate)
    served.fleet.want(**{SMALL: 2000})
    with host.start_on_fake_kernel() as process:
        served.await_(lambda: served.count("alive") > 3)
        assert served.count("report") == 0
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert any("stops: SIGTERM" in line for line in process.stderr)
        with gate.open("w"):
            gate.unlink()
        assert process.wait(SECONDS) == 0
    assert host.kernel.pool("2MB")["nr"] == 512


def test_a_shortage_is_reported(host: Host, served: Served) -> None:
    """The report says done, how much is there, and why it is not more."""
    host.kernel.change(kb=1 << 20)
    served.fleet.want(**{SMALL: 600})
    with host.start_on_fake_kernel() as process:
        served.await_(lambda: reported(served, 512))
        code, errors = ended(process, signal.SIGTERM)
    assert code == 0
    report = served.fleet.report
    assert report is not None
    assert report.failure is not None
    assert report.failure.code == "hugepages_short"
    assert report.failure.message == "node 0 has 512 of 600 pages of 2 MiB"
    assert report.failure.message in errors
    assert host.kernel.compactions >= 1


def test_running_domains_are_reported(host: Host, served: Served) -> None:
    """With a folder of libvirt the consumers are known, otherwise they are not."""
    folder = host.folder / "qemu"
    folder.mkdir()
    (host.folder / f"machine/proc/{os.getpid()}").mkdir()
    domain = str(uuid4())
    (folder / "instance-1.xml").write_text(
        f"<domstatus state='running' pid='{os.getpid()}'><domain><uuid>{domain}</uuid></domain>"
        "</domstatus>"
    )
    with host.start("--libvirt-dir", str(folder)) as process:
        served.await_(lambda: reported(served, 0))
        assert ended(process, signal.SIGTERM)[0] == 0
    assert served.fleet.report is not None
    assert served.fleet.report.consumers == [domain]


def test_a_busy_server_is_waited_for(host: Host) -> None:
    """Nobody listens at first: the agent says so and keeps trying until it is stopped."""
    host.served.url = "http://127.0.0.1:1"
    with host.start() as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "cannot register" in line)
        assert "registers again in" in line
        assert ended(process, signal.SIGINT)[0] == 128 + signal.SIGINT


def test_a_silent_server(host: Host, served: Served) -> None:
    """A request ends after 10 seconds without an answer; SIGTERM does not wait for that."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host.served.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with host.start() as process:
            connection, _ = listener.accept()
            asked = elapsed()
            assert process.stderr is not None
            assert any("cannot register" in line for line in process.stderr)
            assert 9.0 < elapsed() - asked < 30.0
            connection.close()
            with listener.accept()[0]:
                asked = elapsed()
                assert ended(process, signal.SIGTERM)[0] == 0
                assert elapsed() - asked < 8.0


def test_on_the_real_kernel(served: Served, tmp_path: Path) -> None:
    """64 pages of 2 MiB are obtained, reported, and given back when they are no longer desired."""
    pages = HugePages(KernelFiles())
    words = ["--agent-id", AGENT, "--url", served.url, "--lock-file", str(tmp_path / "lock")]
    with real_pool() as pool:
        provider = provider_of(UUID(AGENT), pool)

        def there(amount: int) -> bool:
            report = served.fleet.report
            return report is not None and report.actual[provider][SMALL] == amount

        served.fleet.want(**{SMALL: 64})
        with started("agent", "run", "--reservoir", "hugepages", *words) as process:
            served.await_(lambda: there(64))
            assert pages.actual(pool) == 64
            served.fleet.want(**{SMALL: 0})
            served.await_(lambda: there(0))
            assert ended(process, signal.SIGTERM)[0] == 0
        assert pages.actual(pool) == 0
    registered = served.fleet.registered
    assert registered is not None
    assert registered.boot_id == boot_of(KernelFiles())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("agent", "run"), "no reservoir"),
        (("agent", "run", "--reservoir", "hugepages"), "no server is set"),
        (("agent", "run", "--reservoir", "hugepages", "--url", "x"), "not the URL of a server"),
        (("agent", "run", "--reservoir", "disks"), "invalid choice"),
        (("agent", "wait"), "no consumer"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], message: str) -> None:
    """Exit code 2, and one line that says what to change."""
    refused = finished(*words, *([] if "disks" in words else ["--agent-id", AGENT]))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_wrong_arguments(host: Host) -> None:
    """UUIDs, labels, the token and the machine are checked before anything is sent."""
    for more, code, message in [
        (("--agent-id", "7"), 2, "--agent-id: '7' is not a UUID"),
        (("--root", "7"), 2, "--root: '7' is not a UUID"),
        (("--agent-id", AGENT, "--label", "rack"), 2, "'rack' is not NAME=VALUE"),
        (("--agent-id", AGENT, "--token-file", "nowhere"), 2, "nowhere"),
        (("--agent-id", AGENT, "--sysfs", str(host.folder)), 1, "no huge pages"),
        (("--agent-id", AGENT, "--procfs", str(host.folder)), 1, "boot_id"),
    ]:
        refused = finished(*host.words(*more))
        assert (refused.returncode, refused.stdout) == (code, ""), refused.stderr
        assert message in refused.stderr
    assert host.served.requests == []
