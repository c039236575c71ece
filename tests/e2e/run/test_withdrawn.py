"""Who waits learns that its ticket was withdrawn or revoked, by whom, and does not ask again."""

import json
from pathlib import Path

import pytest

from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, line


@pytest.mark.parametrize(
    "options", [(), ("--best-effort",), ("--best-effort-always",), ("--key", "withdrawn")]
)
def test_a_withdrawn_run_ends(port: Harbour, options: tuple[str, ...]) -> None:
    """`lease release TICKET` ends the run with its own code; its command never runs."""
    pool = port.pool()
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started("run", "-p", pool, *options, "--", "echo", "ran") as waiter:
            (ticket,) = port.waiting(pool)
            assert port.finished("lease", "release", ticket.id).returncode == 0
            out, err = waiter.communicate(timeout=SECONDS)
        assert (waiter.returncode, out) == (119, ""), err
        assert f"ticket {ticket.id} was withdrawn by admin" in err
        assert "asking again" not in err
        assert len(port.leases(pool)) == 1
        holder.communicate("\n", SECONDS)


def test_a_revoked_run_ends(port: Harbour) -> None:
    """The message has the operator's reason, and the code is another one."""
    pool = port.pool()
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started("run", "-p", pool, "--best-effort-always", "--", "echo") as waiter:
            (ticket,) = port.waiting(pool)
            port.admission.revoke(ticket.id, "maintenance")
            out, err = waiter.communicate(timeout=SECONDS)
        assert (waiter.returncode, out) == (118, ""), err
        assert "maintenance" in err
        assert len(port.leases(pool)) == 1
        holder.communicate("\n", SECONDS)


@pytest.mark.parametrize(
    ("revoked", "code", "word"), [(False, 8, "withdrawn"), (True, 9, "revoked")]
)
def test_a_withdrawn_acquire_ends(
    port: Harbour, tmp_path: Path, revoked: bool, code: int, word: str
) -> None:
    """`lease acquire` has codes of its own, prints no handle, and drops the file."""
    pool, handle = port.pool(), tmp_path / "handle"
    words = ("lease", "acquire", "-p", pool, "--handle", str(handle), "--json")
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        with port.started(*words) as waiter:
            (ticket,) = port.waiting(pool)
            if revoked:
                port.admission.revoke(ticket.id, "maintenance")
            else:
                port.finished("lease", "release", ticket.id)
            out, err = waiter.communicate(timeout=SECONDS)
        assert (waiter.returncode, out) == (code, ""), err
        assert json.loads(err.splitlines()[-1])["error"]["code"] == word
        assert not handle.exists()
        holder.communicate("\n", SECONDS)
    assert port.leases(pool) == []
