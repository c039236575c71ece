"""`moorage run --outcome` at a real server: a command's result is reported once, however late."""

import json
import os
import shlex
import signal
from collections.abc import Iterator

import pytest

from tests.client.single import command, finished
from tests.e2e.run.test_run import TRAPPED
from tests.e2e.support.carried import SECONDS, Harbour, harbour, line, tell
from tests.e2e.support.relay import Relay

FAILING = ("sh", "-c", "echo up; read line; exit 3")
"""A command that fails at once."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A server for the tests of this file; each uses its own pool."""
    with harbour(tmp_path_factory.mktemp("outcomes")) as found:
        yield found


@pytest.fixture
def port(served: Harbour) -> Iterator[Harbour]:
    """The same server, which a test may stop."""
    yield served
    os.kill(served.server.pid, signal.SIGCONT)


def told(port: Harbour, pool: str) -> tuple[int, int, int]:
    """Return how often the report of a pool has each outcome: ok, failed, throttled."""
    lines = port.admission.pool_report(pool).outcomes
    kinds = ("ok", "failed", "throttled")
    ok, failed, throttled = (sum(getattr(one, kind) for one in lines) for kind in kinds)
    return ok, failed, throttled


def words(pool: str, *more: str) -> tuple[str, ...]:
    """Return the beginning of a command line."""
    return ("run", "--pool", pool, "--outcome", *more, "--")


def over(port: Harbour, pool: str) -> None:
    """Return as soon as the only unit of a pool is free again."""
    assert port.finished("run", "--pool", pool, "--", "true").returncode == 0


def test_after_the_hold(port: Harbour) -> None:
    """The lease has ended long before the command: its result is reported nevertheless."""
    pool = port.pool()
    with port.started(*words(pool, "--hold", "500ms"), *FAILING) as process:
        line(process)
        over(port, pool)
        assert told(port, pool) == (0, 0, 0)
        _, said = process.communicate("\n", SECONDS)
        assert process.returncode == 3
    assert "the hold is over" in said
    assert told(port, pool) == (0, 1, 0)
    lease = port.ended(pool)[0]
    assert (lease.cause, lease.outcome) == ("hold_over", "failed")


@pytest.mark.parametrize("hold", ["500ms", "1h"])
def test_a_lost_answer_counts_once(port: Harbour, hold: str) -> None:
    """The server has stored it, but its answer is lost: it is sent again, and counted once."""
    pool = port.pool()
    with Relay(port.server.url) as relay:
        with port.started(*words(pool, "--hold", hold), *FAILING, url=relay.url) as process:
            line(process)
            if hold != "1h":
                over(port, pool)
            relay.lose = 3
            _, said = process.communicate("\n", SECONDS)
            assert process.returncode == 3
        tries = [first for first in relay.heard if "/outcome" in first]
    assert len(tries) >= 2
    assert "outcome" not in said
    assert told(port, pool) == (0, 1, 0)
    assert [lease.outcome for lease in port.ended(pool)].count("failed") == 1


def test_what_goes_on_without_its_lease(port: Harbour) -> None:
    """The lease was revoked and the command continued: its result is evidence, too."""
    pool = port.pool(ttl=1.5)
    with port.started(*words(pool, "--on-lost", "warn"), *FAILING) as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.stderr is not None
        process.stderr.readline()
        assert "continues without it" in process.stderr.readline()
        process.communicate("\n", SECONDS)
    assert told(port, pool) == (0, 1, 0)


def test_what_we_have_ended_tells_nothing(port: Harbour) -> None:
    """A command that was ended because it lost its lease, or never began, has not failed."""
    pool = port.pool(ttl=1.5)
    with port.started(*words(pool), *TRAPPED) as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.wait(SECONDS) == 120
    assert port.finished(*words(pool), "no-such-command").returncode == 127
    assert told(port, pool) == (0, 0, 0)


def test_the_command_knows_better(port: Harbour) -> None:
    """What the command itself has reported counts; its exit code does not."""
    pool = port.pool()
    with port.started(*words(pool), *FAILING) as process:
        line(process)
        port.admission.outcome(port.leases(pool)[0].id, "throttled", "429")
        _, said = process.communicate("\n", SECONDS)
    assert "'throttled' already, and the first counts" in said
    assert told(port, pool) == (0, 0, 1)
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


def test_a_silent_server_costs_the_outcome_only(port: Harbour) -> None:
    """The hold is over and the server silent: one line reports it; the exit code is unchanged."""
    pool = port.pool()
    timeout = ("--release-timeout", "500ms")
    with port.started(*words(pool, "--hold", "500ms", *timeout), *FAILING) as process:
        line(process)
        over(port, pool)
        os.kill(port.server.pid, signal.SIGSTOP)
        tell(process)
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 3
    assert "cannot report the outcome" in said
    assert "cannot release" not in said


def test_a_script_tells_it(port: Harbour) -> None:
    """The script can report more than an exit code; the first report counts."""
    pool = port.pool()
    script = f'{shlex.join(command())} lease outcome "$MOORAGE_LEASE_ID" throttled; exit 4'
    done = port.finished(*words(pool), "sh", "-c", script)
    (lease,) = port.ended(pool)
    assert (done.returncode, done.stdout) == (4, f"{lease.id}: throttled\n"), done.stderr
    assert told(port, pool) == (0, 0, 1)
    tell_again = ("lease", "outcome", lease.id)
    again = port.finished(*tell_again, "throttled", "--detail", "429", "--json")
    assert json.loads(again.stdout)["outcome"] == "throttled"
    assert port.finished(*tell_again, "ok").returncode == 4
    assert port.finished("lease", "outcome", "none", "ok").returncode == 7
    assert port.finished(*tell_again, "fine").returncode == 2
    assert port.finished(*tell_again).returncode == 2
    nothing = port.finished("lease", "outcome", "", "ok")
    assert (nothing.returncode, nothing.stderr) == (
        0,
        "moorage: no lease: there is nothing to report\n",
    )
    assert finished("lease", "outcome", "", "ok").returncode == 2
    permitted = finished("lease", "outcome", "", "ok", "--unlimited-without-server")
    assert "dry run" in permitted.stderr
