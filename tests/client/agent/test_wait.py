"""`moorage agent wait`: exit code 0 only if the server says so, and never by accident."""

import signal
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client.agent.api_types import StartAnswer
from moorage.client.agent.wait import Verdict, await_start
from moorage.client.run.api_types import StrangeAnswerError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.wire.fleet import StartAnswer as WireStartAnswer
from tests.client.agent.fleet_server import serving
from tests.client.single import finished, started
from tests.support.fake_kernel import FakeKernel

AGENT = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
YES, NO = StartAnswer(True, "it may"), StartAnswer(False, "3 pages are missing")


class Waiting:
    """A wait on a clock that is set by hand, with prepared answers; the last one repeats."""

    def __init__(self, *answers: StartAnswer | Exception, takes: float | None = None) -> None:
        self.answers = [*answers]
        self.takes = takes
        self.now = 50.0
        self.asked: list[float] = []
        self.shown: list[str] = []

    def run(self, timeout: float = 120.0) -> Verdict:
        return await_start(self.ask, timeout, lambda: self.now, self.pause, self.shown.append)

    def ask(self, wait: float) -> StartAnswer:
        self.asked.append(wait)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer == NO:
            self.now += wait if self.takes is None else self.takes
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pause(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


def refused(status: int, code: str, retry_after: float | None = None) -> RefusedError:
    """Return a refusal."""
    error = RefusedError(status, code, f"refused: {code}", "-")
    error.retry_after = retry_after
    return error


def test_it_waits_in_long_polls() -> None:
    """Each request waits at the server, at most a minute; all together at most the timeout."""
    waiting = Waiting(NO)
    assert waiting.run(50.0).exit_code == 3
    assert waiting.asked[:2] == [20.0, 20.0]
    assert max(waiting.asked) <= 60.0
    assert waiting.now == pytest.approx(100.0)
    assert waiting.shown[0] == "3 pages are missing"


def test_a_start_that_is_permitted() -> None:
    """At once, or after some answers that it is too early."""
    assert Waiting(YES).run().exit_code == 0
    assert Waiting(NO, NO, YES).run().exit_code == 0
    assert Waiting(YES).run(0.0).exit_code == 0


def test_a_server_that_does_not_wait_is_not_flooded() -> None:
    """Requests are at least a second apart, whatever the server does."""
    waiting = Waiting(NO, takes=0.0)
    assert waiting.run(30.0).exit_code == 3
    assert len(waiting.asked) <= 32


@pytest.mark.parametrize(
    ("error", "code", "final"),
    [
        (UnreachableError("no answer"), 5, False),
        (refused(503, "busy", 2.0), 5, False),
        (refused(429, "too_many"), 5, False),
        (refused(500, "internal"), 5, False),
        (refused(404, "unrouted"), 5, False),
        (refused(409, "stale_boot"), 4, False),
        (refused(409, "superseded_boot"), 4, True),
        (refused(404, "agent_not_found"), 4, True),
        (refused(404, "consumer_not_found"), 4, True),
        (refused(410, "decommissioned"), 4, True),
        (refused(401, "unauthorized"), 1, True),
        (refused(403, "forbidden"), 1, True),
        (refused(422, "invalid"), 1, True),
        (StrangeAnswerError("strange"), 1, True),
    ],
)
def test_every_failure_keeps_it_closed(error: Exception, code: int, final: bool) -> None:
    """Mistakes end the wait at once; what may pass is tried until the timeout."""
    waiting = Waiting(error)
    assert waiting.run(60.0).exit_code == code
    assert (len(waiting.asked) == 1) == final
    assert waiting.now == pytest.approx(50.0 if final else 110.0)
    if not final:
        assert len(waiting.asked) < 60
        assert Waiting(error, YES).run(60.0).exit_code == 0


class Host:
    """A machine in a folder."""

    def __init__(self, folder: Path) -> None:
        self.kernel = FakeKernel.made(folder)
        self.boot_id = (folder / "proc/sys/kernel/random/boot_id").read_text()
        self.words = ("--agent-id", AGENT, "--procfs", str(folder / "proc"))
        self.consumer = str(uuid4())

    def command(self, url: str, *more: str) -> list[str]:
        """Return the arguments of the command."""
        given = ("--consumer", self.consumer, "--url", url, *self.words)
        return ["agent", "wait", *given, *more]

    def wait(self, url: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return finished(*self.command(url, *more))


def test_exit_codes_of_the_process(tmp_path: Path) -> None:
    """0 may start, 3 timeout, 4 no place or another boot, 5 no server."""
    host = Host(tmp_path)
    with serving() as served:
        served.fleet.boots = [host.boot_id]
        served.fleet.may_start[host.consumer] = wire_answer(True)
        done = host.wait(served.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        served.fleet.may_start[host.consumer] = wire_answer(False)
        done = host.wait(served.url, "--timeout", "1.2s")
        assert done.returncode == 3
        assert "must not start: too early" in done.stderr
        served.fleet.may_start.clear()
        assert host.wait(served.url).returncode == 4
        host.kernel.boot()
        done = host.wait(served.url, "--timeout", "0")
        assert done.returncode == 4
        assert "stale_boot" in done.stderr
    done = host.wait("http://127.0.0.1:1", "--timeout", "0.1")
    assert done.returncode == 5


def test_a_strange_answer_over_http(tmp_path: Path) -> None:
    """Only the boolean true opens: not a text, not a number, not another document."""
    host = Host(tmp_path)
    with serving() as served:
        served.fleet.boots = [host.boot_id]
        for answer in ({"may_start": "true", "reason": ""}, {"may_start": 1, "reason": ""}, {}, []):
            served.fleet.may_start[host.consumer] = answer
            assert host.wait(served.url).returncode == 1


def test_a_missing_boot_id_keeps_it_closed(tmp_path: Path) -> None:
    """Without its boot the machine looks like one that has lost its pages."""
    host = Host(tmp_path)
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.write_text("nonsense")
    assert host.wait("http://127.0.0.1:1").returncode == 1
    boot_id.unlink()
    assert host.wait("http://127.0.0.1:1").returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_it_closed(tmp_path: Path, number: int) -> None:
    """A starter that is stopped must not start."""
    host = Host(tmp_path)
    with started(*host.command("http://127.0.0.1:1")) as process:
        assert process.stderr is not None
        assert "waits to start" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(60) != 0


def wire_answer(may_start: bool) -> WireStartAnswer:
    """Return an answer of the server."""
    reason = "it may" if may_start else "too early"
    return WireStartAnswer(may_start=may_start, reason=reason, needed={}, ahead={}, actual={})
