"""The rows of committed reshapes, kept as long as audit rows. Only `undone_by` ever changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from msgspec.structs import astuple, replace

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.reshape_records import ReshapeMade, ReshapeRecord
from moorage.store.api import Plan, Query, Statement, Write
from moorage.store.encoding import encode, key_set

KIND = "reshape"
"""The kind of their change rows; the key is the id."""


class ReshapeRow(NamedTuple):
    """A reshape with all that is kept of it: its summary, new generations and inverse as JSON."""

    record: ReshapeRecord
    summary: str
    generations: str
    inverse: str


def records_load(ids: set[str]) -> Plan[dict[str, ReshapeRecord]]:
    """Load the records with these ids; unknown ones are left out."""
    (rows,) = yield [Query("reshapes_load", (key_set(ids),))]
    return {row[0]: ReshapeRecord(*row) for row in rows}


def reshape_load(reshape_id: str) -> Plan[ReshapeRow | None]:
    """Load one reshape as a whole: some megabytes, so use `read_aside`."""
    (rows,) = yield [Query("reshape_load", (reshape_id,))]
    if not rows:
        return None
    *record, summary, generations, inverse = rows[0]
    return ReshapeRow(ReshapeRecord(*record), summary, generations, inverse)


def reshapes_window(at: Instant, reshape_id: str, rows_max: int) -> Plan[list[ReshapeRecord]]:
    """Load the records before (at, id), newest first, at most `rows_max` of them."""
    (rows,) = yield [Query("reshapes_window", (at, reshape_id, rows_max))]
    return [ReshapeRecord(*row) for row in rows]


def reshapes_window_by_id(first: str, end: str, rows_max: int) -> Plan[list[ReshapeRecord]]:
    """Load the records with ids from `first` to before `end`, in order, at most `rows_max`."""
    (rows,) = yield [Query("reshapes_window_by_id", (first, end, rows_max))]
    return [ReshapeRecord(*row) for row in rows]


def tree_reshapes_window(
    at: Instant, reshape_id: str, rows_max: int, tree: ProviderId
) -> Plan[list[tuple[ReshapeRecord, bool]]]:
    """As `reshapes_window`, with whether each has changed a provider in the tree of `tree`.

    Their generations are read, which may be long: use `read_aside`.
    """
    query = Query("reshapes_window_by_tree", (at, reshape_id, rows_max, tree))
    (rows,) = yield [query]
    return [(ReshapeRecord(*row), bool(touched)) for *row, touched in rows]


def reshapes_forget(before: Instant, rows_max: int) -> Plan[int]:
    """Delete reshapes older than `before`, at most `rows_max` of them; return how many."""
    (rows,) = yield [Query("reshapes_delete", (before, rows_max))]
    return len(rows)


@dataclass(slots=True)
class ReshapePart:
    """The reshape of a batch, for `store/batch.py`."""

    made: ReshapeMade | None
    needs_revision: ClassVar[bool] = False

    @property
    def is_published(self) -> bool:
        """Return whether there is one."""
        return self.made is not None

    def writes(self) -> Sequence[Statement]:
        """Return the statements that keep it, and mark what it undoes.

        They are guarded: another process may have used the same id, or undone the same reshape.
        """
        made = self.made
        if made is None:
            return []
        texts = made.summary, made.generations, made.inverse
        row = (*astuple(made.record), made.token_id, *texts)
        writes: list[Statement] = [Write("reshape_insert", [row], guarded=True)]
        if made.undone is not None:
            undone = made.record.id, made.undone.id
            writes.append(Write("reshape_mark_undone", [undone], guarded=True))
        return writes

    def stamp(self, epoch: int, revision: int) -> None:
        """Do nothing: it does not contain the revision."""

    def late_writes(self) -> Sequence[Statement]:
        """Return no statements."""
        return []

    def change_rows(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield the change of its record, and of the one that it undoes."""
        if self.made is not None:
            record, undone = self.made.record, self.made.undone
            yield KIND, record.id, encode(record)
            if undone is not None:
                yield KIND, undone.id, encode(replace(undone, undone_by=record.id))
