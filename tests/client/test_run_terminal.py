"""Job control on a real terminal: pipelines, pagers, /dev/tty, Ctrl-C, Ctrl-Z, background jobs."""

import os
import shlex
from pathlib import Path

import pytest

from tests.client.screen import Screen, eventually, parent, quoted, state
from tests.client.single import PYTHON, command

RUN = ("run", "--pool", "p", "--")
"""Without a server: what is told here is about the terminal alone."""

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
"""Shows a line, then changes the settings of the terminal and waits for a key, as pagers do."""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe in the file system: a command that reads it goes on when the test `opens` it."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def opens(gate: Path) -> None:
    """Let a command go on."""
    gate.write_text("go\n")


def run(script: str) -> str:
    """Return the command line that carries a script."""
    return quoted(*RUN, "bash", "-c", script)


def test_a_pager_has_the_terminal(gate: Path) -> None:
    """Neither the pager nor we are stopped when it asks for a key, and the command goes on."""
    screen = Screen(f"{run(f'echo one; read x < {gate}; echo two')} | {PAGER}; echo code $?")
    screen.until("page one")
    screen.until("ready")
    screen.type("x\n")
    screen.until("key x")
    opens(gate)
    screen.until("more two")
    screen.until("code 0")
    assert screen.ended() == 0


def test_the_command_and_the_pager_take_turns(gate: Path) -> None:
    """Whoever asks for the terminal gets it, as often as that is."""
    asks = "read a < /dev/tty; echo first $a"
    again = f"read x < {gate}; echo asking > /dev/tty; read b < /dev/tty; echo second $b"
    screen = Screen(f"{run(f'echo asking > /dev/tty; {asks}; {again}')} | {PAGER}; echo code $?")
    screen.until("asking")
    screen.type("a\n")
    screen.until("page first a")
    screen.until("ready")
    screen.type("k\n")
    screen.until("key k")
    opens(gate)
    screen.until("asking")
    screen.type("b\n")
    screen.until("more second b")
    screen.until("code 0")
    assert screen.ended() == 0


def test_a_question_at_the_terminal_beside_piped_input() -> None:
    """Standard input is a pipe, and the command asks at /dev/tty: it gets its answer."""
    asks = 'read a; echo asking; read b < /dev/tty; echo "got $a $b"'
    screen = Screen(f"echo word | {run(asks)}; echo code $?")
    screen.until("asking")
    screen.type("x\n")
    screen.until("got word x")
    screen.until("code 0")
    assert screen.ended() == 0


def test_a_grandchild_asks_at_the_terminal() -> None:
    """Also if it is not the command itself that asks."""
    inner = shlex.quote('echo asking; read b < /dev/tty; echo "got $b"')
    screen = Screen(f"echo word | {run(f'bash -c {inner}; echo after')} | cat; echo code $?")
    screen.until("asking")
    screen.type("x\n")
    screen.until("got x")
    screen.until("after")
    assert screen.ended() == 0


def test_a_password_is_asked_for() -> None:
    """It changes the settings of the terminal, which the kernel stops others for, too."""
    asks = "import getpass; print('got', getpass.getpass('asking'))"
    screen = Screen(f"echo word | {quoted(*RUN, PYTHON, '-c', asks)} | cat; echo code $?")
    screen.until("asking")
    screen.type("secret\n")
    screen.until("got secret")
    assert screen.ended() == 0


@pytest.mark.parametrize("asks", ["read b < /dev/tty", "sleep 1000"])
def test_an_interrupt_ends_a_pipeline(asks: str) -> None:
    """Whoever has the terminal then: Ctrl-C ends the command and us."""
    screen = Screen(f"echo word | {run(f'echo pid=$$.; {asks}')} | cat; echo on $?")
    pid = screen.number("pid")
    we = parent(pid)
    if "tty" in asks:
        eventually(lambda: os.getpgid(pid) == foreground(pid))
    screen.type("\x03")
    screen.rest()
    screen.ended()
    eventually(lambda: {state(pid), state(we)} <= {"-", "Z"})


def foreground(pid: int) -> int:
    """Return the process group that has the foreground of a process's terminal."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[5])


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("pipe", ["", " | cat"])
def test_a_stop_at_the_terminal_stops_all(gate: Path, heeds: bool, pipe: str) -> None:
    """Ctrl-Z: while we are stopped, nobody renews its lease, so the command never runs on.

    Also if it does not heed it, as long as the terminal is ours; else it is its own to heed.
    """
    trap = "" if heeds else "trap '' TSTP; "
    inner = run(f"{trap}echo pid=$$.; read x < {gate}; echo done")
    screen = Screen(f"{inner}{pipe or ' < /dev/null'}; echo stopped $?; read x; fg; echo code $?")
    pid = screen.number("pid")
    we = parent(pid)
    screen.type("\x1a")
    screen.until("stopped 148")
    assert (state(pid), state(we)) == ("T", "T")
    screen.type("\n")
    eventually(lambda: state(pid) == "S" == state(we))
    opens(gate)
    screen.until("done")
    screen.until("code 0")
    assert screen.ended() == 0


def test_a_background_job_that_wants_the_terminal() -> None:
    """It is stopped as a whole, as the shell tells; in the foreground it gets what it wants."""
    inner = run("echo pid=$$.; read x < /dev/tty; echo got $x")
    screen = Screen(f"{inner} & read go; fg; echo code $?")
    pid = screen.number("pid")
    we = parent(pid)
    eventually(lambda: (state(pid), state(we)) == ("T", "T"))
    screen.type("go\n")
    eventually(lambda: "T" not in (state(pid), state(we)))
    screen.type("y\n")
    screen.until("got y")
    screen.until("code 0")
    assert screen.ended() == 0


def test_where_nobody_could_let_us_go_on_nothing_stops() -> None:
    """We are the first process of the terminal, as in a container: Ctrl-Z ends nothing for good."""
    screen = Screen("", *command(*RUN, "bash", "-c", "echo up; read x; echo got $x; exit 4"))
    screen.until("up")
    screen.type("\x1a")
    screen.type("hello\n")
    screen.until("got hello")
    assert screen.ended() == 4


def test_a_command_substitution_asks() -> None:
    """There nothing can be stopped, so what may ask for the terminal has it from the beginning."""
    inner = run("echo asking > /dev/tty; read x < /dev/tty; echo $x")
    script = f"x=$({inner}); echo got $x"
    screen = Screen("", "/bin/bash", "--norc", "-i", "-c", script)
    screen.until("asking")
    screen.type("hello\n")
    screen.until("got hello")
    screen.rest()
    assert screen.ended() == 0


def test_a_script_reads_beside_the_command(gate: Path) -> None:
    """Who shares our process group can read from the terminal while the command has it."""
    inner = run(f"echo up; read x < {gate}; echo done")
    script = f"{inner} < /dev/tty & read -r x; echo got $x; echo go > {gate}; wait"
    screen = Screen(shlex.join(["bash", "-c", script]))
    screen.until("up")
    screen.type("y\n")
    screen.until("got y")
    screen.until("done")
    assert screen.ended() == 0
