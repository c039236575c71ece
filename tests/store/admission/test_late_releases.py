"""Slots with expected releases, as rows."""

from moorage.core.admission.late_releases import owed
from moorage.core.admission.model import LateRelease, Slot
from moorage.core.clock import Instant
from moorage.core.ids import LeaseId
from moorage.store.admission.rows import slot_from_body, slot_row

SLOT = Slot("p", "s", "free", "", None, {}, Instant(0))


def test_late_releases_survive() -> None:
    """What is written is read again, with the leases."""
    record = LateRelease(Instant(7), (LeaseId("a"), LeaseId("b")))
    slot = Slot(
        "p", "s", "free", "", None, {}, Instant(0), late=(record,), doubtful=(LeaseId("c"),)
    )
    assert slot_from_body(slot_row(slot)[-1]) == slot


def test_rows_of_earlier_builds_are_read() -> None:
    """They have only times: the releases are expected, though of unknown holders."""
    body = slot_row(SLOT)[-1].replace('"late":[]', '"late":[5,9]').replace(',"doubtful":[]', "")
    assert '"late":[5,9]' in body and "doubtful" not in body
    slot = slot_from_body(body)
    assert owed(slot, Instant(6)) == (LateRelease(Instant(9)),)
    assert slot_from_body(slot_row(slot)[-1]) == slot
