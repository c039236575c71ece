"""How far a long command is, on a real terminal: on one line, whatever its width, and then gone."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest

SHOWS = """
import sys
from moorage.cli.support.output import forget_unwritten
from moorage.cli.support.progress import progress
from moorage.client.run.clock import elapsed
total = int(sys.argv[1])
until = elapsed() + 0.35
with progress() as shown:
    while elapsed() < until:
        shown("comparing", 112_345, total)
print("done")
forget_unwritten(sys.stderr)
"""


def frames(columns: int, total: int) -> list[str]:
    """Return what is drawn on a terminal of this width, one text for each time."""
    ours, its = os.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-c", SHOWS, str(total)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=its, timeout=60, check=False
    )
    os.close(its)
    said = b""
    try:
        while part := os.read(ours, 65_536):
            said += part
    except OSError:  # the terminal is closed, and all is read
        pass
    os.close(ours)
    assert done.returncode == 0, said
    return said.decode().split("\r")


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_a_bar_fits_and_goes(columns: int) -> None:
    """It is as long as there is room, up to 40 characters."""
    shown = frames(columns, 415_803)
    assert max(map(len, shown)) < columns
    assert "comparing 112,345 of 415,803 (27%)".startswith(shown[1][: columns - 1][:34].strip())
    assert shown[1].count("#") + shown[1].count(".") == {80: 40, 200: 40}.get(columns, 0)
    assert [one.strip() for one in shown[-2:]] == ["", ""]


def test_without_a_total_there_is_no_share() -> None:
    """Nothing says that all of it is done while it is not known how much there is."""
    shown = frames(80, 0)
    assert shown[1] == "comparing 112,345"
    assert not any("%" in one or "#" in one for one in shown)


def test_the_work_goes_on_without_its_terminal() -> None:
    """A window that is closed takes the bar away, and nothing else."""
    ours, its = os.openpty()
    command = [sys.executable, "-c", SHOWS, "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its) as process:
        os.close(its)
        os.read(ours, 1)
        os.close(ours)
        output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, b"done\n")
