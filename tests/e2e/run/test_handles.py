"""Leases kept in files: acquired in one process, renewed and released in others."""

import json
import signal
import stat
import subprocess
from datetime import datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from tests.client import single
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, line


@pytest.fixture
def handle(tmp_path: Path) -> str:
    """A file in its own folder."""
    return str(tmp_path / "handle")


def test_one_process_acquires_and_another_releases(port: Harbour, handle: str) -> None:
    """Only the handle's name is printed; the file is private, and is removed with its lease."""
    pool = port.pool()
    got = port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    assert (got.returncode, got.stdout, got.stderr) == (0, f"{handle}\n", "")
    assert stat.S_IMODE(Path(handle).stat().st_mode) == 0o600
    (lease,) = port.leases(pool)
    assert (lease.state, lease.ttl) == ("granted", 3600.0)
    status = port.finished("lease", "status", "--handle", handle)
    assert status.returncode == 0
    assert status.stdout.splitlines()[1].split("\t")[:3] == [lease.id, "granted", pool]
    done = port.finished("lease", "release", "--handle", handle)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(Path(handle).parent.iterdir()) == []
    assert [one.cause for one in port.ended(pool)] == ["released"]


def test_a_second_release_is_harmless(port: Harbour, handle: str) -> None:
    """A lease that was released, whose hold is over or that never existed: success, with a note."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--hold", "100ms", "--handle", handle)
    eventually(lambda: port.ended(pool) or None)
    for note in ("", "nothing to release", "nothing to release"):
        done = port.finished("lease", "release", "--handle", handle)
        assert done.returncode == 0
        assert note in done.stderr
    assert port.finished("lease", "release", "--handle", "").returncode == 0
    assert [one.cause for one in port.ended(pool)] == ["hold_over"]


def test_acquiring_again_gives_the_same_lease(port: Harbour, handle: str) -> None:
    """The same request in the same file is one lease, renewed until it ends."""
    pool = port.pool(limit=5)
    words = ("lease", "acquire", "--handle", handle, "--json", "--pool")
    first = json.loads(port.finished(*words, pool).stdout)
    same = json.loads(port.finished(*words, pool).stdout)
    assert same["leases"][0].pop("expires_at") > first["leases"][0].pop("expires_at")
    assert same == first
    more = json.loads(port.finished(*words, f"{pool}=2").stdout)["leases"]
    more = json.loads(port.finished(*words, pool, "--another").stdout)["leases"]
    assert [lease["id"] for lease in more] == [lease.id for lease in port.leases(pool)]
    assert len(more) == 3
    port.admission.revoke(first["leases"][0]["id"])
    again = json.loads(port.finished(*words, pool).stdout)["leases"]
    assert len(port.leases(pool)) == 3
    assert again[0]["id"] not in (first["leases"][0]["id"], None)
    assert port.finished("lease", "release", "--handle", handle).returncode == 0
    assert port.leases(pool) == []


def test_a_killed_acquire_keeps_its_place(port: Harbour, handle: str) -> None:
    """The key was in the file before the first try: the next try continues with the same ticket."""
    pool = port.pool()
    words = ("lease", "acquire", "--pool", pool, "--handle", handle)
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started(*words) as killed:
            (ticket,) = port.waiting(pool)
            killed.kill()
        status = port.finished("lease", "status", "--handle", handle)
        assert (status.returncode, "no answer yet" in status.stdout) == (3, True)
        with port.started(*words) as again:
            assert [one.id for one in port.waiting(pool)] == [ticket.id]
            holder.communicate("\n", SECONDS)
            assert again.communicate(timeout=SECONDS)[0] == f"{handle}\n"
    assert [one.id for one in port.leases(pool)] == [ticket.id]


def test_a_killed_acquire_can_be_released(port: Harbour, handle: str) -> None:
    """Although its answer was lost, nothing is left in the pool or in its line."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started("lease", "acquire", "--pool", pool, "--handle", handle) as killed:
            port.waiting(pool)
            killed.kill()
        assert port.finished("lease", "release", "--handle", handle).returncode == 0
        assert len(port.leases(pool)) == 1
        assert not Path(handle).exists()


