"""The mark of an import: it stands in the clock row, which every batch with changes raises.

So no process can miss it, and no batch needs a statement more (decision 0055).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec import json

from moorage.core.ledger.import_mark import RowCounts
from moorage.core.ledger.model import Import
from moorage.store.api import Conflict, Plan, Query, Statement, Write
from moorage.store.encoding import encode

KIND = "import"
"""The kind of its change rows."""

KEY = "ledger"
"""The key of its change rows."""

LOAD = Query("import_load")

LOCK = Query("import_lock")
"""Also prevents that another transaction raises the clock. Nothing may be locked afterwards."""

COUNT = Query("ledger_rows_count")

_marks = json.Decoder(Import)


class MarkChanged(Conflict):
    """The batch did not know the present mark; read it, decide again."""


def mark_from(text: str) -> Import:
    """Read what `mark_text` writes."""
    return _marks.decode(text)


def mark_text(mark: Import | None) -> str | None:
    """Write a mark; None stays None."""
    return None if mark is None else encode(mark)


def mark_load() -> Plan[Import | None]:
    """Load the mark; None: nothing is imported."""
    (((text,),),) = yield [LOAD]
    return None if text is None else mark_from(text)


def marked_load(*, alone: bool) -> Plan[tuple[Import | None, RowCounts | None]]:
    """Load the mark. `alone`: lock the clock, and count all rows."""
    if not alone:
        return (yield from mark_load()), None
    ((text,),), (counts,) = yield [LOCK, COUNT]
    return None if text is None else mark_from(text), RowCounts(*counts)


def counts_load() -> Plan[RowCounts]:
    """Count the rows of the ledger."""
    ((counts,),) = yield [COUNT]
    return RowCounts(*counts)


@dataclass(slots=True)
class MarkPart:
    """The mark's part of a batch, for `store/batch.py`."""

    before: Import | None
    after: Import | None
    needs_revision: ClassVar[bool] = False

    @property
    def is_published(self) -> bool:
        """Return whether it is changed."""
        return self.before != self.after

    def writes(self) -> Sequence[Statement]:
        """Return the statement that replaces the mark that was loaded."""
        if not self.is_published:
            return []
        row = mark_text(self.after), mark_text(self.before)
        return [Write("import_write", [row], guarded=True)]

    def stamp(self, epoch: int, revision: int) -> None:
        """Do nothing: it does not contain the revision."""

    def late_writes(self) -> Sequence[Statement]:
        """Return no statements."""
        return []

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield its change."""
        if self.is_published:
            yield KIND, KEY, mark_text(self.after)
