"""Of a group only the newest request waits: the older ones end with a code of their own."""

import json
from pathlib import Path

import pytest

from tests.e2e.run.test_run import TRAPPED, WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, line

GROUP = ("--supersede", "main")


@pytest.mark.parametrize("options", [(), ("--best-effort-always",), ("--key", "superseded")])
def test_a_newer_run_waits_instead(port: Harbour, options: tuple[str, ...]) -> None:
    """The older one ends, and its command never runs; the newer one has its place in line."""
    pool = port.pool()
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started("run", "-p", pool, *GROUP, *options, "--", "echo", "old") as old:
            (ticket,) = port.waiting(pool)
            with port.started("run", "-p", pool, "--", "echo", "between") as between:
                port.waiting(pool, 2)
                with port.started("run", "-p", pool, *GROUP, "--", "echo", "new") as new:
                    out, err = old.communicate(timeout=SECONDS)
                    assert (old.returncode, out) == (117, ""), err
                    first, _ = port.waiting(pool, 2)
                    assert f"ticket {ticket.id} was superseded by the newer {first.id}" in err
                    assert first.labels["pid"] == str(new.pid)
                    holder.communicate("\n", SECONDS)
                    assert new.communicate(timeout=SECONDS)[0] == "new\n"
                assert between.communicate(timeout=SECONDS)[0] == "between\n"


def test_a_run_without_the_group_waits_on(port: Harbour) -> None:
    """The control: neither one without a group nor one of another group ends."""
    pool = port.pool()
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with (
            port.started("run", "-p", pool, "--", "echo", "plain") as plain,
            port.started("run", "-p", pool, "--supersede", "other", "--", "echo", "x") as other,
        ):
            port.waiting(pool, 2)
            with port.started("run", "-p", pool, *GROUP, "--", "echo", "new") as new:
                port.waiting(pool, 3)
                holder.communicate("\n", SECONDS)
                said = [one.communicate(timeout=SECONDS)[0] for one in (plain, other, new)]
    assert said == ["plain\n", "x\n", "new\n"]


def test_a_newer_run_stops_the_holder(port: Harbour) -> None:
    """Its command gets SIGTERM; the newer one starts when it has ended, not before."""
    pool = port.pool()
    with port.started("run", "-p", pool, *GROUP, "--", *TRAPPED) as holder:
        line(holder)
        cancelling = ("run", "-p", pool, *GROUP, "--cancel-running", "--", "echo", "new")
        with port.started(*cancelling) as newer:
            assert line(holder) == "term\n"
            _, err = holder.communicate(timeout=SECONDS)
            assert holder.returncode == 117, err
            assert newer.communicate(timeout=SECONDS)[0] == "new\n"
    assert [one.cause for one in port.ended(pool)] == ["released", "released"]


def test_a_holder_that_does_not_stop_loses_its_lease(port: Harbour) -> None:
    """One TTL later its units are the newer one's, however often it renews."""
    pool = port.pool(ttl=2.0)
    with port.started("run", "-p", pool, *GROUP, "--on-lost", "warn", "--", *WAITING) as holder:
        line(holder)
        newer = port.finished("run", "-p", pool, *GROUP, "--cancel-running", "--", "echo", "new")
        assert (newer.returncode, newer.stdout) == (0, "new\n"), newer.stderr
        assert holder.poll() is None
        _, err = holder.communicate("\n", SECONDS)
        assert "of its group asks it to stop" in err
    assert [one.cause for one in port.ended(pool)] == ["superseded", "released"]


def test_a_superseded_acquire_ends(port: Harbour, tmp_path: Path) -> None:
    """`lease acquire` has a code of its own, prints no handle, and drops the file."""
    pool, handle = port.pool(), tmp_path / "handle"
    words = ("lease", "acquire", "-p", pool, *GROUP, "--handle", str(handle), "--json")
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started(*words) as old:
            port.waiting(pool)
            with port.started("run", "-p", pool, *GROUP, "--", "echo") as newer:
                out, err = old.communicate(timeout=SECONDS)
                assert (old.returncode, out) == (11, ""), err
                assert json.loads(err.splitlines()[-1])["error"]["code"] == "superseded"
                assert not handle.exists()
                holder.communicate("\n", SECONDS)
                newer.communicate(timeout=SECONDS)
    eventually(lambda: True if port.leases(pool) == [] else None)


def test_a_killed_waiter_does_not_supersede_its_newer_one(port: Harbour) -> None:
    """A client whose ticket was lost as unheard finds the newer one, and does not ask again."""
    pool = port.pool()
    patient = ("run", "-p", pool, *GROUP, "--patience", "1s")
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started(*patient, "--", "echo", "old") as old:
            port.waiting(pool)
            old.send_signal(19)  # SIGSTOP: a suspended machine
            eventually(lambda: True if not port.waiting(pool, 0) else None)
            with port.started("run", "-p", pool, *GROUP, "--", "echo", "new") as newer:
                (ticket,) = port.waiting(pool)
                old.send_signal(18)
                out, err = old.communicate(timeout=SECONDS)
                assert (old.returncode, out) == (117, ""), err
                assert ticket.id in err
                holder.communicate("\n", SECONDS)
                assert newer.communicate(timeout=SECONDS)[0] == "new\n"
