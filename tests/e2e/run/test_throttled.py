"""`moorage run --throttled-exit` and `--throttled-when` at a real server; output is unchanged."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.client.screen import Screen, shell_command
from tests.client.single import BARE, command
from tests.e2e.run.test_outcomes import told
from tests.e2e.support.carried import SECONDS, Harbour, eventually, harbour, line

PATTERN = "HTTP 429|QuotaExceeded"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A server for the tests of this file; each uses its own pool."""
    with harbour(tmp_path_factory.mktemp("throttled")) as found:
        yield found


def when(pool: str, *more: str, pattern: str = PATTERN) -> tuple[str, ...]:
    """Return the beginning of a command line."""
    return ("run", "--pool", pool, "--throttled-when", pattern, *more, "--")


def raw(port: Harbour, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the single file to its end; its output stays bytes."""
    environment = {**BARE, **port.where()}
    return subprocess.run(
        command(*words), env=environment, capture_output=True, timeout=SECONDS, check=False
    )


@pytest.mark.parametrize(
    ("code", "counts"), [(0, (1, 0, 0)), (3, (0, 1, 0)), (75, (0, 0, 1)), (76, (0, 0, 1))]
)
def test_exit_codes(port: Harbour, code: int, counts: tuple[int, int, int]) -> None:
    """Those that are named mean throttled; the others are as with --outcome."""
    pool = port.pool()
    exits = ("--throttled-exit", "75", "--throttled-exit", "76")
    done = port.finished("run", "--pool", pool, *exits, "--", "sh", "-c", f"exit {code}")
    assert done.returncode == code, done.stderr
    assert told(port, pool) == counts


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        ("echo fine", (1, 0, 0)),
        ("echo HTTP 430; exit 1", (0, 1, 0)),
        ("echo answer: HTTP 429, again; exit 1", (0, 0, 1)),
        ("echo QuotaExceeded >&2", (0, 0, 1)),
        ("printf 'the end is QuotaExceeded'; exit 1", (0, 0, 1)),
    ],
)
def test_output(port: Harbour, script: str, counts: tuple[int, int, int]) -> None:
    """A match on either stream means throttled, also without a line break, whatever the code."""
    pool = port.pool()
    done = port.finished(*when(pool), "sh", "-c", script)
    assert told(port, pool) == counts, done.stderr


def test_a_line_is_searched_when_it_has_ended(port: Harbour) -> None:
    """`$` means the end of a line, not what has come so far."""
    pool = port.pool()
    script = "printf 'HTTP 4'; sleep 0.3; printf '29'; sleep 0.3; echo 1 is fine"
    port.finished(*when(pool, pattern="^HTTP 429$"), "sh", "-c", script)
    assert told(port, pool) == (1, 0, 0)
    port.finished(*when(pool, pattern="^HTTP 4291 is"), "sh", "-c", script)
    assert told(port, pool) == (1, 0, 1)


def test_every_byte_passes(port: Harbour) -> None:
    """Ten megabytes of everything, on both streams, exactly as they were written."""
    pool = port.pool()
    program = (
        "import os, random\n"
        "data = random.Random(1).randbytes(5_000_000)\n"
        "import sys\n"
        "sys.stdout.buffer.write(data); sys.stderr.buffer.write(data[::-1])"
    )
    plain = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    done = raw(port, *when(pool), sys.executable, "-c", program)
    assert done.stdout == plain.stdout
    assert done.stderr.endswith(plain.stderr)
    assert done.returncode == 0


def test_both_streams_to_one_file_keep_their_order(port: Harbour, tmp_path: Path) -> None:
    """What is written alternately to both stays so if both lead to the same place."""
    pool = port.pool()
    script = "for n in $(seq 500); do echo out $n; echo err $n >&2; done"
    environment = {**BARE, **port.where()}
    with (tmp_path / "both").open("wb") as both:
        subprocess.run(
            command(*when(pool), "bash", "-c", script),
            env=environment,
            stdout=both,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=True,
        )
    lines = (tmp_path / "both").read_text().splitlines()
    expected = [f"{kind} {n}" for n in range(1, 501) for kind in ("out", "err")]
    assert [one for one in lines if not one.startswith("moorage:")] == expected


def test_output_comes_at_once(port: Harbour) -> None:
    """A part of a line is there while the command still runs, which waits for us to say so."""
    pool = port.pool()
    with port.started(*when(pool), "sh", "-c", "printf part; read x; echo $x") as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 100) == b"part"
        process.communicate("go\n", SECONDS)
        assert process.returncode == 0


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b$", "(.*.*.*.*.*.*)x$"])
def test_a_hostile_pattern_does_not_hang_the_run(port: Harbour, pattern: str) -> None:
    """It would need years for one line: the search ends, and the exit code is the outcome."""
    pool = port.pool()
    begun = monotonic()
    script = "printf 'a%.0s' $(seq 5000); echo '!'; echo HTTP 429; exit 5"
    done = port.finished(*when(pool, pattern=pattern), "bash", "-c", script)
    assert done.returncode == 5
    assert done.stdout == "a" * 5000 + "!\nHTTP 429\n"
    assert "takes too long" in done.stderr
    assert told(port, pool) == (0, 1, 0)
    assert monotonic() - begun < SECONDS


def test_much_output_needs_little_memory(port: Harbour) -> None:
    """200 MB without a line break, then the match: the end of the output is always searched."""
    pool = port.pool()
    program = (
        "import sys\n"
        "for _ in range(200): sys.stdout.buffer.write(b'x' * 1_000_000)\n"
        "print('\\nHTTP 429', flush=True)\n"
        "import re\n"
        "status = open(f'/proc/{__import__(\"os\").getppid()}/status').read()\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', status)[1], file=sys.stderr)"
    )
    environment = {**BARE, **port.where()}
    with open(os.devnull, "wb") as nowhere:
        done = subprocess.run(
            command(*when(pool), sys.executable, "-c", program),
            env=environment,
            stdout=nowhere,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=True,
        )
    assert int(done.stderr.splitlines()[-1]) < 60_000
    assert told(port, pool) == (0, 0, 1)


def test_a_reader_that_leaves(port: Harbour) -> None:
    """`| head -1`: the command gets SIGPIPE as without us, and does not run for ever."""
    pool = port.pool()
    words = shell_command(*when(pool), "yes")
    script = f"{words} | head -1; echo code ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        env={**BARE, **port.where()},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    assert done.stdout == f"y\ncode {128 + 13}\n"
    eventually(lambda: True if not port.leases(pool) else None)


def test_what_is_left_running_does_not_delay_the_end(port: Harbour) -> None:
    """A process in the background still has the pipe open; the run ends, with all output."""
    pool = port.pool()
    begun = monotonic()
    done = port.finished(*when(pool), "sh", "-c", "sleep 100 & echo started")
    assert (done.returncode, done.stdout) == (0, "started\n")
    assert monotonic() - begun < SECONDS
    assert told(port, pool) == (1, 0, 0)


def test_a_slow_reader_delays_no_release(port: Harbour) -> None:
    """The unit is free although nobody reads the last output yet, which is not lost."""
    pool = port.pool()
    program = "import sys; sys.stdout.write('y' * 100_000)"
    with port.started(*when(pool), sys.executable, "-c", program) as process:
        eventually(lambda: True if port.ended(pool) else None)
        assert process.poll() is None
        out, _ = process.communicate(timeout=SECONDS)
        assert len(out) == 100_000
        assert process.returncode == 0


def test_on_a_terminal(port: Harbour) -> None:
    """The command has a terminal of the same size, with its usual output, and Ctrl-C works."""
    pool = port.pool()
    script = "test -t 1 && test -t 2 && echo both; stty size < /dev/stdout; read x; echo got $x"
    inner = shell_command(*when(pool), "bash", "-c", script)
    screen = Screen(f"stty rows 33 cols 77; {inner}; echo code $?", **port.where())
    screen.until("both\r\n33 77\r\n")
    screen.type("HTTP 429\n")
    screen.until("got HTTP 429\r\n")
    screen.until("code 0")
    assert screen.exit_code() == 0
    eventually(lambda: True if told(port, pool) == (0, 0, 1) else None)
    other = shell_command(*when(pool), "bash", "-c", "echo up; sleep 1000")
    screen = Screen(f"{other}; echo code $?", **port.where())
    screen.until("up\r\n")
    screen.type("\x03")
    screen.read_rest()
    screen.exit_code()
    eventually(lambda: True if not port.leases(pool) else None)


def test_on_a_terminal_that_stops_background_writers(port: Harbour) -> None:
    """The command has the foreground, and its output passes nevertheless."""
    pool = port.pool()
    inner = shell_command(*when(pool), "bash", "-c", "echo up; read x; echo got $x")
    screen = Screen(f"stty tostop; {inner}; echo code $?", **port.where())
    screen.until("up\r\n")
    screen.type("hello\n")
    screen.until("got hello\r\n")
    screen.until("code 0")
    assert screen.exit_code() == 0


def test_wrong_words(port: Harbour) -> None:
    """A pattern that is none, and an exit code that no command has."""
    pool = port.pool()
    for words, said in (
        (("--throttled-when", "(429"), "is not a pattern"),
        (("--throttled-exit", "0"), "is not an exit code"),
        (("--throttled-exit", "256"), "is not an exit code"),
        (("--throttled-exit", "x"), "is not an exit code"),
    ):
        done = port.finished("run", "--pool", pool, *words, "--", "true")
        assert done.returncode == 125
        assert said in done.stderr


def test_a_closed_standard_output(port: Harbour) -> None:
    """It stays closed for the command, too."""
    pool = port.pool()
    words = shell_command(*when(pool), "sh", "-c", "echo HTTP 429 >&2; exit 3")
    done = subprocess.run(
        ["bash", "-c", f"{words} >&-"],
        env={**BARE, **port.where()},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert told(port, pool) == (0, 0, 1)


def test_a_script_gives_the_cause(port: Harbour) -> None:
    """`lease outcome --cause` passes it on; one that would garble a terminal is refused."""
    pool = port.pool()
    with port.started("run", "--pool", pool, "--", "sh", "-c", "echo up; read x") as process:
        line(process)
        lease = port.leases(pool)[0].id
        bad = port.finished("lease", "outcome", lease, "failed", "--cause", "a\x1bb")
        assert bad.returncode == 2, bad.stderr
        good = port.finished("lease", "outcome", lease, "throttled", "--cause", "HTTP 429")
        assert good.returncode == 0, good.stderr
        process.communicate("\n", SECONDS)
    assert told(port, pool) == (0, 0, 1)
