"""Notes change with the reason and the group of places, not with each step."""

import asyncio

from moorage.integrations.provisioning.notes import (
    HOST_SECONDS,
    UNREADABLE,
    WRITES_MAX,
    Note,
    NoteWriter,
    differs,
    remark_of,
)


def note(
    place: int, reason: str = "2 of 2 units are in use", code: str = "full"
) -> dict[str, object]:
    """Return what a host says."""
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
    assert differs(UNREADABLE, None)
    assert differs(UNREADABLE, note(1))
    assert differs(remark_of("it is in maintenance"), remark_of("it is locked by c-1"))
    assert not differs(remark_of("it is locked by c-1"), remark_of("it is locked by c-1"))


class Skipping(asyncio.SelectorEventLoop):
    """An event loop whose clock a test moves forward."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


def test_how_many_notes_are_written() -> None:
    """In one pass `WRITES_MAX`, and then those that waited for longest; a host with a note gets the
    next one a minute later, but loses it at once; what could not be written is tried again.
    """
    said: dict[str, Note | None] = {f"h{number}": None for number in range(WRITES_MAX + 5)}
    sent: list[str] = []
    locked: set[str] = set()

    async def put(uuid: str, new: Note | None) -> bool:
        sent.append(uuid)
        if uuid in locked:
            return False
        said[uuid] = new
        return True

    async def scene() -> None:
        writer = NoteWriter(put)

        async def write(place: int) -> list[str]:
            sent.clear()
            await writer.write(said, dict.fromkeys(said, note(place)))
            return [*sent]

        assert len(await write(3)) == WRITES_MAX
        assert await write(2) == [f"h{number}" for number in range(WRITES_MAX, len(said))]
        assert await write(1) == []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Skipping)
        loop.skipped += HOST_SECONDS
        locked.update(said)
        assert len(await write(1)) == WRITES_MAX
        locked.clear()
        assert len(await write(1)) == WRITES_MAX
        assert len(await write(1)) == 5
        sent.clear()
        await writer.write(said, {})
        await writer.write(said, {})
        assert {*sent} == {*said}
        assert {*map(str, said.values())} == {"None"}

    with asyncio.Runner(loop_factory=Skipping) as runner:
        runner.run(scene())
