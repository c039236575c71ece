"""The records of committed reshapes: when a request is a repetition, and what may be undone."""

from msgspec import Struct

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error


class ReshapeRecord(Struct, frozen=True, gc=False):
    """A committed reshape, for lists.

    `request` identifies what was asked for, `digest` the effects. `providers` and `consumers` are
    how many it has changed. `undoes` and `undone_by` are ids of reshapes.
    """

    id: str
    at: Instant
    who: str
    role: str
    reason: str
    digest: str
    request: str
    providers: int
    consumers: int
    undoes: str | None = None
    undone_by: str | None = None


class ReshapeMade(Struct, frozen=True):
    """A reshape to be kept: its record, and as JSON its summary, new generations and inverse.

    `token_id` is that of the author. `undone` is the record of the reshape that it undoes.
    """

    record: ReshapeRecord
    token_id: str | None
    summary: str
    generations: str
    inverse: str
    undone: ReshapeRecord | None = None


def is_repeated(known: ReshapeRecord | None, request: str, digest: str | None) -> bool:
    """Return whether a reshape of this id was committed by the same request.

    Raises KEY_REUSED: it was committed by another one.
    """
    if known is None:
        return False
    if known.request != request or digest not in (None, known.digest):
        raise Error(Code.KEY_REUSED, f"The id {known.id} is that of another reshape: choose one.")
    return True


def undoable(known: ReshapeRecord | None, reshape_id: str) -> ReshapeRecord:
    """Return the record of a reshape to undo. Raises RESHAPE_NOT_FOUND, RESHAPE_UNDONE."""
    if known is None:
        raise not_found(reshape_id)
    if known.undone_by is not None:
        raise Error(
            Code.RESHAPE_UNDONE,
            f"The reshape {known.id} was undone by {known.undone_by}; undo that one instead to"
            " carry it out again.",
        )
    return known


def not_found(reshape_id: str) -> Error:
    """Return the refusal for an unknown reshape."""
    return Error(
        Code.RESHAPE_NOT_FOUND,
        f"There is no reshape {reshape_id}: it is kept as long as the audit log.",
    )
