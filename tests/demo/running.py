"""The example as a process, as `make demo` starts it, only smaller."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import NamedTuple

from moorage.client.transport import Transport

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
HOSTS, JOBS, PAST_MINUTES = 440, 40, 2

PLAYING = f"demo: playing {PAST_MINUTES} minutes of jobs, so that pages have a past"
BUILDING = f"demo: building {HOSTS} machines"
LINES = (
    re.escape(PLAYING),
    re.escape(BUILDING),
    r"demo: ready after (?P<seconds>\d+) s",
    r"  address   (?P<url>http://127\.0\.0\.1:\d+)/ui",
    r"  sign in   (?P<reader>\S+)  \(reader: looks at everything\)",
    r"  or with   (?P<admin>\S+)  \(admin: may also change it, and see who did what\)",
    r"  end       Ctrl-C; nothing is kept",
)


class Started(NamedTuple):
    """An example that is ready: its lines, and what they name."""

    process: subprocess.Popen[str]
    lines: list[str]
    named: dict[str, str]

    @property
    def admin(self) -> Transport:
        """A client with the administrator's token."""
        return Transport(self.named["url"], self.named["admin"])


def started(folder: Path, *words: str, listen: str = "127.0.0.1:0") -> subprocess.Popen[str]:
    """Start an example whose temporary files are in a folder."""
    command = [sys.executable, "-m", "demo", "--listen", listen]
    command += ["--hosts", str(HOSTS), "--jobs", str(JOBS), "--past", str(PAST_MINUTES), *words]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that it prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@contextmanager
def example(folder: Path, seed: int = 1) -> Iterator[Started]:
    """Start an example, wait until it is ready, and stop it afterwards."""
    with started(folder, "--seed", str(seed)) as process:
        late = Timer(SECONDS, process.kill)
        late.start()
        lines = [line_of(process) for _ in LINES]
        late.cancel()
        try:
            found = [re.fullmatch(*both) for both in zip(LINES, lines, strict=True)]
            assert all(found), lines
            named = {name: text for one in found if one for name, text in one.groupdict().items()}
            yield Started(process, lines, named)
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)
