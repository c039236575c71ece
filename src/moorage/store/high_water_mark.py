"""The high-water mark: the newest revision known to be committed, stored outside of the database.

If a database is behind its mark, or wrote the revision of that number at another time, an earlier
state was restored. Then it must begin a new epoch: its next revisions were already issued, as
tokens and cursors with another meaning.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from moorage.store.api import Plan, Query, Row, Statement

RAISE = "clock_raise"
"""The statement that assigns the next revision to a transaction."""

EPOCH_RAISE = "epoch_raise"
"""The statement that begins a new epoch."""

TAKING = frozenset((RAISE, EPOCH_RAISE))
"""The statements after which `raised` finds something."""

WIDTH = 19
"""Digits of a 64-bit number: all marks have the same length, so one write replaces the last."""

BYTES = 3 * (WIDTH + 1)

_MAX = (1 << 63) - 1


class Mark(NamedTuple):
    """A revision of an epoch. `at`: when it was written, in microseconds; 0 if unknown."""

    epoch: int = 0
    revision: int = 0
    at: int = 0

    @classmethod
    def parse(cls, text: bytes) -> "Mark":
        """Read the output of `written`, or an epoch alone. Raises ValueError.

        After a crash, an unsynced file may contain NULs instead of its text: these are ignored.
        """
        numbers = [int(word) for word in text.replace(b"\0", b" ").split()]
        if len(numbers) > len(cls._fields) or not all(0 <= n <= _MAX for n in numbers):
            raise ValueError("it holds no epoch and revision")
        return cls(*numbers)

    def written(self) -> bytes:
        """Return the mark as text of `BYTES` bytes."""
        return f"{self.epoch:{WIDTH}d} {self.revision:{WIDTH}d} {self.at:{WIDTH}d} ".encode()

    def is_missed_by(self, clock: "Mark", at: int | None) -> bool:
        """Return whether a database lacks the revision of this mark.

        Args:
            clock: the epoch and revision of the database.
            at: when the mark's revision was written there; None: its change rows were deleted.
        """
        if clock.epoch != self.epoch:
            return clock.epoch < self.epoch
        if clock.revision < self.revision:
            return True
        return bool(self.at) and at is not None and at != self.at


class Raised(NamedTuple):
    """The revision or epoch that a transaction has taken, and the formats of the rows."""

    mark: Mark
    minimum: int = 0
    newest: int = 0


def raised(statements: Sequence[Statement], results: Sequence[Sequence[Row]]) -> Raised | None:
    """Return the revision or epoch that these statements have taken; None if they took none."""
    for statement, rows in zip(statements, results, strict=True):
        if statement.block == RAISE:
            revision, epoch, at, minimum, newest = rows[0][:5]
            return Raised(Mark(epoch, revision, at), minimum, newest)
        if statement.block == EPOCH_RAISE:
            return Raised(Mark(*rows[0]))
    return None


def epoch_raise(least: int = 0) -> Plan[tuple[int, int]]:
    """Begin a new epoch, higher than `least`; return (epoch, revision).

    An epoch is the Unix time at which it began, or one more than the last if that is higher. So a
    database that is restored twice to the same state gets two different epochs.
    """
    (((epoch, revision),),) = yield [Query("epoch_raise", (least,))]
    return epoch, revision


class MarkFile:
    """A file that stores a mark. It is not synced: it may lag behind the database, never lead.

    Raises OSError, as do its methods; `load` also raises ValueError: the file has other contents.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def load(self) -> Mark:
        """Return the stored mark; `Mark()` if the file is new."""
        return Mark.parse(os.pread(self._file, 2 * BYTES, 0))

    def store(self, mark: Mark) -> None:
        """Store a mark."""
        os.pwrite(self._file, mark.written(), 0)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._file

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
