"""`moorage run` from the single file, with a real server, processes and signals."""

import os
import signal
import threading
from pathlib import Path

import pytest

from moorage.client.transport import RefusedError
from tests.client.single import catching
from tests.e2e.support.carried import SECONDS, Harbour, eventually, gone, line, tell

WAITING = ("bash", "-c", "echo up; read line; echo done")
"""A command that runs until it gets a line."""

TRAPPED = catching("TERM", "print('term', flush=True)", "sys.exit(9)")
"""A command that reports SIGTERM, and ends by it."""


def test_a_command_with_a_lease(port: Harbour) -> None:
    """The command gets its lease's variables and standard output; the lease ends with it."""
    pool = port.pool(limit=3)
    told = "echo $MOORAGE_LEASE_ID $MOORAGE_LEASE_TOKEN $MOORAGE_LEASE_POOL; exit 7"
    done = port.finished("run", "--pool", f"{pool}=2", "--label", "job=x", "--", "sh", "-c", told)
    (lease,) = port.ended(pool)
    assert done.returncode == 7
    assert done.stdout == f"{lease.id} {lease.token} {pool}\n"
    assert done.stderr == f"moorage: got lease {lease.id} of {pool} (2 units)\n"
    assert (lease.cause, lease.labels["job"]) == ("released", "x")
    assert lease.needs[0].units == 2


def test_the_second_waits_for_the_first(port: Harbour) -> None:
    """It shows its position, the reason and the time, runs in turn, and has the only unit."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *WAITING) as first:
        assert line(first) == "up\n"
        with port.started("run", "--pool", pool, "--", *WAITING) as second:
            assert second.stderr is not None
            assert second.stderr.readline().startswith("moorage: ticket ")
            assert [lease.state for lease in port.leases(pool)] == ["granted", "waiting"]
            tell(first)
            assert line(second) == "up\n"
            assert len(port.leases(pool)) == 1
            tell(second)
            assert second.wait(SECONDS) == 0
    assert [lease.cause for lease in port.ended(pool)] == ["released", "released"]


def test_all_pools_or_none(port: Harbour) -> None:
    """Several pools are one lease; while one of them is taken, the others are not."""
    one, two = port.pool(), port.pool()
    pools = ("--pool", one, "--pool", two)
    with port.started("run", "--pool", two, "--", *WAITING) as holder:
        line(holder)
        with port.started("run", *pools, "--", "sh", "-c", "echo $MOORAGE_LEASE_POOL") as gang:
            port.waiting(one)
            tell(holder)
            assert line(gang) == f"{one} {two}\n"
            assert gang.wait(SECONDS) == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_leaves_the_line_at_once(port: Harbour, name: str) -> None:
    """No ticket is left when the process ends: as in shells, by INT itself."""
    pool, number = port.pool(), getattr(signal, name)
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started("run", "--pool", pool, "--", "echo", "never") as waiter:
            port.waiting(pool)
            waiter.send_signal(number)
            said, told = waiter.communicate(timeout=5)
            code = -number if name == "SIGINT" else 128 + number
            assert (said, waiter.returncode) == ("", code)
            assert f"{name} while waiting: withdrawn" in told
            assert [lease.state for lease in port.leases(pool)] == ["granted"]


def test_an_interrupt_ends_us_when_all_is_given_back(port: Harbour) -> None:
    """A command that dies of INT makes its caller die of it, after the release."""
    pool = port.pool()
    for script, code in (
        ("echo up; read x", -signal.SIGINT),
        ("trap 'exit 7' INT; echo up; read x", 7),
    ):
        with port.started("run", "--pool", pool, "--", "bash", "-c", script) as process:
            line(process)
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == code
        assert port.leases(pool) == []
    assert [lease.cause for lease in port.ended(pool)] == ["released", "released"]


def test_signals_go_to_the_command(port: Harbour) -> None:
    """The command ends as it likes, its code is returned, and the lease is released."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *TRAPPED) as process:
        line(process)
        process.send_signal(signal.SIGTERM)
        assert line(process) == "term\n"
        assert process.wait(SECONDS) == 9
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


def test_a_killed_wrapper_gives_the_slot_back_after_the_ttl(port: Harbour) -> None:
    """SIGKILL: the command ends with its lease, and the next in line gets the unit."""
    pool = port.pool(ttl=3.0)
    with port.started("run", "--pool", pool, "--", "sh", "-c", "echo $$; exec cat") as killed:
        command = int(line(killed))
        with port.started("run", "--pool", pool, "--", "echo", "mine") as waiter:
            port.waiting(pool)
            killed.kill()
            eventually(lambda: True if gone(command) else None, 5.0)
            assert waiter.communicate(timeout=15)[0] == "mine\n"
    assert [lease.cause for lease in port.ended(pool)] == ["ttl_over", "released"]


def test_it_is_renewed_for_as_long_as_it_takes(port: Harbour) -> None:
    """A command that runs for longer than a TTL keeps its lease."""
    pool = port.pool(ttl=2.0)
    with port.started("run", "--pool", pool, "--", *WAITING) as process:
        line(process)
        port.outlasts_its_ttl(pool)
        assert process.communicate("\n", SECONDS)[0] == "done\n"
        assert process.returncode == 0
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


