"""The high-water mark: the newest revision known to be committed, kept outside of the rows.

A database that is behind its mark, or whose revision of that number was written at another time,
has been put back to an earlier state. It may not go on under its epoch: the numbers that follow
were given out before, as tokens and cursors that meant something else.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from moorage.store.api import Plan, Query, Row, Statement

RAISE = "clock_raise"
"""The statement by which a transaction takes the next revision."""

EPOCH_RAISE = "epoch_raise"
"""The statement that begins a new epoch."""

WIDTH = 19
"""Digits of a 64-bit number: every mark has the same length, so one write replaces another."""

BYTES = 3 * (WIDTH + 1)

_MAX = (1 << 63) - 1


class Mark(NamedTuple):
    """A revision of an epoch. `at`: when it was written, in microseconds; 0: unknown."""

    epoch: int = 0
    revision: int = 0
    at: int = 0

    @classmethod
    def parse(cls, text: bytes) -> "Mark":
        """Read what `written` returns, or an epoch alone. Raises ValueError.

        A file that was not synced may be as long as it was, but hold NULs: that is no mark.
        """
        numbers = [int(word) for word in text.replace(b"\0", b" ").split()]
        if len(numbers) > len(cls._fields) or not all(0 <= n <= _MAX for n in numbers):
            raise ValueError("it holds no epoch and revision")
        return cls(*numbers)

    def written(self) -> bytes:
        """Return `BYTES` bytes."""
        return "".join(f"{number:{WIDTH}d} " for number in self).encode()

    def is_missed_by(self, clock: "Mark", at: int | None) -> bool:
        """Does a database lack what the mark stands for?

        Args:
            clock: where the database is.
            at: when the mark's revision was written there; None: its change rows are not kept.
        """
        if clock.epoch != self.epoch:
            return clock.epoch < self.epoch
        if clock.revision < self.revision:
            return True
        return bool(self.at) and at is not None and at != self.at


class Raised(NamedTuple):
    """What a transaction has taken: the next revision or a new epoch; the formats of the rows."""

    mark: Mark
    minimum: int = 0
    newest: int = 0


def raised(statements: Sequence[Statement], results: Sequence[Sequence[Row]]) -> Raised | None:
    """Return what these statements have taken; None: nothing."""
    for statement, rows in zip(statements, results, strict=True):
        if statement.block == RAISE:
            revision, epoch, at, minimum, newest = rows[0]
            return Raised(Mark(epoch, revision, at), minimum, newest)
        if statement.block == EPOCH_RAISE:
            return Raised(Mark(*rows[0]))
    return None


def epoch_raise(least: int = 0) -> Plan[tuple[int, int]]:
    """Begin a new epoch, higher than `least`; return (epoch, revision).

    An epoch is the time in seconds at which it began, or one more than the last if that is higher:
    a database that is put back twice to the same state gets two different epochs, although it
    remembers neither.
    """
    (((epoch, revision),),) = yield [Query("epoch_raise", (least,))]
    return epoch, revision


class MarkFile:
    """A file that remembers a mark. It is not synced: it may lag behind, and never leads.

    Raises OSError, as do its methods; `load` also raises ValueError: the file holds something else.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def load(self) -> Mark:
        """Return what is remembered; a new file remembers nothing."""
        return Mark.parse(os.pread(self._file, 2 * BYTES, 0))

    def store(self, mark: Mark) -> None:
        """Remember a mark."""
        os.pwrite(self._file, mark.written(), 0)

    def fileno(self) -> int:
        """Return the number of the open file."""
        return self._file

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
