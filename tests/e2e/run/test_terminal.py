"""`moorage run` on a real terminal with a real lease: the command never runs without renewals."""

import shlex

from tests.client.run.test_terminal import PAGER
from tests.client.screen import Screen, parent, shell_command, state
from tests.client.screen import eventually as so
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import Harbour, eventually, line


def test_beside_a_pager_the_lease_is_renewed(port: Harbour) -> None:
    """While the pager waits for a key, the lease of the command outlasts its TTL."""
    pool = port.pool(ttl=2.0)
    inner = shell_command("run", "--pool", pool, "--", "bash", "-c", "echo one; exec sleep 1000")
    screen = Screen(f"{inner} | {PAGER} > /dev/null; echo code $?", **port.where())
    eventually(lambda: port.leases(pool) or None)
    port.outlasts_its_ttl(pool)
    screen.type("\x03")
    screen.read_rest()
    screen.exit_code()
    eventually(lambda: True if not port.leases(pool) else None)
    assert [lease.cause for lease in port.ended(pool)] == ["released"]


def test_what_was_stopped_too_long_does_not_go_on(port: Harbour) -> None:
    """Another holder has the unit by then: `fg` ends the command before it does anything."""
    pool = port.pool(ttl=2.0)
    script = "w=worked; echo pid=$$.; trap 'echo $w-on' CONT; read x < /dev/tty; echo $w-on"
    inner = shell_command("run", "--pool", pool, "--", "bash", "-c", script)
    screen = Screen(f"{inner}; echo stopped; read go; fg; echo code $?", **port.where())
    pid = screen.read_number("pid")
    screen.type("\x1a")
    screen.until("stopped")
    so(lambda: (state(pid), state(parent(pid))) == ("T", "T"))
    with port.started("run", "--pool", pool, "--", *WAITING) as other:
        assert line(other) == "up\n"
        screen.type("go\n")
        said = screen.until("code 120")
        assert "the lease is lost" in said
        assert "worked-on" not in said
        screen.read_rest()
        assert screen.exit_code() == 0


def test_a_line_of_ours_does_not_stop_us(port: Harbour) -> None:
    """On a terminal that stops background writers, messages are still printed."""
    pool = port.pool(ttl=2.0)
    script = "echo up; read x; echo got $x"
    inner = shell_command("run", "--pool", pool, "--on-lost", "warn", "--", "bash", "-c", script)
    screen = Screen(f"stty tostop; {inner}; echo code $?", **port.where())
    screen.until("up")
    port.admission.revoke(port.leases(pool)[0].id, "a reason")
    screen.until("continues without it")
    screen.type("hello\n")
    screen.until("got hello")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_a_loop_is_left_by_an_interrupt_in_line(port: Harbour) -> None:
    """Ctrl-C while waiting ends the loop around the command, and leaves the line."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", *WAITING) as holder:
        line(holder)
        inner = shell_command("run", "--pool", pool, "--", "true")
        loop = f"for n in 1 2; do {inner} | cat; echo on $n; done"
        screen = Screen(shlex.join(["bash", "-c", loop]), **port.where())
        port.waiting(pool)
        screen.type("\x03")
        assert "on 2" not in screen.read_rest()
        screen.exit_code()
        assert len(port.leases(pool)) == 1
