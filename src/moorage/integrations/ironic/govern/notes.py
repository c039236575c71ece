"""What a node says of why it waits: the member `moorage` of its `extra`, and no other field.

It is written when the reason or the place has changed, and at most once a minute for each node.
Places far behind are coarse, so that a long line does not cause a write for each step.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import IronicError, Node, NodeReader
from moorage.wire.admission import Lease

NOTE: Final = "moorage"
"""The member of `extra`."""

WAITING = "waiting"

NODE_SECONDS = 60.0
"""The least time between two notes on one node."""

WRITES_MAX = 200
"""Notes in one pass; the others follow in the next ones."""

WRITING_MAX = 8
"""Notes that are written at the same time."""

BUCKETS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""The last place of each group of places that count as one."""

log = logging.getLogger("moorage.ironic")


def note_of(ticket: Lease) -> dict[str, Any]:
    """Return what a node says while a ticket waits."""
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


def remark_of(reason: str) -> dict[str, Any]:
    """Return what a node says that has no place in line."""
    return {"code": "not_possible", "reason": reason}


def differs(old: Any, new: Mapping[str, Any] | None) -> bool:
    """Return whether a note must be written in place of the old one; None: there is to be none."""
    if new is None:
        return old is not None
    if not isinstance(old, Mapping):
        return True
    # The words of a place in line change with each grant; its code and its group of places do not.
    compared = "code" if "place" in new else "reason"
    return old.get(compared) != new.get(compared) or _bucket(old.get("place")) != _bucket(
        new.get("place")
    )


class Notes:
    """Writes the notes of one Ironic's nodes."""

    def __init__(self, nodes: NodeReader) -> None:
        self._nodes = nodes
        self._written: dict[str, float] = {}
        """When each node was written to, to wait before the next time."""

    async def write(self, nodes: Mapping[str, Node], wanted: Mapping[str, dict[str, Any]]) -> None:
        """Make nodes say what they should; those that Ironic has locked follow later."""
        clock = monotonic()
        for uuid in self._written.keys() - nodes.keys():
            del self._written[uuid]
        todo = [*self._todo(nodes, wanted, clock)]
        todo.sort(key=lambda one: self._written.get(one[0], float("-inf")))
        gate = asyncio.Semaphore(WRITING_MAX)

        async def put(uuid: str, note: dict[str, Any] | None) -> None:
            async with gate:
                await self._put(uuid, None if note is None else {WAITING: note}, clock)

        await asyncio.gather(*(put(uuid, note) for uuid, note in todo[:WRITES_MAX]))

    def _todo(
        self, nodes: Mapping[str, Node], wanted: Mapping[str, dict[str, Any]], clock: float
    ) -> Iterator[tuple[str, dict[str, Any] | None]]:
        for uuid, node in nodes.items():
            extra = node.get("extra")
            old = extra.get(NOTE) if isinstance(extra, Mapping) else None
            new = wanted.get(uuid)
            if new is None:
                if old is not None:
                    yield uuid, None
            elif clock - self._written.get(uuid, float("-inf")) >= NODE_SECONDS and differs(
                old.get(WAITING) if isinstance(old, Mapping) else None, new
            ):
                yield uuid, new

    async def _put(self, uuid: str, value: dict[str, Any] | None, clock: float) -> None:
        try:
            status = await self._nodes.extra_put(uuid, NOTE, value)
        except IronicError as error:
            log.debug("no note on node %s: %s", uuid, error)
            return
        if status < HTTPStatus.BAD_REQUEST:
            self._written[uuid] = clock


def in_line(tickets: Collection[Lease]) -> Lease | None:
    """Return the ticket of which a node says why it waits: its first one."""
    waiting = [ticket for ticket in tickets if ticket.waiting is not None]
    return min(waiting, key=lambda one: one.asked_at, default=None)


def _bucket(place: Any) -> int | None:
    if not isinstance(place, int):
        return None
    return next((number for number, last in enumerate(BUCKETS) if place <= last), len(BUCKETS))
