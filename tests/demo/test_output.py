"""What `make demo` prints: the address and the tokens, and nothing that hides them."""

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
LINES = (
    r"demo: building 80 machines and 5 jobs",
    r"demo: the token of the reader: \S+",
    r"demo: the token of the operator: \S+",
    r"demo: ready after \d+ s: open http://127\.0\.0\.1:\d+/ui and sign in with one of them",
)


def started(listen: str) -> subprocess.Popen[str]:
    """Start a small example."""
    command = [sys.executable, "-m", "demo", "--listen", listen, "--hosts", "80", "--jobs", "5"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def test_it_prints_the_address_and_the_tokens_only() -> None:
    """The server's log, with its audit trail, stays out of the way."""
    with started("127.0.0.1:0") as demo:
        assert demo.stdout is not None
        lines = [demo.stdout.readline().rstrip() for _ in LINES]
        demo.send_signal(signal.SIGINT)
        rest, errors = demo.communicate(timeout=SECONDS)
    assert all(map(re.fullmatch, LINES, lines)), lines
    assert (rest, errors, demo.returncode) == ("demo: stopped; nothing is kept\n", "", 0)


def test_it_says_why_the_server_does_not_start() -> None:
    """The control: what the server says is not lost."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with started(address) as demo:
            output, errors = demo.communicate(timeout=SECONDS)
    assert (output, demo.returncode) == ("", 1)
    assert f"moorage: listen: cannot serve on {address}" in errors
