"""`moorage run` while its server is away: no command is ended, no lease is lost.

A TTL of seconds replaces one of minutes: what counts is the length of an outage relative to it.
`MOORAGE_SOAK` adds an outage of five minutes, with the default TTL of pools.
"""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.run.test_run import TRAPPED, WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, harbour, line, tell
from tests.e2e.support.relay import Relay
from tests.e2e.support.server import serve
from tests.support.seeds import SOAK

OUTAGE_SECONDS = 300.0


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Harbour]:
    """A server for one test, which may kill it."""
    with harbour(tmp_path) as found:
        yield found


def told(process: subprocess.Popen[str], words: str) -> str:
    """Return the next line of standard error that contains these words."""
    assert process.stderr is not None
    for said in process.stderr:
        if words in said:
            return said
    raise AssertionError(f"it ends without a word of {words!r}")


def outlives_an_outage(mortal: Harbour, folder: Path, pool: str, seconds: float | None) -> None:
    """Kill the server while two commands run, start it again, and let them end.

    The outage lasts for `seconds`; None: until both commands report that their TTL is over.
    """
    with Relay(mortal.server.url) as relay, ExitStack() as stack:
        runs = [
            stack.enter_context(
                mortal.started("run", "--pool", pool, *more, "--", *WAITING, url=relay.url)
            )
            for more in ((), ("--on-lost", "kill"))
        ]
        for process in runs:
            assert line(process) == "up\n"
        names = {lease.id for lease in mortal.leases(pool)}
        mortal.server.stop(signal.SIGKILL)
        began, tried = time.monotonic(), relay.tried
        for process in runs:
            if seconds is None:
                assert "may have ended" in told(process, "not renewed in time")
                continue
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(max(0.0, began + seconds - time.monotonic()))
        assert relay.tried > tried, "nobody has noticed the outage"
        with serve(folder / "moorage.sqlite", "--no-access-log") as second:
            heard = len(relay.heard)
            relay.aim(second.url)
            for process in runs if seconds is None else ():
                told(process, "the server answers again: the lease is renewed")
            renewals = [f"/v1/leases/{name}/renew" for name in names]
            eventually(
                lambda: (
                    all(any(one in said for said in relay.heard[heard:]) for one in renewals)
                    or None
                )
            )
            after = Harbour(second, mortal.token)
            assert {lease.id for lease in after.leases(pool)} == names
            for process in runs:
                assert process.communicate("\n", SECONDS)[0] == "done\n"
                assert process.returncode == 0
            ended = {(lease.id, lease.cause) for lease in after.ended(pool)}
            assert ended == {(name, "released") for name in names}
            assert after.leases(pool) == []


def test_an_outage_longer_than_the_ttl_ends_no_command(mortal: Harbour, tmp_path: Path) -> None:
    """The server is away until the lease may have ended: that is reported, the command continues.

    When the server is back, the lease is renewed, and released at the end.
    """
    outlives_an_outage(mortal, tmp_path, mortal.pool(limit=2, ttl=2.0), None)


@pytest.mark.skipif(not SOAK, reason="takes five minutes")
def test_an_outage_of_five_minutes_ends_no_command(mortal: Harbour, tmp_path: Path) -> None:
    """The same with the TTL that pools have by default."""
    outlives_an_outage(mortal, tmp_path, mortal.pool(limit=2), OUTAGE_SECONDS)


def test_an_outage_within_the_ttl_is_borne_in_silence(mortal: Harbour, tmp_path: Path) -> None:
    """The same lease continues, and nothing is printed."""
    pool = mortal.pool(ttl=15.0)
    with (
        Relay(mortal.server.url) as relay,
        mortal.started("run", "--pool", pool, "--", *WAITING, url=relay.url) as process,
    ):
        assert line(process) == "up\n"
        (lease,) = mortal.leases(pool)
        mortal.server.stop(signal.SIGKILL)
        tried = relay.tried
        eventually(lambda: True if relay.tried > tried else None)
        with serve(tmp_path / "moorage.sqlite", "--no-access-log") as second:
            relay.aim(second.url)
            after = Harbour(second, mortal.token)

            eventually(lambda: True if any("/renew" in one for one in relay.heard) else None)
            assert [one.id for one in after.leases(pool)] == [lease.id]
            said, errors = process.communicate("\n", SECONDS)
            assert (said, process.returncode) == ("done\n", 0)
            assert errors.count("\n") == 1, errors
            assert [(one.id, one.cause) for one in after.ended(pool)] == [(lease.id, "released")]


