"""Builds the single file once per test session, and runs it as users do."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
PYTHON = os.environ.get("MOORAGE_TEST_PYTHON", sys.executable)
"""What runs the single file: any Python from 3.9 on."""
BARE = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
"""An environment that has nothing of Moorage in it."""

_folders: list[TemporaryDirectory[str]] = []


@cache
def built() -> Path:
    """Return the file; it goes when the tests end."""
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="moorage-zipapp-")
    _folders.append(folder)
    path = Path(folder.name) / "moorage.pyz"
    subprocess.run([sys.executable, str(ROOT / "scripts/zipapp"), str(path)], check=True)
    return path


def command(*arguments: str, python: str = PYTHON) -> list[str]:
    """Return the command line that runs it, with nothing else to import from."""
    return [python, "-I", str(built()), *arguments]


def catching(name: str, *actions: str) -> tuple[str, ...]:
    """Return a command that says `up`, and does these lines of Python when a signal has come.

    Shells lose a signal that comes just before they wait; this waits for it without a gap.
    """
    lines = [
        "import os, signal, subprocess, sys",
        f"number = signal.SIG{name}",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [number])",
        "print('up', flush=True)",
        "signal.sigwait([number])",
        *actions,
    ]
    return (PYTHON, "-c", "\n".join(lines))


def finished(
    *arguments: str, python: str = PYTHON, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end in a clean environment."""
    return subprocess.run(
        command(*arguments, python=python),
        env={**BARE, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start it in a clean environment and a session of its own."""
    return subprocess.Popen(
        command(*arguments),
        env={**BARE, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