def test_a_hold_ends_the_lease_not_the_command(port: Harbour) -> None:
    """The server frees the unit by itself; that is no loss, and nothing is renewed any more."""
    pool = port.pool(ttl=3.0)
    with port.started("run", "--pool", pool, "--hold", "1s", "--", *WAITING) as process:
        line(process)
        assert port.finished("run", "--pool", pool, "--", "echo", "next").stdout == "next\n"
        assert process.stderr is not None
        assert "it ends after 1s" in process.stderr.readline()
        assert process.stderr.readline() == (
            "moorage: the hold is over: the lease has ended, the command continues\n"
        )
        said, told = process.communicate("\n", SECONDS)
        assert (said, told, process.returncode) == ("done\n", "", 0)
    assert [lease.cause for lease in port.ended(pool)] == ["hold_over", "released"]


def test_a_command_that_ends_before_its_hold(port: Harbour) -> None:
    """The lease ends with the command."""
    pool = port.pool()
    assert port.finished("run", "--pool", pool, "--hold", "1h", "--", "true").returncode == 0
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


@pytest.mark.parametrize(
    ("on_lost", "code", "said"), [("term", 120, "term\n"), ("kill", 120, ""), ("warn", 0, "done\n")]
)
def test_a_revoked_lease(port: Harbour, on_lost: str, code: int, said: str) -> None:
    """The holder learns of it within one renewal, and the command gets the signal."""
    pool = port.pool(ttl=1.5)
    command = WAITING if on_lost == "warn" else TRAPPED
    with port.started("run", "--pool", pool, "--on-lost", on_lost, "--", *command) as process:
        line(process)
        (lease,) = port.leases(pool)
        port.admission.revoke(lease.id, "needed elsewhere")
        assert process.stderr is not None
        process.stderr.readline()
        assert "revoked: needed elsewhere" in process.stderr.readline()
        if on_lost == "warn":
            tell(process)
        assert process.communicate(timeout=SECONDS)[0] == said
        assert process.returncode == code


@pytest.mark.parametrize("words", [("--hold", "1h"), ("--best-effort",)])
def test_what_is_limited_leniently_goes_on(port: Harbour, words: tuple[str, ...]) -> None:
    """With a hold or best effort the loss is reported, and the command continues."""
    pool = port.pool(ttl=1.5)
    with port.started("run", "--pool", pool, *words, "--", *WAITING) as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.stderr is not None
        process.stderr.readline()
        assert "continues without it" in process.stderr.readline()
        said, _ = process.communicate("\n", SECONDS)
        assert (said, process.returncode) == ("done\n", 0)


def test_a_command_that_does_not_heed(port: Harbour) -> None:
    """After --kill-after it is killed."""
    pool = port.pool(ttl=1.5)
    stubborn = catching("TERM", "print('no', flush=True)", "signal.sigwait([number])")
    words = ("run", "--pool", pool, "--on-lost", "term", "--kill-after", "500ms", "--")
    with port.started(*words, *stubborn) as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert line(process) == "no\n"
        assert process.wait(SECONDS) == 120


def test_a_stopped_holder_has_lost_when_it_wakes(port: Harbour) -> None:
    """SIGSTOP beyond the TTL: at SIGCONT it ends at once, and its token is stale."""
    pool = port.pool(ttl=2.0)
    with port.started("run", "--pool", pool, "--", *TRAPPED) as process:
        line(process)
        (lease,) = port.leases(pool)
        process.send_signal(signal.SIGSTOP)
        assert port.finished("run", "--pool", pool, "--", "echo", "next").stdout == "next\n"
        process.send_signal(signal.SIGCONT)
        assert line(process) == "term\n"
        assert process.wait(SECONDS) == 120
        assert lease.token is not None
        assert not port.admission.verify(pool, lease.token).current
        with pytest.raises(RefusedError) as refused:
            port.admission.renew(lease.id, lease.token)
        assert refused.value.status == 409
        assert port.admission.release(lease.id, lease.token).cause == "ttl_over"


OUTAGES = (
    ("--url", "http://127.0.0.1:1", "--unreachable-after", "0"),
    ("--wait", "0"),
    ("--key-file", "no/folder/key"),
)
MISTAKES = (
    (122, ("--pool", "no/such/pool")),
    (121, ("--pool", "POOL=5")),
    (121, ("--token", "wrong")),
    (125, ("--url", "nonsense")),
    (125, ("--token-file", "no/such/file")),
)


