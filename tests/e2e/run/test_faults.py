"""`moorage run` with lost answers, and with a server that is silent, away or restarted."""

import os
import pty
import select
import signal
from collections.abc import Iterator

import pytest

from moorage.client.main import main
from moorage.client.run.clock import elapsed
from moorage.service.clock import SystemClock
from tests.client import single
from tests.client.single import catching
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, harbour, line, tell
from tests.e2e.support.relay import Relay


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A server for the tests of this file; each uses its own pool."""
    with harbour(tmp_path_factory.mktemp("faults")) as found:
        yield found


@pytest.fixture
def port(served: Harbour) -> Iterator[Harbour]:
    """The same server, which a test may stop."""
    yield served
    os.kill(served.server.pid, signal.SIGCONT)


def test_lost_answers_cost_nothing(port: Harbour) -> None:
    """Every first answer is lost: there is still one lease, and it is released."""
    pool = port.pool(limit=5)
    with Relay(port.server.url) as relay:
        relay.lose = 2
        told = "echo $MOORAGE_LEASE_ID"
        with port.started(
            "run", "--pool", pool, "--", "sh", "-c", f"{told}; read x", url=relay.url
        ) as one:
            lease = line(one).strip()
            assert [found.id for found in port.leases(pool)] == [lease]
            relay.lose = 2
            tell(one)
            assert one.wait(SECONDS) == 0
        asked = [first for first in relay.heard if first.startswith("POST /v1/leases ")]
    assert len(asked) == 3
    assert [(found.id, found.cause) for found in port.ended(pool)] == [(lease, "released")]


FAULTS = ("lost_requests", "lost_answers", "torn_answers")


def played(port: Harbour, pool: str, fault: str, number: int) -> int:
    """Run a command with a fault at one of its requests; return the number of requests."""
    with Relay(port.server.url) as relay:
        setattr(relay, fault, {number})
        where = ("--url", relay.url, "--token", port.token, "--pool", pool)
        assert main(["run", *where, "--outcome", "--", "true"], ("moorage",)) == 0
        return relay.tried


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_is_lost_there_is_one_lease(port: Harbour, fault: str) -> None:
    """Each request of a run is lost, or its answer, or half of that: the run still succeeds."""
    pool = port.pool(limit=9)
    asked = played(port, pool, fault, 0)
    assert asked >= len(["ask", "release", "outcome"])
    for number in range(1, asked + 1):
        played(port, pool, fault, number)
        assert port.leases(pool) == [], f"request {number}"
        told = [(lease.cause, lease.outcome) for lease in port.ended(pool)]
        assert told == [("released", "ok")] * (number + 1), f"request {number}"


LEFT_MIN = 8.0
"""Seconds of a TTL of ten that must remain when the command starts."""


def remaining(port: Harbour, pool: str) -> float:
    """Return the remaining seconds of the only lease of a pool."""
    (lease,) = port.leases(pool)
    assert lease.expires_at is not None
    return lease.expires_at.timestamp() - SystemClock().now() / 1_000_000


def test_a_lease_lasts_for_as_long_as_its_holder_thinks(port: Harbour) -> None:
    """Four answers are lost, so the lease is some seconds old when its holder learns of it."""
    pool = port.pool()
    with Relay(port.server.url) as relay:
        relay.lose = 4
        with port.started(
            "run", "--pool", pool, "--ttl", "10s", "--", *WAITING, url=relay.url
        ) as one:
            assert line(one) == "up\n"
            assert remaining(port, pool) > LEFT_MIN
            tell(one)
            assert one.wait(SECONDS) == 0


def test_a_lease_that_was_waited_for_lasts_as_long(port: Harbour) -> None:
    """The same if the lost answers reported the grant."""
    pool, words = port.pool(), ("--ttl", "10s", "--", *WAITING)
    with (
        Relay(port.server.url) as relay,
        port.started("run", "--pool", pool, "--", *WAITING) as holder,
    ):
        line(holder)
        with port.started("run", "--pool", pool, *words, url=relay.url) as one:
            port.waiting(pool)
            relay.lose = 4
            tell(holder)
            assert line(one) == "up\n"
            assert remaining(port, pool) > LEFT_MIN
            tell(one)
            assert one.wait(SECONDS) == 0


def test_who_waits_outlives_a_lost_answer(port: Harbour) -> None:
    """The answer with the grant is lost: the next try gets the same lease."""
    pool = port.pool()
    with (
        Relay(port.server.url) as relay,
        port.started("run", "--pool", pool, "--", *WAITING) as first,
    ):
        line(first)
        with port.started("run", "--pool", pool, "--", *WAITING, url=relay.url) as second:
            (ticket,) = port.waiting(pool)
            relay.lose = 1
            tell(first)
            assert line(second) == "up\n"
            assert [lease.id for lease in port.leases(pool)] == [ticket.id]
            tell(second)
            assert second.wait(SECONDS) == 0


def test_a_silent_server_loses_the_lease_by_our_clock(port: Harbour) -> None:
    """With --on-unreachable lost no process outlives the TTL, even if it ignores SIGTERM."""
    ttl = 4.0
    pool = port.pool(ttl=ttl)
    heedless = catching("TERM", "print('term', flush=True)", "signal.sigwait([number])")
    words = ("--on-unreachable", "lost", "--kill-after", "1h", "--release-timeout", "500ms", "--")
    with port.started("run", "--pool", pool, *words, *heedless) as process:
        line(process)
        os.kill(port.server.pid, signal.SIGSTOP)
        silent = elapsed()
        assert line(process) == "term\n"
        assert elapsed() - silent < ttl
        _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 120
        assert "the lease is lost" in told
        assert "cannot release lease" in told


def test_a_release_never_takes_long(port: Harbour) -> None:
    """The server is stopped while the command runs: its exit code comes within the timeout."""
    pool = port.pool()
    words = ("run", "--pool", pool, "--release-timeout", "500ms", "--")
    with port.started(*words, "sh", "-c", "echo up; read x; exit 6") as process:
        line(process)
        os.kill(port.server.pid, signal.SIGSTOP)
        tell(process)
        _, told = process.communicate(timeout=4)
        assert process.returncode == 6
        assert "cannot release lease" in told


def test_a_hold_is_over_although_nobody_says_so(port: Harbour) -> None:
    """The server is away when the hold ends: that is not a loss."""
    pool = port.pool(ttl=6.0)
    with port.started("run", "--pool", pool, "--hold", "2s", "--", *WAITING) as process:
        line(process)
        os.kill(port.server.pid, signal.SIGSTOP)
        assert process.stderr is not None
        process.stderr.readline()
        assert "the hold is over" in process.stderr.readline()
        said, told = process.communicate("\n", timeout=4)
        assert (said, told, process.returncode) == ("done\n", "", 0)


def test_a_server_that_comes_late_is_waited_for(port: Harbour) -> None:
    """No server listens at first: it tries again until there is one."""
    pool = port.pool()
    relay = Relay("http://127.0.0.1:1")
    with relay, port.started("run", "--pool", pool, "--", "echo", "ran", url=relay.url) as process:
        eventually(lambda: True if relay.tried > 1 else None)
        relay.aim(port.server.url)
        assert process.communicate(timeout=SECONDS)[0] == "ran\n"
        assert process.returncode == 0


def test_where_it_stands_is_live_on_a_terminal(port: Harbour) -> None:
    """On a terminal one line shows position and reason; it disappears when the command runs."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        pid, screen = pty.fork()
        if pid == 0:
            words = single.command("run", "--pool", pool, "--", "echo", "ran")
            variables = {**single.BARE, **port.where(), "TERM": "xterm", "COLUMNS": "120"}
            os.execve(words[0], words, variables)
        seen = ""
        for wanted in (f"waiting for {pool}: place 1; ", "ran"):
            while wanted not in seen:
                assert select.select([screen], [], [], SECONDS)[0], seen
                seen += os.read(screen, 4096).decode()
            if wanted != "ran":
                tell(holder)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        os.close(screen)
    assert f"\r\x1b[Kmoorage: waiting for {pool}: place 1; " in seen
    last = seen.rpartition("waiting for")[2]
    assert "\r\x1b[Kmoorage: got lease " in last
