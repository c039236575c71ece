"""Runs the command line as a user does."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import warm

COMMAND = (sys.executable, "-m", "moorage")
SECONDS = 30.0


def moorage(
    *arguments: str, directory: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `moorage` with these arguments until it exits; no `MOORAGE_*` variable is inherited."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
    return warm.run(arguments, SECONDS, directory, {**inherited, **environment})


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as files with secrets must be."""
    path.write_text(text)
    path.chmod(0o600)


def answer(*arguments: str, directory: Path | None = None, **environment: str) -> Any:
    """Run a command with `--json`, check that it succeeds, and return the parsed output."""
    done = moorage(*arguments, "--json", directory=directory, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def refusal(code: int, *arguments: str, directory: Path | None = None, **environment: str) -> str:
    """Run a command that fails with this exit code; return its one line of standard error."""
    done = moorage(*arguments, directory=directory, **environment)
    assert done.returncode == code, (done.returncode, done.stderr)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("moorage: ")
    return line.removeprefix("moorage: ")
