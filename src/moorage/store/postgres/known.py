"""A process's knowledge of a shared database: its newest revision, its server, its writers."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from moorage.store.api import Conflict, Row, Statement, Unusable
from moorage.store.formats import FORMAT, check
from moorage.store.high_water_mark import Mark, MarkFile, raised

log = logging.getLogger("moorage.postgres")


class KnownHistory:
    """The high-water mark of a process; with a file it survives a restart.

    Raises Unusable: the file cannot be read or written.
    """

    def __init__(self, path: str | None) -> None:
        self.mark = Mark()
        """The newest revision that is known to be committed."""
        self.newer = False
        """Whether a newer release has written; if so, unknown members must be preserved."""
        self.server = ""
        """The server that was last found to have the known history; empty: none yet."""
        self._file: MarkFile | None = None
        if path is not None:
            try:
                self._file = MarkFile(path)
                self.mark = self._file.load()
                self._file.store(self.mark)
            except (OSError, ValueError) as error:
                raise Unusable(f"epoch_file: {path} cannot be used: {error}") from None
            self._writing = ThreadPoolExecutor(1, "moorage-mark")
            self._asked = False
            self._warned = False

    def taken(self, statements: Sequence[Statement], rows: Sequence[Sequence[Row]]) -> Mark | None:
        """Return the revision that statements have taken, if any; it must be a new one.

        Raises:
            Conflict: the transaction must start again; the state is updated for that.
            Outdated: this release may not write any more.
        """
        found = raised(statements, rows)
        if found is None:
            return None
        check(found.minimum, "the database")
        if found.newest > FORMAT and not self.newer:
            self.newer = True
            raise Conflict("a newer release has begun to write")
        if found.mark[:2] <= self.mark[:2]:
            self.server = ""  # makes the next transaction check the history first
            raise Conflict("the database was put back to an earlier state")
        return found.mark

    def reached(self, mark: Mark) -> None:
        """Record that a revision is committed."""
        if mark > self.mark:
            self.mark = mark
            if self._file is not None and not self._asked:
                self._asked = True
                self._writing.submit(self._write, self._file)

    def close(self) -> None:
        """Finish writing and close the file."""
        if self._file is not None:
            self._writing.shutdown()
            self._file.close()

    def _write(self, file: MarkFile) -> None:
        self._asked = False
        try:
            file.store(self.mark)
        except OSError as error:
            if not self._warned:
                log.error("cannot write %s, which notices restores: %s", file.path, error)
            self._warned = True
