"""A file system that fails once, at the n-th write, sync, truncation or opening."""

import apsw

FAULTS = {
    "write": ("error", "short", "full"),
    "sync": ("error",),
    "truncate": ("error",),
    "open": ("error",),
}
"""How each operation can fail. `short`: the disk was full after a part was written."""

_CODES = {
    ("write", "error"): apsw.SQLITE_IOERR_WRITE,
    ("write", "short"): apsw.SQLITE_FULL,
    ("write", "full"): apsw.SQLITE_FULL,
    ("sync", "error"): apsw.SQLITE_IOERR_FSYNC,
    ("truncate", "error"): apsw.SQLITE_IOERR_TRUNCATE,
    ("open", "error"): apsw.SQLITE_CANTOPEN,
}


class Faulty(apsw.VFS):
    """Counts operations by kind; makes one of them fail."""

    def __init__(self, name: str, operation: str = "", way: str = "", at: int = -1) -> None:
        super().__init__(name, "")
        self.name = name
        self.count = dict.fromkeys(FAULTS, 0)
        self.happened = False
        self._fault = (operation, way, at)

    def fails(self, operation: str) -> str:
        """Count an operation; return how it must fail, or an empty text."""
        number = self.count[operation]
        self.count[operation] += 1
        wanted, way, at = self._fault
        if (operation, number) != (wanted, at):
            return ""
        self.happened = True
        return way

    def error(self, operation: str, way: str) -> Exception:
        """Return the error code for SQLite."""
        return apsw.exception_for(_CODES[operation, way])

    def xOpen(self, name, flags):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Open a file, or fail."""
        if way := self.fails("open"):
            raise self.error("open", way)
        return FaultyFile(self, name, flags)


class FaultyFile(apsw.VFSFile):
    """An open file of a `Faulty`."""

    def __init__(self, system: Faulty, name, flags) -> None:  # type: ignore[no-untyped-def]  # as SQLite hands them over
        super().__init__("", name, flags)
        self._system = system

    def xWrite(self, data, offset):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Write, or fail; a short write stores the first half."""
        way = self._system.fails("write")
        if way == "short":
            super().xWrite(data[: len(data) // 2], offset)
        if way:
            raise self._system.error("write", way)
        super().xWrite(data, offset)

    def xSync(self, flags):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Sync, or fail."""
        if way := self._system.fails("sync"):
            raise self._system.error("sync", way)
        super().xSync(flags)

    def xTruncate(self, newsize):  # type: ignore[no-untyped-def]  # noqa: N802  # named by SQLite
        """Truncate, or fail."""
        if way := self._system.fails("truncate"):
            raise self._system.error("truncate", way)
        super().xTruncate(newsize)
