"""Reads processor time, memory and load from the operating system."""

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SYNCS = 50
TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def tree(root: int) -> list[int]:
    """Return the ids of a process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on; none if the process has ended."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def processor_seconds(roots: Iterable[int]) -> float:
    """Return the processor time of processes and their descendants, user and system.

    Descendants that have ended and were reaped count as part of their parents, in steps of 10 ms.
    """
    seconds = 0.0
    for root in roots:
        for pid in tree(root):
            with suppress(OSError):  # it has ended
                seconds += time.clock_gettime(_clock_of(pid))
            seconds += sum(map(int, _stat(pid)[13:15])) / TICKS
    return seconds


def _clock_of(pid: int) -> int:
    """Return the clock of the processor time of a process, as clock_getcpuclockid(3) does."""
    return ~pid << 3 | 2


def memory_bytes(roots: Iterable[int]) -> int:
    """Return the proportional set size (PSS) of processes and their descendants."""
    total = 0
    for root in roots:
        for pid in tree(root):
            try:
                lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


@dataclass(frozen=True)
class Moment:
    """The counters of the processors at one instant, in seconds since boot."""

    at: float
    busy: float
    steal: float

    @classmethod
    def now(cls) -> "Moment":
        """Read the counters."""
        first = (PROC / "stat").read_text().partition("\n")[0].split()
        user, nice, system, _, _, interrupt, soft, steal = map(int, first[1:9])
        busy = (user + nice + system + interrupt + soft) / TICKS
        return cls(time.perf_counter(), busy, steal / TICKS)


def describe(directory: Path) -> dict[str, object]:
    """Return what affects the figures: processors, memory, load, and the time of a disk sync."""
    return {
        "processors": os.cpu_count(),
        "processor": _first("/proc/cpuinfo", "model name"),
        "memory_mb": int(str(_first("/proc/meminfo", "MemTotal")).split()[0]) // 1024,
        "load_before": list(os.getloadavg()),
        "sync_ms_p50": sync_milliseconds(directory),
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
    }


def code(folder: Path) -> str:
    """Return the commit that is measured, marked as dirty if files differ from it.

    Documentation does not count: an earlier part of the same run may have written its tables there.
    """
    git = ["git", "-C", str(folder)]
    try:
        commit = _printed([*git, "describe", "--always", "--abbrev=10"])
        differ = _printed([*git, "status", "--porcelain", "-uno", "--", ".", ":!docs"])
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if differ else commit


def _printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _first(path: str, word: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(word):
            return line.partition(":")[2].strip()
    return "unknown 0"


def sync_milliseconds(directory: Path) -> float:
    """Return the median time to write 4 KiB to a file in `directory` and sync it."""
    path = directory / "sync"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            times.append(1_000 * (time.perf_counter() - started))
    path.unlink()
    return statistics.median(times)
