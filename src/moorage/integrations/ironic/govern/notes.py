"""What a node says of why it waits: the member `moorage` of its `extra`, and no other field."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from moorage.integrations.ironic.nodes import IronicError, Node, NodeReader
from moorage.integrations.provisioning.notes import UNREADABLE, Note, NoteWriter

NOTE: Final = "moorage"
"""The member of `extra`."""

WAITING = "waiting"

log = logging.getLogger("moorage.ironic")


class Notes:
    """Writes the notes of one Ironic's nodes."""

    def __init__(self, nodes: NodeReader) -> None:
        self._nodes = nodes
        self._writer = NoteWriter(self._put)

    async def write(self, nodes: Mapping[str, Node], wanted: Mapping[str, Note]) -> None:
        """Make nodes say what they should; those that Ironic has locked follow later."""
        await self._writer.write({uuid: said_by(node) for uuid, node in nodes.items()}, wanted)

    async def _put(self, uuid: str, note: Note | None) -> bool:
        value = None if note is None else {WAITING: note}
        try:
            return await self._nodes.extra_put(uuid, NOTE, value) < HTTPStatus.BAD_REQUEST
        except IronicError as error:
            log.debug("no note on node %s: %s", uuid, error)
            return False


def said_by(node: Node) -> Note | None:
    """Return what a node says; None: nothing."""
    extra = node.get("extra")
    found = extra.get(NOTE) if isinstance(extra, Mapping) else None
    if found is None:
        return None
    note = found.get(WAITING) if isinstance(found, Mapping) else None
    return note if isinstance(note, dict) else UNREADABLE
