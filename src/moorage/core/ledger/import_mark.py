"""The mark of an import: who may change the ledger while another one is imported, and since when.

`imported_rows.py` says what rows change; this is about the import as a whole.
"""

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.ledger.model import Import
from moorage.core.limits import IDENTIFIER_LENGTH_MAX, IMPORT_SOURCE_LENGTH_MAX
from moorage.core.texts import check_plain

MARK_TARGET = "ledger"
"""The target of the audit rows of imports."""


class RowCounts(Struct, frozen=True):
    """How many rows the ledger has."""

    classes: int = 0
    traits: int = 0
    providers: int = 0
    consumers: int = 0

    def __bool__(self) -> bool:
        return bool(self.classes or self.traits or self.providers or self.consumers)


class ImportKeys(Struct, frozen=True):
    """What an import's request must know. `alone`: the number of rows, while nothing changes."""

    alone: bool = False


class ImportFacts(Struct, frozen=True):
    """The mark, and how many rows there are if a request must know; None: nothing is imported."""

    mark: Import | None
    counts: RowCounts | None = None


class ImportChange(Struct, frozen=True):
    """The new mark; None: the import has ended."""

    after: Import | None


class Beginning(Struct, frozen=True):
    """What is imported, and which program writes the rows. `resumes`: nothing new is begun."""

    source: str
    writer: str | None = None
    resumes: bool = False


def begin(
    facts: ImportFacts, now: Instant, wanted: Beginning, by: str
) -> tuple[ImportChange | None, Import]:
    """Begin to import into an empty ledger; with the same source an import is resumed.

    From then on only `wanted.writer` writes: what another program has read is older. Returns the
    change, None if nothing changes, and the import. Raises IMPORT_EXISTS, IMPORT_NOT_FOUND,
    LEDGER_IN_USE, INVALID.
    """
    source, writer = wanted.source, wanted.writer
    if not 1 <= len(source) <= IMPORT_SOURCE_LENGTH_MAX:
        raise Error(Code.INVALID, f"source must have 1 to {IMPORT_SOURCE_LENGTH_MAX} characters.")
    check_plain("source", source)
    if writer is not None:
        if not 1 <= len(writer) <= IDENTIFIER_LENGTH_MAX:
            raise Error(Code.INVALID, f"writer must have 1 to {IDENTIFIER_LENGTH_MAX} characters.")
        check_plain("writer", writer)
    mark = facts.mark
    if mark is not None:
        if mark.source != source:
            raise Error(
                Code.IMPORT_EXISTS,
                f"'{mark.source}' is being imported: finish or abort that import first.",
            )
        if mark.writer == writer:
            return None, mark
        mark = replace(mark, writer=writer)
        return ImportChange(mark), mark
    if wanted.resumes:
        raise not_found()
    counts = facts.counts
    assert counts is not None, "the number of rows is loaded"
    if counts:
        raise Error(
            Code.LEDGER_IN_USE,
            f"An import needs an empty ledger; this one has {counts.providers} providers,"
            f" {counts.consumers} consumers, {counts.classes} custom resource classes and"
            f" {counts.traits} custom traits: start a server with a new database.",
        )
    mark = Import(source, now, by, writer)
    return ImportChange(mark), mark


def under_way(facts: ImportFacts) -> Import:
    """Return the import that is under way. Raises IMPORT_NOT_FOUND."""
    if facts.mark is None:
        raise not_found()
    return facts.mark


def written_by(facts: ImportFacts, writer: str | None) -> Import:
    """Return the import whose rows a program writes. Raises IMPORT_NOT_FOUND, IMPORT_TAKEN."""
    mark = under_way(facts)
    if mark.writer != writer:
        raise Error(
            Code.IMPORT_TAKEN,
            "Another program has taken over this import: wait until that has ended, then begin"
            " again.",
        )
    return mark


def not_found() -> Error:
    """Return the error for a request that needs an import."""
    return Error(Code.IMPORT_NOT_FOUND, "No ledger is being imported.")


def refusal() -> Error:
    """Return the error for everything else that needs the ledger during an import.

    It does not name the source, which clients of the Placement API need not know.
    """
    return Error(Code.IMPORTING, "The ledger is being imported: try again when that is finished.")
