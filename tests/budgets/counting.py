"""Counts what a process does, in memory that another process reads while this one runs.

A count has a kind and a name: the call of a function, a coroutine or generator that is resumed, a
hop between the loop and a thread, an SQL statement. The counts stand in a mapped file, one after
another; their names stand in a text file, one a line, in the same order. So a reader needs nothing
from the counted process, which may be stopped.
"""

import mmap
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

CALL, RESUME, HOP, STATEMENT = KINDS = ("calls", "resumes", "hops", "statements")
"""What is counted. A resume is of a coroutine or of a generator."""

ROOT = Path(__file__).resolve().parents[2]
UNCOUNTED = "not counted"

HANDED = "SimpleQueue.put"
"""How a job gets to a thread; executors use it, too."""

COUNTS_MAX = 20_000
WIDTH = 8
"""Bytes of a count."""

Count = tuple[str, str]
"""A kind and a name."""


def names_file(counts: Path) -> Path:
    """Return the file with the names of the counts in a file."""
    return counts.with_suffix(".names")


class Counts:
    """The counts of this process. Each method counts at once, in any thread."""

    def __init__(self, path: Path) -> None:
        """Create the files."""
        path.write_bytes(bytes(COUNTS_MAX * WIDTH))
        with path.open("r+b") as file:
            self._counts = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        self._names = names_file(path).open("w", buffering=1)
        self._places: dict[Count, int] = {}
        self._calls: dict[CodeType, int] = {}
        self._resumes: dict[CodeType, int] = {}
        self._begins: dict[CodeType, int] = {}
        """The first instruction that each generator or coroutine has executed."""
        self._lock = threading.Lock()
        self._handed = self._place(HOP, HANDED)
        self.leave_out(self.one, self._place)

    def leave_out(self, *functions: Any) -> None:
        """Count no calls of these functions: those that count are no part of the program."""
        self._calls |= {one.__code__: self._place(UNCOUNTED, "") for one in functions}

    def one(self, kind: str, name: str) -> None:
        """Count one of these."""
        self._counts[self._place(kind, name)] += 1

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count the call or the resumption of a function; for `sys.setprofile`.

        A job that is put into the queue of a thread is a hop, by an executor or otherwise.
        """
        if event != "call":
            if event == "c_call" and argument.__qualname__ == HANDED:
                self._counts[self._handed] += 1
            return
        code = frame.f_code
        kind, places = CALL, self._calls
        if code.co_flags & GENERATING and frame.f_lasti != self._begins.setdefault(
            code, frame.f_lasti
        ):
            kind, places = RESUME, self._resumes
        place = places.get(code)
        if place is None:
            place = places[code] = self._place(kind, name_of(code))
        self._counts[place] += 1

    def _place(self, kind: str, name: str) -> int:
        """Return the place of a count, and write its name if it is new."""
        key = (kind, " ".join(name.split()))
        with self._lock:
            if key not in self._places:
                self._names.write("\t".join(key) + "\n")
                self._places[key] = len(self._places)
            return self._places[key]

    def begin(self, thread_left_out: str) -> None:
        """Count what this thread and all later ones do, but the threads of this name."""

        def begin_thread(frame: FrameType, event: str, argument: object) -> None:
            mine = threading.current_thread().name != thread_left_out
            sys.setprofile(self.profile if mine else None)
            if mine:
                self.profile(frame, event, argument)

        threading.setprofile(begin_thread)
        sys.setprofile(self.profile)


GENERATING = 0x20 | 0x80 | 0x200
"""The flags of the code of generators, coroutines and asynchronous generators (`inspect.CO_*`)."""


def name_of(code: CodeType) -> str:
    """Return the file of a function, from its package on, and its name in it."""
    path = Path(code.co_filename)
    parts = path.parts
    for folder in ("src", "site-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        if folder in parts:
            path = Path(*parts[len(parts) - parts[::-1].index(folder) :])
            break
    else:
        if path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
    return f"{path} {code.co_qualname}"


class Reading:
    """Reads the counts of another process."""

    def __init__(self, path: Path) -> None:
        """Map the file; `path`: as for `Counts`."""
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._counts = memoryview(mapped).cast("Q")
        self._names = names_file(path).open()
        self._known: list[Count] = []

    def now(self) -> Counter[Count]:
        """Return all counts since the process began."""
        for line in self._names:
            kind, _, name = line.rstrip("\n").partition("\t")
            self._known.append((kind, name))
        found: Counter[Count] = Counter()
        for one, number in zip(self._known, self._counts, strict=False):
            found[one] += number
        return found

    def close(self) -> None:
        """Read no more."""
        self._names.close()
        self._counts.release()
