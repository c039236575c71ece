"""A batch that changes the ledger is given up if the mark is not the one that it has read."""

import pytest

from moorage.core.clock import Instant
from moorage.core.ledger.model import Import
from moorage.store.batch import batch_save
from moorage.store.import_mark import MarkChanged, MarkPart, mark_text

OLD = Import("a source", Instant(0), "somebody", "old")
NEW = Import("a source", Instant(0), "somebody", "new")


def told(stored: Import | None, *, minds_mark: bool = True) -> None:
    """Save a batch that knows of the old mark, where this one is stored."""
    plan = batch_save([MarkPart(None, OLD)], [], Instant(0), mark=OLD, minds_mark=minds_mark)
    statements = next(plan)
    answers = [[] for _ in statements]
    answers[-2] = [(1, 1, 0, 1, 1, mark_text(stored))]
    with pytest.raises(StopIteration):
        plan.send(answers)


@pytest.mark.parametrize("stored", [None, NEW])
def test_another_mark_is_noticed(stored: Import | None) -> None:
    """Also if only its writer is another one: both are imports that are under way."""
    with pytest.raises(MarkChanged):
        told(stored)
    told(stored, minds_mark=False)


def test_the_same_mark_is_fine() -> None:
    """The control."""
    told(OLD)
