"""The command under a lease: its output, exit code, signals, descriptors and terminal."""

import os
import shlex
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.client.screen import Screen, shell_command, state
from tests.client.single import BARE, PYTHON, SECONDS, catching, command, finished, started

RUN = ("run", "--unlimited-without-server", "--pool", "p", "--")
"""No server is set, so these tests are only about the command."""


def python(code: str) -> tuple[str, ...]:
    """Return the arguments that run some Python code."""
    return (*RUN, PYTHON, "-c", code)


def test_output_and_exit_code_are_the_commands() -> None:
    """Standard output has only the command's output, and every exit code is passed on."""
    for code in (0, 1, 42, 120, 255):
        done = finished(*RUN, "sh", "-c", f"echo out; echo err >&2; exit {code}")
        assert (done.returncode, done.stdout) == (code, "out\n")
        assert done.stderr.endswith("err\n")
        assert len(done.stderr.splitlines()) == 2


def test_exit_code_of_a_command_that_a_signal_kills() -> None:
    """The exit code is 128 plus the number of the signal."""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
        assert finished(*RUN, "sh", "-c", f"kill -{int(number)} $$").returncode == 128 + number


def test_commands_that_cannot_be_run(tmp_path: Path) -> None:
    """The exit code is 127 if there is no such command, 126 if it cannot be executed.

    The error comes at once: no request is sent, even if a server is set.
    """
    plain, below = tmp_path / "plain", tmp_path / "below"
    plain.write_text("no program\n")
    below.mkdir()
    path = f"{tmp_path}:{below}:{BARE['PATH']}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        where = {"MOORAGE_URL": f"http://127.0.0.1:{listener.getsockname()[1]}", "PATH": path}
        for command, code, words in (
            ("no-such-command-anywhere", 127, "no such command"),
            (str(tmp_path / "none"), 127, "no such command"),
            (str(plain), 126, "is not executable"),
            ("plain", 126, "is not executable"),
            (str(below), 126, "is a directory"),
        ):
            done = finished(*RUN, command, **where)
            assert (done.returncode, done.stdout) == (code, ""), done.stderr
            assert done.stderr == f"moorage: {command}: {words}\n"
        with pytest.raises(BlockingIOError):
            listener.accept()
    (below / "plain").write_text("#!/bin/sh\nexit 6\n")
    (below / "plain").chmod(0o755)
    # A file that is not executable does not hide a later one on the path.
    assert finished(*RUN, "plain", PATH=path).returncode == 6


def test_nothing_runs_without_a_server() -> None:
    """Unless an option or its variable says so: 125 for `run`, else 2."""
    run = ("run", "--pool", "p")
    for words, value in (((), ""), ((), "0"), ((), "false"), (("--best-effort",), "no")):
        variables = {"MOORAGE_UNLIMITED_WITHOUT_SERVER": value}
        done = finished(*run, *words, "--", "echo", "never", **variables)
        assert (done.returncode, done.stdout) == (125, ""), done.stderr
        assert "MOORAGE_URL" in done.stderr and "MOORAGE_UNLIMITED_WITHOUT_SERVER" in done.stderr
    for name in ("acquire", "release", "renew", "retry"):
        done = finished("lease", name, *(run[1:] if name == "acquire" else ("--handle", "none")))
        assert (done.returncode, done.stdout) == (2, ""), name
    for yes in ("1", "True", "yes"):
        done = finished(*run, "--", "true", MOORAGE_UNLIMITED_WITHOUT_SERVER=yes)
        assert done.returncode == 0, yes
    assert finished(*run, "--", "true", MOORAGE_UNLIMITED_WITHOUT_SERVER="maybe").returncode == 125
    assert finished(*RUN, "true").returncode == 0


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_reach_the_whole_group(name: str) -> None:
    """A signal sent to `moorage run` reaches the command and all processes that it started."""
    inner = catching(name, "print('inner', flush=True)")
    outer = catching(name, "child.wait()", "print('outer')", "sys.exit(9)")
    # The outer process starts the inner one before it prints `up`.
    code = outer[2].replace("print('up'", f"child = subprocess.Popen({inner!r})\nprint('up'")
    with started(*RUN, *outer[:2], code) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
        process.send_signal(getattr(signal, f"SIG{name}"))
        output, _ = process.communicate(timeout=SECONDS)
    assert (output, process.returncode) == ("inner\nouter\n", 9)