def test_what_is_not_granted_leaves_nothing(port: Harbour, handle: str) -> None:
    """Each failure has its exit code; no file, no ticket and no output is left."""
    pool = port.pool()
    nowhere = ("--url", "http://127.0.0.1:1", "--unreachable-after", "0")
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        for code, words in (
            (3, ("--pool", pool, "--wait", "0")),
            (3, ("--pool", f"{pool}=2")),
            (2, ("--pool", "no/such/pool")),
            (2, ("--pool", f"{pool}=x")),
        ):
            done = port.finished("lease", "acquire", "--handle", handle, *words)
            assert (done.returncode, done.stdout) == (code, ""), done.stderr
            assert done.stderr.count("\n") == 1
            assert not Path(handle).exists()
        with port.started("lease", "acquire", "--handle", handle, "--pool", pool) as waiter:
            port.waiting(pool)
            waiter.send_signal(signal.SIGTERM)
            assert waiter.wait(5) == 128 + signal.SIGTERM
        assert not Path(handle).exists()
        assert len(port.leases(pool)) == 1
        # A lease that a silent server may have granted is not forgotten.
        done = port.finished("lease", "acquire", "--handle", handle, "--pool", pool, *nowhere)
        assert done.returncode == 5
        assert Path(handle).exists()


def test_renewing(port: Harbour, handle: str) -> None:
    """`hold` moves the end; for a lease that has ended it exits with the code of a conflict."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--ttl", "90s", "--handle", handle)
    (before,) = port.leases(pool)
    assert port.finished("lease", "renew", "--handle", handle).returncode == 0
    (after,) = port.leases(pool)
    assert before.expires_at is not None
    assert after.expires_at is not None
    assert after.expires_at > before.expires_at
    port.admission.revoke(after.id, "gone")
    refused = port.finished("lease", "renew", "--handle", handle)
    assert (refused.returncode, refused.stderr.count("\n")) == (4, 1)
    assert port.finished("lease", "status", "--handle", handle).returncode == 3
    assert port.finished("lease", "renew", "--handle", f"{handle}-none").returncode == 3


def test_a_lease_that_nobody_knows(port: Harbour, handle: str) -> None:
    """The server may have deleted it, or it belongs to another server; the two look the same."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    (lease,) = port.leases(pool)
    port.admission.release(lease.id)
    done = port.finished("lease", "status", "--handle", handle)
    assert done.stdout.splitlines()[1].split("\t")[1:2] == ["ended"]
    assert done.stdout.endswith("\treleased\n")
    other = str(uuid4())
    Path(handle).write_text(Path(handle).read_text().replace(lease.id, other))
    done = port.finished("lease", "status", "--handle", handle)
    told = "unknown to the server: it ended too long ago, or belongs to another server"
    assert done.stdout.splitlines()[1] == f"{other}\tunknown\t{pool}\t-\t-\t{told}"
    assert done.returncode == 3


def test_renewing_in_a_loop(port: Harbour, handle: str) -> None:
    """It renews a short lease until a signal ends it or the lease is released."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--ttl", "3s", "--handle", handle)
    with port.started("lease", "renew", "--loop", "--handle", handle) as loop:
        port.outlasts_its_ttl(pool)
        port.finished("lease", "release", "--handle", handle)
        assert loop.wait(SECONDS) == 0
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    with port.started("lease", "renew", "--loop", "--handle", handle) as loop:
        renewed = Path(handle).read_text()
        eventually(lambda: True if Path(handle).read_text() != renewed else None)
        loop.send_signal(signal.SIGTERM)
        assert loop.wait(SECONDS) == 0
    port.finished("lease", "release", "--handle", handle)


def test_a_loop_takes_a_release_for_what_it_is(port: Harbour, handle: str) -> None:
    """Released, but still in the file: the loop ends well; a single renewal fails."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    port.admission.release(port.leases(pool)[0].id)
    assert port.finished("lease", "renew", "--loop", "--handle", handle).returncode == 0
    assert port.finished("lease", "renew", "--handle", handle).returncode == 4


def test_a_release_that_the_server_makes_later(port: Harbour, handle: str) -> None:
    """--delay returns at once; the lease ends by itself, or earlier by a release."""
    pool = port.pool(limit=2)
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    assert port.finished("lease", "release", "--delay", "10m", "--handle", handle).returncode == 0
    status = port.finished("lease", "status", "--handle", handle).stdout.splitlines()
    told = dict(zip(*(line.split("\t") for line in status), strict=True))
    (lease,) = port.leases(pool)
    assert lease.hold_until is not None
    assert lease.hold_until == datetime.fromisoformat(
        told["ends"]
    )  # rather than the end of its TTL
    assert port.finished("lease", "release", "--handle", handle).returncode == 0
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    port.finished("lease", "release", "--delay", "100ms", "--handle", handle)
    eventually(lambda: True if not port.leases(pool) else None)
    assert [one.cause for one in port.ended(pool)] == ["released", "hold_over"]