def test_those_who_wait_outlive_a_restart(mortal: Harbour, tmp_path: Path) -> None:
    """The server is killed and restarted: the holder keeps its lease, the ticket its place."""
    pool = mortal.pool(ttl=10.0)
    with (
        Relay(mortal.server.url) as relay,
        mortal.started("run", "--pool", pool, "--", *WAITING, url=relay.url) as one,
        mortal.started("run", "--pool", pool, "--", *WAITING, url=relay.url) as other,
    ):
        mortal.waiting(pool)
        names = [lease.id for lease in mortal.leases(pool)]
        mortal.server.stop(signal.SIGKILL)
        with serve(tmp_path / "moorage.sqlite", "--no-access-log") as second:
            relay.aim(second.url)
            after = Harbour(second, mortal.token)
            # Either of the two may have been first.
            tell(one)
            tell(other)
            assert (one.wait(SECONDS), other.wait(SECONDS)) == (0, 0)
            assert [(lease.id, lease.cause) for lease in after.ended(pool)] == [
                (name, "released") for name in names
            ]


def test_what_was_granted_to_another_meanwhile_is_lost(port: Harbour) -> None:
    """A cut network is not an outage of the server: when its answer arrives, it counts."""
    pool = port.pool(ttl=2.0)
    with (
        Relay(port.server.url) as relay,
        port.started("run", "--pool", pool, "--", *TRAPPED, url=relay.url) as process,
    ):
        assert line(process) == "up\n"
        relay.cut()
        told(process, "not renewed in time")
        with port.started("run", "--pool", pool, "--", *WAITING) as other:
            assert line(other) == "up\n"
            relay.aim(port.server.url)
            assert line(process) == "term\n"
            assert process.wait(SECONDS) == 120
            assert other.communicate("\n", SECONDS)[0] == "done\n"


def test_a_lost_place_in_line_is_told(port: Harbour) -> None:
    """Cut off for longer than --patience, it requests again, and reports that it is last now."""
    pool = port.pool()
    with (
        Relay(port.server.url) as relay,
        port.started("run", "--pool", pool, "--", *WAITING) as holder,
    ):
        line(holder)
        words = ("--patience", "1s", "--", "echo", "ran")
        with port.started("run", "--pool", pool, *words, url=relay.url) as waiter:
            (ticket,) = port.waiting(pool)
            relay.cut()
            (unheard,) = eventually(lambda: port.ended(pool) or None)
            assert (unheard.id, unheard.cause) == (ticket.id, "unheard")
            relay.aim(port.server.url)
            assert "at the end of the line" in told(waiter, "the place in line is lost")
            port.waiting(pool)
            tell(holder)
            assert waiter.communicate(timeout=SECONDS)[0] == "ran\n"
    assert [one.cause for one in port.ended(pool)] == ["released", "unheard", "released"]


def test_a_ttl_is_never_above_the_longest_of_the_pools(port: Harbour) -> None:
    """The default TTL; a named one must be permitted. A second start finds its key."""
    pool, other = port.pool(limit=3), port.pool(limit=3, ttl=5.0)
    for pools, ttl in (((pool,), 600.0), ((other,), 5.0), ((pool, other), 5.0)):
        words = [word for name in pools for word in ("--pool", name)]
        assert port.finished("run", *words, "--", "true").returncode == 0
        assert port.ended(pools[-1])[-1].ttl == ttl
    named = ("--pool", other, "--ttl", "6s")
    assert port.finished("run", *named, "--", "true").returncode == 121
    assert port.finished("lease", "acquire", *named).returncode == 3


def test_a_key_file_finds_a_lease_with_a_shorter_ttl(port: Harbour, tmp_path: Path) -> None:
    """The TTL that the pool permits is not a different request."""
    pool, key = port.pool(ttl=20.0), str(tmp_path / "key")
    words = ("run", "--pool", pool, "--key-file", key, "--")
    with port.started(*words, *WAITING) as killed:
        line(killed)
        killed.kill()
    (lease,) = port.leases(pool)
    again = port.finished(*words, "sh", "-c", "echo $MOORAGE_LEASE_ID")
    assert again.stdout == f"{lease.id}\n", again.stderr