def test_best_effort_forgives_outages_and_no_mistakes(port: Harbour) -> None:
    """No server, or not in time: one line, it runs. A wrong name or token ends it, by default."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        mistakes = [(code, [word.replace("POOL", pool) for word in it]) for code, it in MISTAKES]
        mistakes = [(code, it if "--pool" in it else ["-p", pool, *it]) for code, it in mistakes]
        for code, mistake in mistakes:
            done = port.finished("run", "--best-effort", *mistake, "--", "echo", "never")
            assert (done.returncode, done.stdout) == (code, ""), (mistake, done.stderr)
        forgiven = [("--best-effort", "-p", pool, *words) for words in OUTAGES]
        forgiven += [("--best-effort-always", "-p", pool, *words) for words in OUTAGES]
        forgiven += [("--best-effort-always", *words) for _, words in mistakes]
        for words in forgiven:
            done = port.finished("run", *words, "--", "sh", "-c", "echo ran; exit 5")
            assert (done.returncode, done.stdout) == (5, "ran\n"), (words, done.stderr)
            # Besides that, only its position, if it had to wait.
            told = [said for said in done.stderr.splitlines() if ": waiting for " not in said]
            assert len(told) == 1, done.stderr
            assert "best effort" in told[0]
        assert len(port.leases(pool)) == 1


def test_without_best_effort_each_failure_has_its_code(port: Harbour) -> None:
    """The command does not run; the exit code names the reason, and no ticket is left."""
    pool = port.pool()
    nowhere = ("--url", "http://127.0.0.1:1", "--unreachable-after", "0")
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        for code, words in (
            (121, ("--pool", f"{pool}=5")),
            (121, ("--pool", pool, "--token", "wrong")),
            (122, ("--pool", "no/such/pool")),
            (123, ("--pool", pool, *nowhere)),
            (124, ("--pool", pool, "--wait", "0")),
            (124, ("--pool", pool, "--wait", "500ms")),
            (125, ("--pool", pool, "--url", "nonsense")),
        ):
            done = port.finished("run", *words, "--", "echo", "never")
            assert (done.returncode, done.stdout) == (code, ""), (words, done.stderr)
        assert len(port.leases(pool)) == 1


def test_a_command_that_cannot_be_run_gives_its_lease_back(port: Harbour, tmp_path: Path) -> None:
    """126 and 127 as in shells, without a lease; one that was granted before is released."""
    pool = port.pool()
    assert port.finished("run", "--pool", pool, "--", "no-such-command").returncode == 127
    assert port.finished("run", "--pool", pool, "--", os.sep).returncode == 126
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert port.finished("run", "--pool", pool, "--", str(script)).returncode == 127
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


def test_outcomes_are_told(port: Harbour) -> None:
    """With --outcome the exit code becomes evidence for the limit."""
    pool = port.pool(limit=5)
    for command in ("true", "false", "true"):
        port.finished("run", "--pool", pool, "--outcome", "--", command)
    outcomes = port.admission.pool_report(pool).outcomes
    assert sum(one.ok for one in outcomes) == 2
    assert sum(one.failed for one in outcomes) == 1


def test_a_key_is_used_once(port: Harbour) -> None:
    """A key whose lease has ended is refused; another attempt needs another key."""
    pool = port.pool()
    words = ("run", "--pool", pool, "--key", "host-1+deploy+1", "--", "true")
    assert port.finished(*words).returncode == 0
    again = port.finished(*words)
    assert again.returncode == 121
    assert "use a new key" in again.stderr


def test_a_second_start_by_a_key_file_gets_the_same_lease(port: Harbour, tmp_path: Path) -> None:
    """The same when the first was killed; once the lease is released, the key is gone."""
    pool, key = port.pool(), tmp_path / "key"
    words = ("run", "--pool", pool, "--key-file", str(key), "--")
    with port.started(*words, *WAITING) as killed:
        line(killed)
        killed.kill()
    (lease,) = port.leases(pool)
    assert key.read_text().strip() == lease.key
    again = port.finished(*words, "sh", "-c", "echo $MOORAGE_LEASE_ID")
    assert again.stdout == f"{lease.id}\n"
    assert not key.exists()
    assert port.leases(pool) == []
    assert port.finished(*words, "true").returncode == 0


def test_many_at_once_never_exceed_the_limit(port: Harbour, tmp_path: Path) -> None:
    """Twelve runs on a pool of 3: all get their turn, and at most 3 run at once."""
    pool, log = port.pool(limit=3), tmp_path / "log"
    script = f"echo + >> {log}; sleep 0.2; echo - >> {log}"
    codes: list[int] = []

    def one() -> None:
        codes.append(port.finished("run", "--pool", pool, "--", "sh", "-c", script).returncode)

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0] * 12
    inside, most = 0, 0
    for mark in log.read_text().split():
        inside += 1 if mark == "+" else -1
        most = max(most, inside)
    assert inside == 0
    assert 1 <= most <= 3


def test_nobody_waits_for_who_reads_our_lines(port: Harbour) -> None:
    """Standard error is a pipe without a reader: the command is ended nevertheless."""
    pool = port.pool(ttl=1.5)
    script = "echo up; exec head -c 10000000 /dev/zero >&2"
    with port.started("run", "--pool", pool, "--", "bash", "-c", script) as process:
        line(process)
        port.admission.revoke(port.leases(pool)[0].id)
        assert process.wait(SECONDS) == 120
