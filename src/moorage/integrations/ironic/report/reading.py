"""What has changed in Ironic since the last look.

Ironic's list has no filter by time. But it can be sorted by `updated_at`, the latest first, so a
look reads until it meets what it has seen already. Ironic changes `updated_at` with every change of
a node, and with every lock: a change of its traits needs one. A node that was never changed has no
`updated_at`, so `created_at` is read in the same way. Nodes that are deleted are in no list.

Both times are in whole nodes only, so changes are read as such; all nodes are read without them.
Source: Ironic 39, `ironic/db/sqlalchemy/api.py`, and `tests/baremetal/contract_steps.py`.
"""

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta

from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import IronicError, Node, NodeReader
from moorage.integrations.ironic.report.mapping import FIELDS

OVERLAP = timedelta(seconds=5)
"""How far behind the last time a look reads again: transactions end out of order, and the clocks of
conductors differ a little."""

SETTLED_SECONDS = 2 * OVERLAP.total_seconds()
"""After this time nothing can appear any more that is older than the last time: both reasons for
the overlap are over."""

PAGE = 50
"""Nodes in a page of changes: whole ones cost Ironic some milliseconds each."""

NEVER = datetime.min.replace(tzinfo=UTC)

TIMES = ("updated_at", "created_at")


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

    async def begin(self) -> None:
        """Note the present, from which `changed` goes on; what is older must be read otherwise."""
        for name in TIMES:
            if (node := await self._first(name, "desc")) is not None:
                self._move(name, [node])

    async def changed(self) -> list[Node]:
        """Return the nodes that have changed since the last call, and some that have not.

        Raises UnorderedError, too.
        """
        found: dict[str, Node] = {}
        marks: dict[str, list[Node]] = {name: [] for name in TIMES}
        for name in TIMES:
            since = self._since[name]
            if since != NEVER and monotonic() - self._since_read_at[name] < SETTLED_SECONDS:
                since -= OVERLAP
            async for page in self._nodes.pages(None, sort=(name, "desc"), limit=PAGE):
                if page and not page[0].get(name) and await self._is_unordered(name):
                    raise UnorderedError("Ironic lists nodes that were never changed first")
                recent = [node for node in page if _time(node, name) > since]
                marks[name] += recent
                found.update((str(node["uuid"]), node) for node in recent)
                if len(recent) < len(page):
                    break
        for name, nodes in marks.items():
            self._move(name, nodes)
        return [*found.values()]

    def _move(self, name: str, nodes: Iterable[Node]) -> None:
        latest = max([self._since[name], *(_time(node, name) for node in nodes)])
        if latest != self._since[name]:
            self._since[name], self._since_read_at[name] = latest, monotonic()

    async def _is_unordered(self, name: str) -> bool:
        """Return whether nodes without a time, of which one came first, are not the least."""
        least = await self._first(name, "asc")
        return least is not None and least.get(name) is not None

    async def _first(self, name: str, direction: str) -> Node | None:
        async for page in self._nodes.pages(None, sort=(name, direction), limit=1):
            return page[0] if page else None
        return None

    async def pages(self) -> AsyncIterator[list[Node]]:
        """Yield all nodes, page by page."""
        async for page in self._nodes.pages(FIELDS):
            yield page

    async def node(self, uuid: str) -> Node | None:
        """Return one node; None: Ironic has answered that there is none."""
        return await self._nodes.node(uuid, FIELDS)


def _time(node: Node, name: str) -> datetime:
    text = node.get(name)
    if not text:
        return NEVER
    at = datetime.fromisoformat(str(text))
    return at if at.tzinfo else at.replace(tzinfo=UTC)
