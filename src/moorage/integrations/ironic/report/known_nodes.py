"""A reporter's knowledge of Ironic's nodes: the report of each, and when it was read."""

from collections.abc import Iterable

from moorage.client.run.printing import printable
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import ENTRIES_MAX, IronicError, Node
from moorage.integrations.ironic.report.mapping import (
    UnreadableNodeError,
    remark_of,
    reported,
    uuid_of,
)
from moorage.integrations.ironic.report.remarks import NAME_LENGTH_MAX, Remarks
from moorage.wire.reporting import NodeReported

KNOWN_MAX = ENTRIES_MAX
"""Nodes that a reporter keeps in memory."""

UNREPORTED = "it is not reported"

NEVER = float("-inf")


class KnownNodes:
    """The nodes that were read, also those of other members. Times are monotonic."""

    def __init__(self) -> None:
        self.reports: dict[str, NodeReported | None] = {}
        """The report of each; None: nothing."""
        self.changed_at: dict[str, float] = {}
        """When the reading of changes ended that each node was last in."""
        self.gone: set[str] = set()
        """The nodes that Ironic does not know, until a report says so and is accepted."""
        self.unreadable: set[str] = set()
        """Nodes that are not as Ironic describes one."""
        self.odd: dict[str, float] = {}
        """Nodes whose UUID is not written as Ironic writes one, and when the reading began that
        each was last in. Named by their UUID, if it is one, or else by what is in its place."""
        self._read_at: dict[str, float] = {}
        self._remarks = Remarks()

    def read_at(self, uuid: str) -> float:
        """Return when the reading began that a node was last in, in any way."""
        return self._read_at.get(uuid, NEVER)

    def remember(self, nodes: Iterable[Node], began: float) -> list[str]:
        """Keep what was read, unless a reading of changes that ended later may be newer.

        Nothing is lost by that: if it is older, the change is in the next reading of changes.
        Return the nodes, without those whose UUID is not one that is reported.

        Raises IronicError: there are too many.
        """
        return self._remember(nodes, began, newest=False)

    def remember_changed(self, nodes: Iterable[Node], began: float) -> list[str]:
        """Keep what a reading of changes has just read: nothing is newer. As `remember`."""
        uuids = self._remember(nodes, began, newest=True)
        self.changed_at |= dict.fromkeys(uuids, monotonic())
        return uuids

    def forget(self, uuid: str) -> None:
        """Forget a node that Ironic does not know; it is `gone`."""
        for memory in (self.reports, self.changed_at, self._read_at):
            memory.pop(uuid, None)
        self.unreadable.discard(uuid)
        self._remarks.note(uuid, None)
        self.gone.add(uuid)

    def _remember(self, nodes: Iterable[Node], began: float, *, newest: bool) -> list[str]:
        found = []
        for node in nodes:
            uuid: str = node["uuid"]
            if uuid_of(uuid) != uuid:
                self._note_odd(uuid, node, began)
                continue
            found.append(uuid)
            self.gone.discard(uuid)
            self._read_at[uuid] = began
            if newest or began >= self.changed_at.get(uuid, NEVER):
                self.reports[uuid] = self._mapped(uuid, node)
            if len(self.reports) + len(self.odd) > KNOWN_MAX:
                raise IronicError(f"Ironic has listed more than {KNOWN_MAX} nodes so far")
        self._remarks.say()
        return found

    def forget_odd(self, began: float) -> None:
        """Forget the `odd` nodes that were in no reading since a time."""
        self.odd = {name: at for name, at in self.odd.items() if at >= began}

    def _note_odd(self, text: str, node: Node, began: float) -> None:
        self.odd[uuid_of(text) or printable(text[:NAME_LENGTH_MAX])] = began
        try:
            reported(node)
        except UnreadableNodeError as error:
            self._remarks.note(text, f"{UNREPORTED}: {error}")

    def _mapped(self, uuid: str, node: Node) -> NodeReported | None:
        """Return the report of a node, or None. Its errors become remarks."""
        self.unreadable.discard(uuid)
        try:
            report, remark = reported(node), remark_of(node)
        except UnreadableNodeError as error:
            report, remark = None, f"{UNREPORTED}: {error}"
            self.unreadable.add(uuid)
        self._remarks.note(uuid, remark)
        return report