def test_an_ignored_signal_stays_ignored() -> None:
    """Under nohup, SIGHUP ends neither `moorage run` nor the command."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)"
    script = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command(*python(code))]
    output = subprocess.run(script, env=BARE, capture_output=True, text=True, check=True).stdout
    assert output == "True\n"


def test_default_signals_are_default_in_the_command() -> None:
    """The command inherits no signal handling of `moorage run` or of Python."""
    names = "SIGTERM SIGINT SIGHUP SIGQUIT SIGCHLD SIGCONT SIGPIPE SIGTTOU"
    done = finished(*RUN, "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status")
    masks = {line.split()[0]: int(line.split()[1], 16) for line in done.stdout.splitlines()}
    for name in names.split():
        bit = 1 << (getattr(signal, name) - 1)
        assert not masks["SigIgn:"] & bit, name
        assert not masks["SigBlk:"] & bit, name


def test_descriptors_are_inherited() -> None:
    """The command inherits descriptors that the caller opened for it, but none of `moorage run`."""
    read, write = os.pipe()
    listing = f'ls /proc/self/fd | wc -l; echo "through" >&{write}'
    bare = subprocess.run(
        ["bash", "-c", listing],
        env=BARE,
        pass_fds=[write],
        capture_output=True,
        text=True,
        check=True,
    )
    carried = subprocess.run(
        command(*RUN, "bash", "-c", listing),
        env=BARE,
        pass_fds=[write],
        capture_output=True,
        text=True,
        check=True,
    )
    assert os.read(read, 100) == b"through\n" * 2
    assert carried.stdout == bare.stdout
    os.close(read)
    os.close(write)


def test_variables_of_an_outer_lease_are_removed() -> None:
    """Variables of an outer lease are removed; only its id is passed on, in a separate variable."""
    done = finished(*RUN, "env", MOORAGE_LEASE_ID="outer", MOORAGE_LEASE_TOKEN="t", OTHER="kept")
    assert "OTHER=kept" in done.stdout.splitlines()
    ours = [line for line in done.stdout.splitlines() if line.startswith("MOORAGE_LEASE")]
    assert ours == ["MOORAGE_LEASE_OUTER=outer"]
    assert "MOORAGE_LEASE" not in finished(*RUN, "env").stdout


def test_the_command_has_the_terminal() -> None:
    """The command reads keys and gets Ctrl-C; afterwards the shell has the terminal again."""
    reads = "print('got', input(), flush=True)"
    catches = catching("INT", "print('interrupted')", "sys.exit(5)")
    inner = (*RUN, *catches[:2], f"{reads}\n{catches[2]}")
    screen = Screen(f"{shell_command(*inner)}; echo code $?; read last; exit 3")
    screen.until("dry run")
    screen.type("hello\n")
    screen.until("got hello")
    screen.until("up")
    screen.type("\x03")
    assert "interrupted" in screen.until("code 5")
    screen.type("x\n")
    assert screen.exit_code() == 3


def test_an_interrupt_ends_the_loop_around_the_command() -> None:
    """Ctrl-C ends the loop of an interactive shell or a script if the command dies of it."""
    line = shell_command(*RUN, "sh", "-c", "echo run; read line")
    loop = f"for n in 1 2; do {line}; echo on $?; done"
    for script in (loop, shlex.join(["bash", "-c", loop])):
        screen = Screen(f"{script}; echo all done")
        screen.until("run")
        screen.type("\x03")
        rest = screen.read_rest()
        screen.exit_code()
        assert "on 130" not in rest, script
        assert "dry run" not in rest, script


def test_an_ignored_interrupt_is_only_an_exit_code() -> None:
    """With SIGINT ignored, a command that dies of it is reported only by the exit code."""
    dies = python("import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)")
    script = ["sh", "-c", 'trap "" INT; "$@"; echo $?', "sh", *command(*dies)]
    done = subprocess.run(script, env=BARE, capture_output=True, text=True, check=True)
    assert done.stdout == "130\n"


def test_the_command_can_be_stopped_at_the_terminal() -> None:
    """Ctrl-Z stops the command and `moorage run`, so the shell continues; `fg` resumes both."""
    inner = 'echo up; read line; echo "got $line"'
    screen = Screen(
        f"{shell_command(*RUN, 'bash', '-c', inner)}; echo stopped $?; fg; echo code $?"
    )
    screen.until("up")
    screen.type("\x1a")
    screen.until("stopped 148")
    screen.type("again\n")
    screen.until("got again")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_sigtstp_stops_both_processes() -> None:
    """SIGTSTP sent to `moorage run` stops the command, then itself; SIGCONT resumes both."""
    catcher = catching("CONT", "print('resumed', flush=True)", "sys.exit(6)")
    shows = catcher[2].replace("print('up'", "print(os.getpid()")
    words = command(*RUN, *catcher[:2], shows)
    # The kernel stops a process only if its parent is in its session and could resume it.
    with subprocess.Popen(
        words, env=BARE, stdout=subprocess.PIPE, text=True, process_group=0
    ) as process:
        assert process.stdout is not None
        command_pid = int(process.stdout.readline())
        process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WSTOPSIG(status) == signal.SIGTSTP
        assert state(command_pid) == "T"
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=SECONDS)[0] == "resumed\n"
    assert process.returncode == 6
