"""A run inside a run: two that would wait for each other are refused at once."""

import shlex

from tests.client import single
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, line

TELLS = 'echo "$MOORAGE_LEASE_ID|$MOORAGE_LEASE_POOL|$MOORAGE_LEASE_OUTER"'


def nested(*words: str, script: str = TELLS) -> list[str]:
    """Return the command that runs a script with another lease."""
    return single.command("run", *words, "--", "sh", "-c", script)


def test_a_run_of_the_same_pool_is_refused(port: Harbour) -> None:
    """The refusal comes at once and names the reason, also with best effort, as it is a mistake."""
    pool, other = port.pool(limit=5), port.pool(limit=5)
    for words in ((), ("--best-effort",), ("--pool", other)):
        done = port.finished("run", "-p", pool, "--", *nested("--pool", pool, *words))
        assert (done.returncode, done.stdout) == (121, ""), done.stderr
        assert f"of {pool}, and this command would wait" in done.stderr
    assert port.leases(pool) + port.leases(other) == []


def test_a_run_can_share_the_outer_lease(port: Harbour) -> None:
    """The inner run has that lease's variables, requests nothing and releases nothing."""
    pool, other = port.pool(limit=2), port.pool()
    inner = nested("--pool", pool, "--nested", "share", script=f"{TELLS}; exit 7")
    script = f"{TELLS}; {shlex.join(inner)}; echo $?; read line"
    with port.started("run", "-p", f"{pool}=2", "--", "bash", "-c", script) as outer:
        (first, second) = (line(outer), line(outer))
        (lease,) = port.leases(pool)
        assert first == second == f"{lease.id}|{pool}|\n"
        assert line(outer) == "7\n"
        assert [one.state for one in port.leases(pool)] == ["granted"]
        outer.communicate("\n", SECONDS)
        assert outer.returncode == 0
    # Only the units of the outer lease can be shared.
    for words in (("--pool", f"{pool}=2"), ("--pool", pool, "--pool", other)):
        inner = nested(*words, "--nested", "share")
        done = port.finished("run", "-p", pool, "--", *inner)
        assert (done.returncode, done.stdout) == (121, "")


def test_a_run_can_wait_for_one_more(port: Harbour) -> None:
    """An option states that the pool is large enough for both."""
    pool = port.pool(limit=2)
    inner = nested("--pool", pool, "--nested", "wait")
    done = port.finished("run", "-p", pool, "--", *inner)
    # The inner lease was requested later.
    outer_lease, inner_lease = port.ended(pool)
    assert done.stdout == f"{inner_lease.id}|{pool}|{outer_lease.id}\n", done.stderr


def test_the_outermost_of_several_is_remembered(port: Harbour) -> None:
    """Between the two of one pool there is a run with a lease of another pool."""
    pool, other = port.pool(limit=5), port.pool()
    innermost = nested("--pool", pool)
    between = nested("--pool", other, script=f"{TELLS}; {shlex.join(innermost)}")
    done = port.finished("run", "-p", pool, "--", *between)
    assert done.returncode == 121
    assert "would wait" in done.stderr
    (inner_lease,), (outer_lease,) = port.ended(other), port.ended(pool)
    assert done.stdout == f"{inner_lease.id}|{other}|{outer_lease.id}\n"


def test_what_is_over_is_not_waited_for(port: Harbour) -> None:
    """The outer hold is over, or its lease belongs to another server: an ordinary run."""
    pool = port.pool()
    inner = shlex.join(nested("--pool", pool, script="echo inner"))
    script = f"echo up; read line; {inner}"
    with port.started("run", "-p", pool, "--hold", "1s", "--", "sh", "-c", script) as outer:
        assert line(outer) == "up\n"
        with port.started("run", "-p", pool, "--", *WAITING) as next_one:
            assert line(next_one) == "up\n"
            assert next_one.communicate("\n", SECONDS)[0] == "done\n"
        said, told = outer.communicate("\n", SECONDS)
        assert said == "inner\n", told
    elsewhere = {"MOORAGE_LEASE_ID": "5f0c2f5e-0000-4000-8000-000000000001"}
    words = ("run", "-p", pool, "--", "echo", "ran")
    assert single.finished(*words, **port.where(), **elsewhere).stdout == "ran\n"
