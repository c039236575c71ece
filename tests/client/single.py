"""Builds the single file once per test session, and runs it as users do."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
PYTHON = os.environ.get("MOORAGE_TEST_PYTHON", sys.executable)
"""The interpreter that runs the single file: any Python from 3.9 on."""
BARE = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": "/nonexistent"}
"""An environment without variables of Moorage, and without contexts."""

# A background shell may start the tests with these signals ignored, which children inherit.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

_folders: list[TemporaryDirectory[str]] = []


@cache
def built() -> Path:
    """Return the path of the single file; it is deleted when the tests end."""
    folder: TemporaryDirectory[str] = TemporaryDirectory(prefix="moorage-zipapp-")
    _folders.append(folder)
    path = Path(folder.name) / "moorage.pyz"
    subprocess.run([sys.executable, str(ROOT / "scripts/zipapp"), str(path)], check=True)
    return path


def command(*arguments: str, python: str = PYTHON) -> list[str]:
    """Return the command line that runs the single file isolated from installed packages."""
    return [python, "-I", str(built()), *arguments]


def catching(name: str, *actions: str) -> tuple[str, ...]:
    """Return a command that prints `up`, then runs these lines of Python when it gets a signal.

    Shells lose a signal that arrives just before they wait; `sigwait` does not.
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
    """Run the single file in a clean environment until it exits."""
    return subprocess.run(
        command(*arguments, python=python),
        env={**BARE, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


class Started(subprocess.Popen[str]):
    """A process in its own session; a test that fails kills the whole session."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            for member in session_of(self.pid):
                os.kill(member, signal.SIGKILL)
        super().__exit__(kind, error, trace)


def session_of(leader: int) -> list[int]:
    """Return the running processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def started(*arguments: str, **environment: str) -> Started:
    """Start the single file in a clean environment and its own session."""
    return Started(
        command(*arguments),
        env={**BARE, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
