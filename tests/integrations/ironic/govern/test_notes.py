"""Notes change with the reason and the group of places, not with each step."""

from moorage.integrations.ironic.govern.notes import differs, remark_of


def note(
    place: int, reason: str = "2 of 2 units are in use", code: str = "full"
) -> dict[str, object]:
    """Return what a node says."""
    return {"place": place, "reason": reason, "code": code}


def test_when_a_note_is_written() -> None:
    """Far behind, places are coarse; another code or a nearer group is written."""
    assert differs(None, note(1))
    assert differs(note(2), note(1))
    assert not differs(note(60), note(90))
    assert differs(note(60), note(40))
    assert not differs(note(3, "1 of 2"), note(3, "2 of 2"))
    assert differs(note(3), note(3, code="paused"))
    assert differs(note(3), None)
    assert not differs(None, None)
    assert differs(remark_of("it is in maintenance"), remark_of("it is locked by c-1"))
    assert not differs(remark_of("it is locked by c-1"), remark_of("it is locked by c-1"))
