"""For whom a process works: parents that end, reused numbers, output without a reader."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moorage.client.run.process.starters import SeenProcess, Starters, ancestors, is_alive
from tests.client.single import finished
from tests.e2e.support.carried import eventually

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


@contextmanager
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process; end it afterwards."""
    with subprocess.Popen(SLEEPS) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_process_that_ends() -> None:
    """Also as a zombie, whose parent does not ask for its exit code."""
    with sleeping() as process:
        starters = Starters([process.pid])
        assert starters.gone() is None
        process.kill()
        assert (
            eventually(starters.gone)
            == f"process {process.pid}, which this command works for, has ended"
        )
        process.wait()
        assert starters.gone() is not None
        assert Starters([process.pid]).gone() is not None, "it had ended before"


def test_a_number_that_is_used_again() -> None:
    """Another process with the same number began at another time."""
    with sleeping() as process:
        assert is_alive(SeenProcess(process.pid, None))
        assert not is_alive(SeenProcess(process.pid, "1"))


def test_nobody() -> None:
    """Without processes and without output, nothing ends it."""
    assert Starters([]).gone() is None


def test_the_ancestors() -> None:
    """The parent counts in any case, others only within the process group."""
    assert ancestors()[0] == os.getppid()
    assert os.getpid() not in ancestors()
    grouped = [one for one in ancestors()[1:] if os.getpgid(one) != os.getpgrp()]
    assert grouped == []


def test_the_reader_of_the_output() -> None:
    """A pipe without a reader cannot be written to; a file always can."""
    read, write = os.pipe()
    starters = Starters([], write)
    assert starters.gone() is None
    os.close(read)
    assert starters.gone() == "nobody reads the output any longer"
    os.close(write)
    with open(os.devnull, "w", encoding="utf-8") as file:
        assert Starters([], file.fileno()).gone() is None


@pytest.mark.parametrize("word", ["", "x", "-1", "12345678901", "٣"])
def test_what_is_no_process(word: str) -> None:
    """The message says what to give."""
    done = finished(
        "lease", "acquire", "-p", "p", f"--with={word}", MOORAGE_URL="http://127.0.0.1:1"
    )
    assert (done.returncode, "--with" in done.stderr, "$$" in done.stderr) == (2, True, True)


def test_a_process_that_is_gone_at_the_start(tmp_path: os.PathLike[str]) -> None:
    """Nothing is asked for: there would be nobody to release it."""
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    words = (
        "lease",
        "acquire",
        "-p",
        "p",
        "--handle",
        f"{tmp_path}/h",
        "--with",
        gone.stdout.strip(),
    )
    done = finished(*words, MOORAGE_URL="http://127.0.0.1:1")
    assert done.returncode == 10, done.stderr
    assert "has ended" in done.stderr
    assert not os.listdir(tmp_path)
