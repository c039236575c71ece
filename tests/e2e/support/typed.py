"""Takes commands out of a page and types them into a shell. Standard library only.

Other environments use it, such as that of the stock clients.
"""

import os
import pty
import select
import signal
import socket
import subprocess
import termios
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).resolve().parents[3]
PROMPT = "$ "
MARK = "-- exit code of the command above: "
TYPED_SECONDS = 600
TYPED_LINES = 50
END_OF_INPUT = b"\x04"


@dataclass
class Step:
    """One command and the lines that the page shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def steps_of(page: Path, title: str | None = None) -> list[Step]:
    """Take commands and their output out of the console blocks of a page, or of one section."""
    section = page.read_text()
    if title is not None:
        section = section.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    steps: list[Step] = []
    for block in section.split("```console\n")[1:]:
        for line in block.split("```", 1)[0].splitlines():
            if line.startswith(PROMPT):
                steps.append(Step(line.removeprefix(PROMPT)))
            elif steps[-1].command.endswith("\\") and not steps[-1].shown:
                steps[-1].command += "\n" + line
            else:
                steps[-1].shown.append(line)
    return steps


def clone(folder: Path, stamps: Sequence[str]) -> None:
    """Make the folder look like the project's, so that the files of the commands end up in it.

    Its environments are links to ours. If one were out of date, make would install the copy into it
    and break ours; so all of them must be built before.
    """
    make = ["make", "--no-print-directory"]
    stamps = [stamp for stamp in stamps if (ROOT / stamp).parent.exists()]
    if stamps:
        subprocess.run([*make, *stamps], cwd=ROOT, env=surroundings(), check=True)
    for entry in ROOT.iterdir():
        if not entry.name.startswith("moorage."):
            (folder / entry.name).symlink_to(entry)
    if stamps:
        subprocess.run([*make, "--question", *stamps], cwd=folder, env=surroundings(), check=True)


def surroundings() -> dict[str, str]:
    """Return an environment without settings of ours, the client's or make's, but a free port."""
    ours = ("MOORAGE_", "OS_", "MAKE", "MFLAGS", "ARGS", "COLUMNS", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**clean, "MOORAGE_LISTEN": f"127.0.0.1:{free_port()}"}


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def play(
    steps: list[Step],
    folder: Path,
    environment: dict[str, str],
    columns: int | None = None,
    enter: Sequence[str] = (),
) -> list[tuple[str, int]]:
    """Run the commands in one shell; return what each wrote and its exit code.

    With `columns` they write to a terminal of this width, without colours; otherwise to a pipe. On
    the terminal they may ask, but nobody answers: a command that asks fails. `enter` are the words
    before the shell's, such as those of `nsenter`.
    """
    script = folder / "tour.sh"
    script.write_text("".join(f"{step.command}\necho '{MARK}'$?\n" for step in steps))
    ours, theirs = os.pipe() if columns is None else _terminal(columns)
    if columns is not None:
        os.write(ours, END_OF_INPUT)
    with subprocess.Popen(
        [*enter, "bash", str(script)],
        cwd=folder,
        env=environment if columns is None else {**environment, "TERM": "xterm", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL if columns is None else theirs,
        stdout=theirs,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as run:
        os.close(theirs)
        try:
            output = _read(ours).replace("\r\n", "\n")
            run.wait(TYPED_SECONDS)
        finally:
            os.close(ours)
            # A script that stops half-way leaves what it runs in the background.
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, output
    return _results(output)


def _terminal(columns: int) -> tuple[int, int]:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (TYPED_LINES, columns))
    return ours, theirs


def _read(output: int) -> str:
    """Return all that is written until nobody can write any more."""
    seen, until = b"", monotonic() + TYPED_SECONDS
    with suppress(OSError):  # a terminal ends with an error
        while True:
            ready, _, _ = select.select([output], [], [], max(0.0, until - monotonic()))
            assert ready, seen.decode(errors="replace")
            if not (read := os.read(output, 65_536)):
                break
            seen += read
    return seen.decode()


def _results(output: str) -> list[tuple[str, int]]:
    results: list[tuple[str, int]] = []
    said: list[str] = []
    for line in output.splitlines():
        if line.startswith(MARK):
            results.append(("\n".join(said), int(line.removeprefix(MARK))))
            said = []
        else:
            said.append(line)
    return results
