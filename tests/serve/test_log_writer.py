"""A log that nobody reads holds up no request."""

import fcntl
import io
import os
import re
import subprocess
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from moorage.serve.log_writer import LogWriter
from moorage.serve.logs import ACCESS_DELAY_SECONDS
from tests.e2e.support.server import MOORAGE

PIPE_BYTES = 4_096
LONG = 10 * ACCESS_DELAY_SECONDS
"""Seconds in which the log is written several times, each time with more than the pipe takes."""
SECONDS = 10.0
READY = re.compile(r"moorage: serving (http://\S+) ")


class Stuck(io.StringIO):
    """A stream that takes nothing until `reads` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.reads = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        """Take text, as soon as somebody reads."""
        self.begun.set()
        self.reads.wait()
        return super().write(text)


def test_a_server_whose_log_nobody_reads(tmp_path: Path) -> None:
    """It answers as before; what it has to say is there as soon as somebody reads."""
    url = f"sqlite:///{tmp_path}/m.sqlite"
    command = [*MOORAGE, "serve", "--listen", "127.0.0.1:0", "--database", url, "--access-log"]
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True) as server:
        os.close(writer)
        try:
            assert server.stdout is not None
            found = READY.search(server.stdout.readline())
            assert found is not None
            client = HTTPConnection(found[1].removeprefix("http://"), timeout=SECONDS)
            end, sent = time.monotonic() + LONG, 0
            while time.monotonic() < end:
                client.request("GET", f"/unknown/{sent}")
                with client.getresponse() as answer:
                    assert (answer.status, bool(answer.read())) == (401, True)
                sent += 1
            client.close()
        finally:
            server.terminate()
        with os.fdopen(reader, encoding="utf-8") as log:
            said = log.read()
        assert server.wait() == 0
    asked = re.findall(r"GET /unknown/(\d+)", said)
    assert len(said) > 2 * PIPE_BYTES, "the control: it was too little to fill the pipe"
    assert asked == [str(number) for number in range(sent)]


def test_lines_that_do_not_fit_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Memory is bounded; whole lines are lost, and later ones are written."""
    stream = Stuck()
    writer = LogWriter(stream, most=20)
    writer.write("first\n")
    assert stream.begun.wait(10)
    for text in ("second\n", "third\n", "too long for it\n", "a\nb\nc\n"):
        writer.write(text)
    stream.reads.set()
    writer.flush(10)
    writer.write("last\n")
    writer.flush(10)
    assert stream.getvalue() == "first\nsecond\nthird\nlast\n"
    assert caplog.messages == ["4 lines were lost, because nobody read the log"]


def test_the_end_does_not_wait_for_ever() -> None:
    """A process whose log nobody reads ends all the same."""
    stream = Stuck()
    writer = LogWriter(stream)
    writer.write("never read\n")
    assert stream.begun.wait(10)
    writer.flush(0.01)
    assert stream.getvalue() == ""
    stream.reads.set()
    writer.flush(10)
    assert stream.getvalue() == "never read\n"
