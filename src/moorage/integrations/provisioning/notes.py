"""Notes on hosts with the reason for waiting: when one is written, and how many in one pass.

A note is written when the reason or the place has changed, and at most once a minute for each host.
Places far behind are coarse, so that a long line does not cause a write for each step.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from moorage.integrations.bounded import run_bounded
from moorage.integrations.clock import monotonic
from moorage.wire.admission import Lease

Note = dict[str, Any]

HOST_SECONDS = 60.0
"""The least time between two notes on one host."""

WRITES_MAX = 200
"""Notes in one pass; the others follow in the next ones."""

WRITING_MAX = 8
"""Notes that are written at the same time."""

BUCKETS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""The last place of each group of places that count as one."""

UNREADABLE: Note = {}
"""In place of what a host says, if that is no note: it differs from every note."""


def note_of(ticket: Lease) -> Note:
    """Return what a host says while a ticket waits."""
    assert ticket.waiting is not None
    waiting = ticket.waiting
    return {
        "pool": ", ".join(need.pool for need in ticket.needs),
        "place": waiting.position,
        "eta_seconds": None if waiting.eta_seconds is None else [*map(round, waiting.eta_seconds)],
        "code": waiting.code,
        "reason": waiting.reason,
        "since": ticket.asked_at.isoformat(timespec="seconds"),
    }


def remark_of(reason: str) -> Note:
    """Return what a host says that has no place in line."""
    return {"code": "not_possible", "reason": reason}


def notes_of(
    tickets: Mapping[str, Collection[Lease]], remarks: Mapping[str, str], busy: Collection[str]
) -> dict[str, Note]:
    """Return what hosts say, by UUID: those in line why they wait, others why they cannot."""
    notes = {uuid: remark_of(text) for uuid, text in remarks.items()}
    for uuid, waiting in tickets.items():
        if (ticket := in_line(waiting)) is not None and uuid not in busy:
            notes[uuid] = note_of(ticket)
    return notes


def in_line(tickets: Collection[Lease]) -> Lease | None:
    """Return the ticket of which a host says why it waits: its first one."""
    waiting = [ticket for ticket in tickets if ticket.waiting is not None]
    return min(waiting, key=lambda one: one.asked_at, default=None)


def differs(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether a note must be written in place of the old one; None: there is to be none."""
    if old is None or new is None:
        return old is not new
    # The words of a place in line change with each grant; its code and its group of places do not.
    compared = "code" if "place" in new else "reason"
    return old.get(compared) != new.get(compared) or _bucket(old.get("place")) != _bucket(
        new.get("place")
    )


class NoteWriter:
    """Writes the notes of the hosts of one system, not too often and not too many at once."""

    def __init__(self, put: Callable[[str, Note | None], Awaitable[bool]]) -> None:
        """Prepare to write.

        `put` makes a host say something, or nothing (None). It returns False, and raises nothing,
        if that is not possible now.
        """
        self._put = put
        self._written: dict[str, float] = {}
        """When each host was given a note, to wait before the next one."""

    async def write(self, now: Mapping[str, Note | None], wanted: Mapping[str, Note]) -> None:
        """Make hosts say what they should.

        `now` is what all hosts say, by UUID; None: nothing.
        """
        clock = monotonic()
        for uuid in self._written.keys() - now.keys():
            del self._written[uuid]
        todo = [*self._todo(now, wanted, clock)]
        todo.sort(key=lambda one: self._written.get(one[0], float("-inf")))

        async def put(uuid: str, note: Note | None) -> None:
            if await self._put(uuid, note) and note is not None:
                self._written[uuid] = clock

        await run_bounded(WRITING_MAX, [partial(put, *one) for one in todo[:WRITES_MAX]])

    def _todo(
        self, now: Mapping[str, Note | None], wanted: Mapping[str, Note], clock: float
    ) -> Iterator[tuple[str, Note | None]]:
        for uuid, old in now.items():
            new = wanted.get(uuid)
            rested = clock - self._written.get(uuid, float("-inf")) >= HOST_SECONDS
            if (new is None or rested) and differs(old, new):
                yield uuid, new


def _bucket(place: Any) -> int | None:
    if not isinstance(place, int):
        return None
    return next((number for number, last in enumerate(BUCKETS) if place <= last), len(BUCKETS))
