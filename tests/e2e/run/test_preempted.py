"""A preemptible command makes room for requests that go before it, with a code of its own."""

from tests.e2e.run.test_run import TRAPPED, WAITING
from tests.e2e.support.carried import SECONDS, Harbour, line


def test_a_command_is_preempted(port: Harbour) -> None:
    """It gets SIGTERM and exits with 116; the other one starts when it has ended, not before."""
    pool = port.pool()
    with port.started("run", "-p", pool, "--preemptible", "--grace", "30s", "--", *TRAPPED) as low:
        line(low)
        with port.started("run", "-p", pool, "--priority", "1", "--", "echo", "high") as high:
            assert line(low) == "term\n"
            _, err = low.communicate(timeout=SECONDS)
            assert low.returncode == 116, err
            assert "goes before it" in err
            assert high.communicate(timeout=SECONDS)[0] == "high\n"


def test_a_command_that_does_not_stop_loses_its_lease(port: Harbour) -> None:
    """One grace later its units are the other one's."""
    pool = port.pool()
    options = ("--preemptible", "--grace", "1s", "--on-lost", "warn")
    with port.started("run", "-p", pool, *options, "--", *WAITING) as low:
        line(low)
        with port.started("run", "-p", pool, "--priority", "1", "--", "echo", "high") as high:
            assert high.communicate(timeout=SECONDS)[0] == "high\n"
        low.communicate("\n", SECONDS)
    assert "preempted" in [one.cause for one in port.ended(pool)]


def test_a_grace_needs_a_lease_that_may_be_stopped(port: Harbour) -> None:
    """Wrong usage, before anything is asked."""
    with port.started("run", "-p", port.pool(), "--grace", "30s", "--", "echo", "x") as one:
        out, err = one.communicate(timeout=SECONDS)
    assert (one.returncode, out) == (125, ""), err
    assert "--preemptible" in err
