"""Counts the processor instructions of operations, where `perf stat` can.

They include what C code does, but vary by some percent, and many virtual machines have no counter
for them. So they are shown beside the figures that have budgets, and have none.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.budgets.driving import serve
from tests.budgets.figures import WAYS, rounds
from tests.budgets.operations import chains

INSTRUCTIONS = "instructions:u"
"""The event: instructions in user mode."""


class Counted(NamedTuple):
    """The instructions of one operation, in one of the ways."""

    operation: str
    way: str
    number: float


class Perf:
    """Counts an event of a running process, while it is asked to."""

    def __init__(self, pid: int, folder: Path, event: str) -> None:
        """Attach to all threads of a process; `folder` gets two pipes."""
        orders, answers = folder / "orders", folder / "answers"
        for path in (orders, answers):
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        command = ["perf", "stat", "-x", ",", "-e", event, "-p", str(pid), "-D", "-1"]
        self._process = subprocess.Popen(
            [*command, "--control", f"fifo:{orders},{answers}"],
            stderr=subprocess.PIPE,
            text=True,
        )
        self._orders, self._answers = orders.open("w"), answers.open()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count until the context is left."""
        self._order("enable")
        try:
            yield
        finally:
            self._order("disable")

    def _order(self, word: str) -> None:
        self._orders.write(f"{word}\n")
        self._orders.flush()
        answer = self._answers.readline()
        assert "ack" in answer, answer

    def end(self) -> float | None:
        """Detach; return the count. None: the event cannot be counted here."""
        self._process.send_signal(signal.SIGINT)
        _, printed = self._process.communicate()
        self._orders.close()
        self._answers.close()
        return _number(printed)


def _number(printed: str) -> float | None:
    """Return the number that perf has printed."""
    for line in printed.splitlines():
        with suppress(ValueError):  # perf writes `<not supported>`, or a message
            return float(line.split(",")[0])
    return None


def countable(event: str = INSTRUCTIONS) -> bool:
    """Return whether perf is installed and can count an event here."""
    command = ["perf", "stat", "-x", ",", "-e", event, "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return _number(done.stderr) is not None


def measure(folder: Path, *, only: str = "", event: str = INSTRUCTIONS) -> Iterator[Counted]:
    """Start a server that counts nothing itself, and count an event of each operation."""
    numbers = count(1)
    with serve(folder, counted=False) as server:
        for chain in chains(server, only):
            for way in WAYS:
                for operation in dict.fromkeys(step.name for step in chain):
                    perf = Perf(server.pid, folder, event)
                    try:
                        around = {operation: perf.counting}
                        done = len(rounds(server, chain, way, numbers, around))
                    finally:
                        number = perf.end()
                    yield Counted(operation, way, (number or 0.0) / done / WAYS[way])
