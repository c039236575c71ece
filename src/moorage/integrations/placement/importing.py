"""The steps of an import: copy, follow, finish, abort. Each can be repeated after an interruption.

Each step reads the whole original, compares it with the ledger row by row, and sends what differs.
So it keeps no state, and trusts no generation and no time of the original. The step that began last
is the only one that writes: what another one has read, or has sent before it was killed, is older.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from uuid import uuid4

from moorage.client.transport import RefusedError
from moorage.integrations.placement.difference import Difference, difference, stages
from moorage.integrations.placement.ledger import Ledger
from moorage.integrations.placement.oddities import Oddities
from moorage.integrations.placement.reading import Progress, Reading, Source
from moorage.integrations.placement.rows import KINDS, RowKind
from moorage.wire.imports import RowsWanted

ALONE_MAX = 500
"""Rows that are looked up one by one; if there are more, all rows are compared again."""

IN_FLIGHT = 4
"""Requests at the same time."""

NOT_FOUND = "import_not_found"
IN_USE = "ledger_in_use"


class ImportingError(Exception):
    """The import cannot go on; the message says why, and what to do."""


class ChangingError(ImportingError):
    """The original has changed while the import was to be finished."""


class OddError(ImportingError):
    """There is data that cannot be kept, and no choice of the operator about it."""

    def __init__(self, oddities: Oddities) -> None:
        counts = ", ".join(f"{code} ({found.count})" for code, found in oddities.refused())
        super().__init__(f"the original has data that cannot be kept as it is: {counts}")
        self.oddities = oddities


@dataclass(frozen=True)
class Step:
    """What one step has done."""

    reading: Reading
    sent: int
    """Rows that differed, and were written or deleted."""


class Import:
    """The import of one original into the ledger of one server.

    Its steps raise ImportingError, SourceError, and the errors of `Ledger`.
    """

    def __init__(
        self,
        source: Source,
        ledger: Ledger,
        oddities: Callable[[], Oddities],
        progress: Progress,
        on_read: Callable[[Reading], None],
    ) -> None:
        """Prepare the steps.

        Args:
            source: the original.
            ledger: where it goes.
            oddities: makes what collects the oddities of one reading, with the operator's choices.
            progress: learns how far a step is.
            on_read: gets each reading, also one with data that cannot be kept.
        """
        self._source = source
        self._ledger = ledger
        self._oddities = oddities
        self._progress = progress
        self._on_read = on_read
        self._writer = str(uuid4())

    def whole(self) -> Step:
        """Copy and finish."""
        self._check_primary()
        try:
            copied = self.copy()
        except RefusedError as refusal:
            if refusal.code != IN_USE:
                raise
            try:
                return self.finish()  # it was interrupted after its last request
            except ImportingError:
                raise refusal from None
        finished = self.finish()
        return Step(finished.reading, copied.sent + finished.sent)

    def copy(self) -> Step:
        """Begin the import, or resume it, and write all rows."""
        resumes = self._take_over()
        reading = self._read()
        if not resumes:
            self._ledger.begin(self._source.shown, writer=self._writer)
        return Step(reading, self._send(self._compared(reading)))

    def follow(self) -> Step:
        """Write the rows that have changed since."""
        if not self._take_over():
            raise ImportingError("no import is under way: begin it with --copy")
        reading = self._read()
        return Step(reading, self._send(self._compared(reading)))

    def finish(self) -> Step:
        """Write the last changes; check that the original stands still; use the ledger.

        If the command was killed after the last request, the ledger is used already.
        """
        self._check_primary()
        under_way = self._take_over()
        with ThreadPoolExecutor(1) as pool:
            # Both take seconds, of different servers, and clients are waiting.
            rows = pool.submit(lambda: {kind: dict(self._ledger.rows(kind)) for kind in KINDS})
            reading = self._read()
            ours = rows.result()
        found = difference(reading.rows, lambda kind: ours[kind].items())
        ours = {}
        if not under_way:
            if found.size:
                raise ImportingError(
                    "no import is under way: begin it with --copy, unless the ledger is in use"
                    " since it was finished"
                )
            return Step(reading, 0)
        sent = self._send(found)
        with ThreadPoolExecutor(1) as pool:
            unchanged = pool.submit(self._source.is_unchanged, reading)
            if sent:
                self._check_written(reading, found)
            if not unchanged.result():
                self._check_same(reading, self._read())
        self._ledger.finish(self._writer)
        return Step(reading, sent)

    def _check_primary(self) -> None:
        """Raise ImportingError if what was written last may be missing where the original is read.

        Two readings are the same there, whatever is written elsewhere.
        """
        if (why := self._source.behind()) is not None:
            raise ImportingError(why)

    def _check_same(self, before: Reading, now: Reading) -> None:
        """Raise ChangingError if two readings differ."""
        for kind, key in before.rows.digests().differing(now.rows):
            raise ChangingError(
                f"the original still changes: {kind} {key} was another row a moment ago; stop all"
                " that write to it, then run the same command again"
            )

    def _check_written(self, reading: Reading, found: Difference) -> None:
        """Raise ImportingError if rows that were sent are not there.

        All others are as they were compared: during an import nothing else writes to the ledger.
        """
        if found.size > ALONE_MAX:
            found = self._compared(reading)
            wrong = [found.example()] if found.size else []
        else:
            wrong = [
                f"{kind} {key}"
                for kind in KINDS
                for key in (*found.wanted[kind], *found.gone[kind])
                if self._ledger.row(kind, key) != reading.rows.of(kind).get(key)
            ]
        for one in wrong:
            raise ImportingError(f"a row of the ledger is not as it was written: {one}")

    def abort(self) -> None:
        """Delete all that was imported, and end the import."""
        self._ledger.abort()

    def _take_over(self) -> bool:
        """Be the one that writes; return whether this original is being imported.

        Raises ImportingError: another one is.
        """
        try:
            shown = self._ledger.under_way()
        except RefusedError as refusal:
            if refusal.code == NOT_FOUND:
                return False
            raise
        if shown.source != self._source.shown:
            raise ImportingError(
                f"{shown.source} is being imported, not {self._source.shown}: finish or abort that"
                " import first"
            )
        self._ledger.begin(self._source.shown, writer=self._writer, resumes=True)
        return True

    def _read(self) -> Reading:
        reading = self._source.read(self._oddities(), self._progress)
        self._on_read(reading)
        if any(True for _ in reading.oddities.refused()):
            raise OddError(reading.oddities)
        return reading

    def _compared(self, reading: Reading) -> Difference:
        total = sum(reading.rows.counts().values())
        done = 0

        def ours(kind: RowKind) -> Iterator[tuple[str, bytes]]:
            nonlocal done
            for one in self._ledger.rows(kind):
                yield one
                done += 1
                if done % 1_000 == 0:
                    self._progress("comparing", done, max(done, total))

        return difference(reading.rows, ours)

    def _send(self, found: Difference) -> int:
        """Send what differs, several requests at the same time where their order is free."""
        total = found.size
        done = 0
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            for stage in stages(found):
                named = [replace(one, writer=self._writer) for one in stage]
                sent = [(pool.submit(self._ledger.write, one), _size(one)) for one in named]
                try:
                    for future, size in sent:
                        future.result()
                        done += size
                        self._progress("writing", min(done, total), total)
                except BaseException:
                    for future, _ in sent:
                        future.cancel()
                    raise
        return total


def _size(rows: RowsWanted) -> int:
    written = len(rows.classes) + len(rows.traits) + len(rows.providers) + len(rows.consumers)
    gone = rows.gone
    return written + sum(map(len, (gone.classes, gone.traits, gone.providers, gone.consumers)))
