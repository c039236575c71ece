"""Reads the changes in Ironic since the last reading.

Ironic's list has no filter by time. But it can be sorted by `updated_at`, the latest first, so a
look reads until it meets what it has seen already. Ironic changes `updated_at` with every change of
a node, and with every lock: a change of its traits needs one. A node that was never changed has no
`updated_at`, so `created_at` is read in the same way. Nodes that are deleted are in no list.

Both times are in whole nodes only, so changes are read as such; all nodes are read without them.
Source: Ironic 39, `ironic/db/sqlalchemy/api.py`, and `tests/baremetal/contract_steps.py`.
"""

import logging
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

from moorage.client.run.printing import printable
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import IronicError, LongListError, Node, NodeReader
from moorage.integrations.ironic.report.mapping import FIELDS
from moorage.integrations.ironic.report.remarks import NAME_LENGTH_MAX

OVERLAP = timedelta(seconds=5)
"""How far behind the last time a look reads again: transactions end out of order, and the clocks of
conductors differ a little."""

SETTLED_SECONDS = 2 * OVERLAP.total_seconds()
"""After this time nothing can appear any more that is older than the last time: both reasons for
the overlap are over."""

PAGE = 50
"""Nodes in a page of changes: whole ones cost Ironic some milliseconds each."""

NEVER = datetime.min.replace(tzinfo=UTC)
EVER = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)

TIMES = ("updated_at", "created_at")

log = logging.getLogger("moorage.ironic")


class UnorderedError(IronicError):
    """Ironic's database begins with the nodes that were never changed: changes cannot be read."""


class Reading:
    """The nodes of one Ironic, and how far its changes are known.

    Every call raises IronicError.
    """

    def __init__(self, nodes: NodeReader) -> None:
        self._nodes = nodes
        self._since = dict.fromkeys(TIMES, NEVER)
        """The latest time of each list, by Ironic's clock: much may happen between reading the one
        and reading the other."""
        self._since_read_at = dict.fromkeys(TIMES, 0.0)
        """When it was read first, by the monotonic clock."""
        self._is_ahead = False

    async def begin(self) -> None:
        """Note the present, from which `changed` goes on; what is older must be read otherwise."""
        for name in TIMES:
            if (node := await self._first(name, "desc")) is not None:
                self._move(name, [node], self._present())

    async def changed(self) -> list[Node]:
        """Return the nodes that have changed since the last call, and some that have not.

        Raises UnorderedError, too; also if too much has changed to be read as whole nodes.
        """
        found: dict[str, Node] = {}
        marks: dict[str, tuple[list[Node], datetime]] = {}
        try:
            for name in TIMES:
                marks[name] = await self._changed_in(name)
                found.update((node["uuid"], node) for node in marks[name][0])
        except LongListError as error:
            await self.begin()
            raise UnorderedError(str(error)) from error
        for name, (nodes, present) in marks.items():
            self._move(name, nodes, present)
        self._warn(marks.values())
        return [*found.values()]

    async def _changed_in(self, name: str) -> tuple[list[Node], datetime]:
        """Return the latest nodes of a list, and Ironic's time when it began to answer."""
        since = self._since[name]
        if since > NEVER + OVERLAP and monotonic() - self._since_read_at[name] < SETTLED_SECONDS:
            since -= OVERLAP
        found: list[Node] = []
        present: datetime | None = None
        async for page in self._nodes.pages(None, sort=(name, "desc"), limit=PAGE, odd=True):
            present = present or self._present()
            if page and not page[0].get(name) and await self._is_unordered(name):
                raise UnorderedError("Ironic lists the nodes that never changed before the others")
            recent = [node for node in page if _time(node, name) > since]
            found += recent
            if len(recent) < len(page):
                break
        return found, present or self._present()

    def _present(self) -> datetime:
        """Return the end of the second of Ironic's last answer; if it has no time, this process's.

        What is newer can only come from a clock that is ahead.
        """
        own = datetime.now(UTC)  # noqa: TID251 - a time to compare with those of Ironic is meant
        return min(self._nodes.answered_at or own, EVER) + timedelta(seconds=1)

    def _move(self, name: str, nodes: Iterable[Node], present: datetime) -> None:
        """Note how far a list is known: never beyond the present.

        If the clock of a conductor is ahead, its nodes are read again until their time has come:
        otherwise no other change would be noticed until then.
        """
        latest = max([self._since[name], *(_time(node, name) for node in nodes)])
        latest = min(latest, present)
        if latest != self._since[name]:
            self._since[name], self._since_read_at[name] = latest, monotonic()

    def _warn(self, lists: Iterable[tuple[list[Node], datetime]]) -> None:
        """Say when it begins and ends that nodes have changed in the future."""
        ahead = {
            node["uuid"]
            for name, (nodes, present) in zip(TIMES, lists, strict=True)
            for node in nodes
            if _time(node, name) > present + OVERLAP
        }
        if ahead and not self._is_ahead:
            log.warning(
                "the last change of %d nodes lies in the future, such as %s: set the clocks of"
                " Ironic's conductors; until then these nodes are read in every pass",
                len(ahead),
                printable(min(ahead)[:NAME_LENGTH_MAX]),
            )
        if self._is_ahead and not ahead:
            log.warning("no change lies in the future any longer")
        self._is_ahead = bool(ahead)

    async def _is_unordered(self, name: str) -> bool:
        """Return whether nodes without a time, of which one came first, are not the least."""
        least = await self._first(name, "asc")
        return least is not None and least.get(name) is not None

    async def _first(self, name: str, direction: str) -> Node | None:
        async for page in self._nodes.pages(None, sort=(name, direction), limit=1, odd=True):
            return page[0] if page else None
        return None

    async def pages(self) -> AsyncIterator[list[Node]]:
        """Yield all nodes, page by page."""
        async for page in self._nodes.pages(FIELDS, odd=True):
            yield page

    async def node(self, uuid: str) -> Node | None:
        """Return one node; None: Ironic has answered that there is none."""
        node = await self._nodes.node(uuid, FIELDS)
        if node is not None and node["uuid"] != uuid:
            raise IronicError(f"Ironic was asked for node {uuid}, and returned another node")
        return node


def _time(node: Node, name: str) -> datetime:
    """Return a time of a node; one that cannot be read is in the future, so that it is not lost."""
    text = node.get(name)
    if not text:
        return NEVER
    try:
        at = datetime.fromisoformat(str(text))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return EVER