@pytest.mark.parametrize("by_id", [True, False])
def test_a_delayed_release_never_moves_an_earlier_end(
    port: Harbour, handle: str, by_id: bool
) -> None:
    """A lease whose hold ends in a minute still ends then after `--delay 20m`, also if repeated."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--hold", "1m", "--handle", handle)
    (lease,) = port.leases(pool)
    which = (lease.id,) if by_id else ("--handle", handle)
    for delay in ("20m", "20m", "2h"):
        done = port.finished("lease", "release", "--delay", delay, *which)
        assert done.returncode == 0, done.stderr
        assert port.leases(pool)[0].hold_until == lease.hold_until
    assert port.finished("lease", "release", "--delay", "10s", *which).returncode == 0
    (sooner,) = port.leases(pool)
    assert lease.hold_until and sooner.hold_until and sooner.hold_until < lease.hold_until
    longer = port.admission.hold(lease.id, 600.0)
    assert longer.hold_until and longer.hold_until > lease.hold_until, "who means it can extend it"


def is_over(port: Harbour, pool: str) -> bool | None:
    """Return whether everything of a pool has ended."""
    return True if not port.leases(pool) else None


@pytest.mark.parametrize("more", [(), ("--delay", "1h")])
def test_a_release_that_comes_too_late_says_so(
    port: Harbour, handle: str, more: tuple[str, ...]
) -> None:
    """A lease that ended by its hold or its TTL: success, and a note explains why it ended."""
    for wish, cause in ((("--hold", "100ms"), "hold_over"), (("--ttl", "1s"), "ttl_over")):
        pool = port.pool()
        port.finished("lease", "acquire", "--pool", pool, *wish, "--handle", handle)
        eventually(partial(is_over, port, pool))
        (ended,) = port.ended(pool)
        done = port.finished("lease", "release", "--handle", handle, *more)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"moorage: lease {ended.id} had ended before: {cause}\n"
        assert not Path(handle).exists()


def test_another_attempt(port: Harbour, handle: str) -> None:
    """`retry` releases and acquires in one step: a new lease, and the old one has ended."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--handle", handle)
    (first,) = port.leases(pool)
    again = port.finished("lease", "retry", "--handle", handle, "--json")
    (second,) = port.leases(pool)
    assert [one["id"] for one in json.loads(again.stdout)["leases"]] == [second.id]
    assert second.id != first.id
    assert [one.cause for one in port.ended(pool)] == ["retried"]
    port.finished("lease", "release", "--handle", handle)
    assert port.finished("lease", "retry", "--handle", handle).returncode == 3


def test_another_attempt_after_the_lease_has_ended(port: Harbour, handle: str) -> None:
    """Without a lease in the file, `retry` acquires one."""
    pool = port.pool()
    port.finished("lease", "acquire", "--pool", pool, "--hold", "100ms", "--handle", handle)
    eventually(lambda: port.ended(pool) or None)
    assert port.finished("lease", "retry", "--handle", handle).returncode == 0
    assert len([*port.admission.leases(pool=pool)]) == 2


def test_a_handle_in_a_temporary_file(port: Harbour) -> None:
    """Without --handle the name of a new file is printed."""
    pool = port.pool()
    handle = port.finished("lease", "acquire", "--pool", pool).stdout.strip()
    assert len(port.leases(pool)) == 1
    assert port.finished("lease", "release", "--handle", handle).returncode == 0
    assert not Path(handle).exists()
    refused = port.finished("lease", "acquire", "--pool", "no/such/pool")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_a_trap_releases(port: Harbour, handle: str) -> None:
    """The output of `moorage trap` releases at the end of a script, before earlier traps."""
    pool = port.pool()
    us = " ".join(single.command())
    script = f"""
        set -e
        trap 'echo before $?' EXIT
        {us} lease acquire --pool {pool} --handle {handle} >&2
        {us} trap --handle {handle} > {handle}.trap
        source {handle}.trap
        exit 3
    """
    environment = {**single.BARE, **port.where()}
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "before 3\n"), done.stderr
    assert [one.cause for one in port.ended(pool)] == ["released"]
