"""`moorage run --keep-on-failure`: what a failed command held is kept, everything else released."""

import signal
from datetime import timedelta
from pathlib import Path

from tests.e2e.support.carried import SECONDS, Harbour, line

FAILING = ("--", "sh", "-c", "exit 3")


def test_a_failure_keeps_the_lease(port: Harbour) -> None:
    """It says until when, and how to end it earlier; the exit code is that of the command."""
    pool = port.pool()
    done = port.finished("run", "--pool", pool, "--keep-on-failure", "2h", *FAILING)
    (lease,) = port.leases(pool)
    assert done.returncode == 3
    assert f"lease {lease.id} is kept for inspection until" in done.stderr
    assert lease.kept is not None and lease.kept.reason == "sh: exit code 3"
    assert lease.expires_at is None
    assert lease.hold_until is not None and lease.granted_at is not None
    assert lease.hold_until - lease.granted_at > timedelta(minutes=119)
    shown = lease.hold_until.isoformat(timespec="seconds")
    assert f"until {shown}; to end it earlier" in done.stderr


def test_a_success_does_not(port: Harbour) -> None:
    """The unit is free at once."""
    pool = port.pool()
    done = port.finished("run", "--pool", pool, "--keep-on-failure", "2h", "--", "true")
    assert (done.returncode, port.leases(pool)) == (0, [])


def test_a_pool_that_permits_less(port: Harbour) -> None:
    """It is kept for that long; where nothing is permitted any more, it is released."""
    pool = port.pool(hold=60.0, hold_max=60.0)
    port.finished("run", "--pool", pool, "--keep-on-failure", "2h", *FAILING)
    (lease,) = port.leases(pool)
    assert lease.hold is not None and lease.hold <= 60.0


def test_a_cancelled_command_does_not(port: Harbour) -> None:
    """Who ends a job by a signal does not want to look at it, whatever its exit code."""
    pool = port.pool()
    script = "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"
    words = ("run", "--pool", pool, "--keep-on-failure", "2h", "--", "sh", "-c", script)
    with port.started(*words) as process:
        assert line(process).strip() == "up"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert (process.returncode, port.leases(pool)) == (5, [])


def test_a_key_file_does_not_hand_it_to_the_next_run(port: Harbour, tmp_path: Path) -> None:
    """A second start asks for a lease of its own: the kept one is for people."""
    pool = port.pool(limit=2)
    key = str(tmp_path / "kept.key")
    words = ("run", "--pool", pool, "--key-file", key, "--keep-on-failure", "2h")
    port.finished(*words, *FAILING)
    (kept,) = port.leases(pool)
    assert port.finished(*words, "--", "true").returncode == 0
    assert [one.id for one in port.leases(pool)] == [kept.id]


def test_what_stops_for_a_newer_request_is_not_kept(port: Harbour) -> None:
    """The newer one waits for its unit, also if the command fails because it has to stop."""
    pool = port.pool()
    group = ("--supersede", "kept/main", "--cancel-running")
    script = "trap 'exit 5' TERM; echo up; while :; do sleep 0.1; done"
    words = ("run", "--pool", pool, *group, "--keep-on-failure", "2h", "--", "sh", "-c", script)
    with port.started(*words) as process:
        assert line(process).strip() == "up"
        done = port.finished("run", "--pool", pool, *group, "--", "true")
        process.communicate(timeout=SECONDS)
    assert (done.returncode, port.leases(pool)) == (0, [])
