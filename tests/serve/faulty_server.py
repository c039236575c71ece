"""`moorage` on a disk whose syncs fail from the moment on that a trigger file exists.

Usage: faulty_server.py TRIGGER COMMAND...
"""

import os
import sys
from typing import Any

import apsw

from moorage.cli.main import main

TRIGGER = sys.argv.pop(1)


class FaultyFile(apsw.VFSFile):
    """A file that cannot be synced once the trigger exists."""

    def __init__(self, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        """Sync, or fail as a broken disk does."""
        if os.path.exists(TRIGGER):
            error = apsw.IOError("the disk does not answer")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        super().xSync(flags)


class FaultyDisk(apsw.VFS):
    """The machine's disk, with faulty files."""

    def __init__(self) -> None:
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802 - apsw's name
        """Open a file."""
        return FaultyFile(name, flags)


DISK = FaultyDisk()
main()
