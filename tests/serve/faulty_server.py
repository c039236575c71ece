"""`moorage` on a disk that fails while the file TRIGGER.sync or TRIGGER.read exists.

It hangs if such a file is a FIFO, until somebody writes to it.

Usage: faulty_server.py TRIGGER COMMAND...
"""

import os
import stat
import sys
from typing import Any

import apsw

from moorage.cli.main import main

TRIGGER = sys.argv.pop(1)


class FaultyFile(apsw.VFSFile):
    """A file that cannot be synced or read while the trigger exists."""

    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        """Sync, or fail as a broken disk does."""
        fail_if(f"{TRIGGER}.sync", apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - apsw's name
        """Read, or fail as a broken disk does."""
        fail_if(f"{TRIGGER}.read", apsw.SQLITE_IOERR_READ)
        return super().xRead(amount, offset)


def fail_if(trigger: str, code: int) -> None:
    """Raise SQLite's error of this code while the trigger exists; if it is a FIFO, hang."""
    if os.path.exists(trigger):
        if stat.S_ISFIFO(os.stat(trigger).st_mode):
            with open(trigger, "rb") as hang:
                hang.read()
            return
        error: Any = apsw.IOError("the disk does not answer")
        error.extendedresult = code
        raise error


class FaultyDisk(apsw.VFS):
    """A VFS with faulty files."""

    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802 - apsw's name
        """Open a file."""
        return FaultyFile(name, flags)


DISK = FaultyDisk()
main()
