"""`moorage run` learns from the server that its lease has ended, long before its next renewal."""

from moorage.client.run.clock import elapsed
from tests.e2e.run.test_run import TRAPPED, WAITING
from tests.e2e.support.carried import SECONDS, Harbour, line

AT_ONCE = 10.0
"""Seconds that a busy machine may take; the next renewal comes after 200."""


def test_a_revoked_holder_is_told_at_once(port: Harbour) -> None:
    """The command is ended, although its lease would last for ten minutes."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *TRAPPED) as process:
        line(process)
        (lease,) = port.leases(pool)
        assert lease.ttl == 600.0
        revoked = elapsed()
        port.admission.revoke(lease.id, "needed elsewhere")
        assert line(process) == "term\n"
        assert elapsed() - revoked < AT_ONCE
        _, told = process.communicate(timeout=SECONDS)
        assert process.returncode == 120
        assert "revoked: needed elsewhere" in told


def test_the_end_of_a_hold_is_told_at_once(port: Harbour) -> None:
    """The hold was moved meanwhile: that is not a loss, and the local clock cannot know it."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--hold", "1h", "--", *WAITING) as process:
        line(process)
        (lease,) = port.leases(pool)
        moved = elapsed()
        port.admission.hold(lease.id, 0.5)
        assert process.stderr is not None
        process.stderr.readline()
        assert "the hold is over" in process.stderr.readline()
        assert elapsed() - moved < AT_ONCE
        assert process.communicate("\n", SECONDS)[0] == "done\n"
