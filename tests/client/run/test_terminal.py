"""Job control on a real terminal: pipelines, pagers, /dev/tty, Ctrl-C, Ctrl-Z, background jobs."""

import os
import shlex
from pathlib import Path

import pytest

from tests.client.screen import Screen, eventually, parent, shell_command, state
from tests.client.single import PYTHON, command

RUN = ("run", "--unlimited-without-server", "--pool", "p", "--")
"""No server is set, so these tests are only about the terminal."""

PAGER = shlex.join(
    (
        PYTHON,
        "-c",
        """if True:
        import sys, termios
        print("page", sys.stdin.readline().strip(), flush=True)
        tty = open("/dev/tty")
        termios.tcsetattr(tty, termios.TCSADRAIN, termios.tcgetattr(tty))
        print("ready", flush=True)
        print("key", tty.readline().strip(), flush=True)
        for line in sys.stdin:
            print("more", line.strip(), flush=True)
        """,
    )
)
"""Prints a line, then changes the settings of the terminal and waits for a key, as pagers do."""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return a named pipe: a command that reads it continues when the test opens the gate."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def open_gate(gate: Path) -> None:
    """Let the command continue."""
    gate.write_text("go\n")


def run(script: str) -> str:
    """Return the command line of `moorage run` with a script."""
    return shell_command(*RUN, "bash", "-c", script)


def test_a_pager_has_the_terminal(gate: Path) -> None:
    """When the pager asks for a key, neither it nor `moorage run` is stopped."""
    screen = Screen(f"{run(f'echo one; read x < {gate}; echo two')} | {PAGER}; echo code $?")
    screen.until("page one")
    screen.until("ready")
    screen.type("x\n")
    screen.until("key x")
    open_gate(gate)
    screen.until("more two")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_the_command_and_the_pager_take_turns(gate: Path) -> None:
    """Each process that reads from the terminal gets it, repeatedly."""
    asks = "read a < /dev/tty; echo first $a"
    again = f"read x < {gate}; echo asking > /dev/tty; read b < /dev/tty; echo second $b"
    screen = Screen(f"{run(f'echo asking > /dev/tty; {asks}; {again}')} | {PAGER}; echo code $?")
    screen.until("asking")
    screen.type("a\n")
    screen.until("page first a")
    screen.until("ready")
    screen.type("k\n")
    screen.until("key k")
    open_gate(gate)
    screen.until("asking")
    screen.type("b\n")
    screen.until("more second b")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_a_question_at_the_terminal_with_piped_input() -> None:
    """With a pipe as standard input, the command can still read from /dev/tty."""
    asks = 'read a; echo asking; read b < /dev/tty; echo "got $a $b"'
    screen = Screen(f"echo word | {run(asks)}; echo code $?")
    screen.until("asking")
    screen.type("x\n")
    screen.until("got word x")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_a_grandchild_asks_at_the_terminal() -> None:
    """A process that the command started can also read from the terminal."""
    inner = shlex.quote('echo asking; read b < /dev/tty; echo "got $b"')
    screen = Screen(f"echo word | {run(f'bash -c {inner}; echo after')} | cat; echo code $?")
    screen.until("asking")
    screen.type("x\n")
    screen.until("got x")
    screen.until("after")
    assert screen.exit_code() == 0


def test_a_password_is_asked_for() -> None:
    """The prompt changes the settings of the terminal, which may also stop a process."""
    asks = "import getpass; print('got', getpass.getpass('asking'))"
    screen = Screen(f"echo word | {shell_command(*RUN, PYTHON, '-c', asks)} | cat; echo code $?")
    screen.until("asking")
    screen.type("secret\n")
    screen.until("got secret")
    assert screen.exit_code() == 0


@pytest.mark.parametrize("asks", ["read b < /dev/tty", "sleep 1000"])
def test_an_interrupt_ends_a_pipeline(asks: str) -> None:
    """Ctrl-C ends the command and `moorage run`, whichever has the terminal."""
    screen = Screen(f"echo word | {run(f'echo pid=$$.; {asks}')} | cat; echo on $?")
    pid = screen.read_number("pid")
    we = parent(pid)
    if "tty" in asks:
        eventually(lambda: os.getpgid(pid) == foreground(pid))
    screen.type("\x03")
    screen.read_rest()
    screen.exit_code()
    eventually(lambda: {state(pid), state(we)} <= {"-", "Z"})


def foreground(pid: int) -> int:
    """Return the foreground process group of a process's terminal."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[5])


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("pipe", ["", " | cat"])
def test_a_stop_at_the_terminal_stops_all(gate: Path, heeds: bool, pipe: str) -> None:
    """While `moorage run` is stopped it renews no lease, so the command is stopped, too.

    This includes a command that ignores SIGTSTP, as long as `moorage run` has the terminal.
    """
    trap = "" if heeds else "trap '' TSTP; "
    inner = run(f"{trap}echo pid=$$.; read x < {gate}; echo done")
    screen = Screen(f"{inner}{pipe or ' < /dev/null'}; echo stopped $?; read x; fg; echo code $?")
    pid = screen.read_number("pid")
    we = parent(pid)
    screen.type("\x1a")
    screen.until("stopped 148")
    assert (state(pid), state(we)) == ("T", "T")
    screen.type("\n")
    eventually(lambda: state(pid) == "S" == state(we))
    open_gate(gate)
    screen.until("done")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_a_background_job_that_wants_the_terminal() -> None:
    """The whole job is stopped; in the foreground it gets the terminal."""
    inner = run("echo pid=$$.; read x < /dev/tty; echo got $x")
    screen = Screen(f"{inner} & read go; fg; echo code $?")
    pid = screen.read_number("pid")
    we = parent(pid)
    eventually(lambda: (state(pid), state(we)) == ("T", "T"))
    screen.type("go\n")
    eventually(lambda: "T" not in (state(pid), state(we)))
    screen.type("y\n")
    screen.until("got y")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_the_first_process_of_a_terminal_does_not_stop() -> None:
    """As first process of a terminal, as in a container, Ctrl-Z would stop the command forever."""
    screen = Screen("", *command(*RUN, "bash", "-c", "echo up; read x; echo got $x; exit 4"))
    screen.until("up")
    screen.type("\x1a")
    screen.type("hello\n")
    screen.until("got hello")
    assert screen.exit_code() == 4


def test_a_command_substitution_asks() -> None:
    """In a command substitution nothing can be stopped, so the command has the terminal at once."""
    inner = run("echo asking > /dev/tty; read x < /dev/tty; echo $x")
    script = f"x=$({inner}); echo got $x"
    screen = Screen("", "/bin/bash", "--norc", "-i", "-c", script)
    screen.until("asking")
    screen.type("hello\n")
    screen.until("got hello")
    screen.read_rest()
    assert screen.exit_code() == 0


def test_a_script_reads_while_the_command_runs(gate: Path) -> None:
    """Other processes of our process group can read from the terminal while the command has it."""
    inner = run(f"echo up; read x < {gate}; echo done")
    script = f"{inner} < /dev/tty & read -r x; echo got $x; echo go > {gate}; wait"
    screen = Screen(shlex.join(["bash", "-c", script]))
    screen.until("up")
    screen.type("y\n")
    screen.until("got y")
    screen.until("done")
    assert screen.exit_code() == 0
