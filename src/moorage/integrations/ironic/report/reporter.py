"""The reporter: one pass after the other, each from what Ironic says now.

Every pass reads what has changed since the last one. At the start, every few minutes, and whenever
it may own other nodes, a full reading goes on beside the passes, page by page. Recent changes of
other members' nodes are known, too, so that after a takeover they are reported at once. Other nodes
are reported when the full reading finds them, because old knowledge may be wrong.

If this process or the ledger knows a node that a full reading does not have, the node is read
alone. It is reported as absent only if Ironic answers that it does not exist.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from moorage.client.decoding import UndecodableError
from moorage.client.transport import RefusedError, UnreachableError
from moorage.integrations.clock import monotonic
from moorage.integrations.ironic.nodes import IronicError, NodeReader
from moorage.integrations.ironic.report.conductors import Conductors
from moorage.integrations.ironic.report.known_nodes import KnownNodes
from moorage.integrations.ironic.report.mapping import uuid_of
from moorage.integrations.ironic.report.membership import (
    FENCED,
    LEAVE_SECONDS,
    FencedError,
    GroupMember,
    Members,
    PassEnded,
)
from moorage.integrations.ironic.report.reading import Reading, UnorderedError
from moorage.integrations.ironic.report.sending import Mode, Sender, StaleError, Tally
from moorage.integrations.report_api import ReportApi

AWAY = (IronicError, UnreachableError, RefusedError, UndecodableError, StaleError)
"""Why a pass may fail: the next one tries again."""

FULL_SECONDS = 300.0
"""The time between two full readings."""

GONE_MIN = 10
GONE_SHARE = 0.1
"""Nodes that may be gone in one full reading: more are rather a mistake in Ironic's permissions, by
which it answers 404, too."""

LATELY_TTLS = 2.0
"""A member that is replaced may not have reported what has changed within this many TTLs."""

UNREADABLE = "unreadable"
"""The code of own nodes that are not as Ironic describes one, in what operators see."""

FULL_AGAIN_SECONDS = 30.0
"""The time until a full reading that has failed is tried again."""


class TooManyGoneError(IronicError):
    """More nodes are gone than is likely: none of them is reported."""


@dataclass
class Progress:
    """The actions of the reporter, for people."""

    known: int = 0
    own: int = 0
    members: tuple[str, ...] = ()
    unclassed: int = 0
    """Own nodes without a resource class: nothing can be reported of them."""
    unreadable: int = 0
    """Own nodes that are not as Ironic describes one: nothing is reported of them, either."""
    total: Tally = field(default_factory=Tally)
    last: Tally = field(default_factory=Tally)
    """The reports of the last pass."""
    full: bool = False
    """Whether a full reading has succeeded."""
    trouble: str | None = None
    """Why the last pass has failed."""
    full_trouble: str | None = None
    """Why the last full reading has failed."""


log = logging.getLogger("moorage.ironic")


def gone_max(known: int) -> float:
    """Return how many of the known nodes may be gone in one full reading."""
    return max(GONE_MIN, GONE_SHARE * known)


class Reporter:
    """Reports the nodes of one Ironic as one member of a group."""

    def __init__(
        self,
        api: ReportApi,
        nodes: NodeReader,
        place: GroupMember,
        mode: Mode = "owner",
        *,
        conductors: str | None = None,
        many_gone: bool = False,
    ) -> None:
        """Prepare to report.

        Args:
            api: of Moorage.
            nodes: of Ironic.
            place: which member of which group.
            mode: who else writes the providers.
            conductors: the group of which Ironic's live conductors are members, if any.
            many_gone: report as absent however many nodes are gone.
        """
        self._api = api
        self._reading = Reading(nodes)
        self._members = Members(api, place)
        self._sender = Sender(api, self._members, mode)
        self._conductors = None if conductors is None else Conductors(api, nodes, conductors)
        self._many_gone = many_gone
        self._known = KnownNodes()
        self._todo: dict[str, None] = {}
        """The nodes that are to be sent, in order: those of passes that have failed, too."""
        self._begun = False
        self._owned_version = 0
        self._full_due = float("-inf")
        self._full: asyncio.Task[None] | None = None
        self.progress = Progress()

    async def tick(self) -> bool:
        """Make one pass; return whether it succeeded. It says when it begins and ends to fail.

        Raises FencedError.
        """
        tally = Tally()
        try:
            await self._members.join()
            await self._pass(tally)
        except AWAY as error:
            self._troubled(error)
            return False
        finally:
            self._count(tally)
        self._passed()
        if self.progress.trouble is not None:
            log.warning("passes succeed again")
        self.progress.trouble = None
        return True

    async def tick_unless(self, stop: asyncio.Event) -> None:
        """Make one pass, which ends unfinished when it is time to stop. Raises FencedError."""
        passing, stopping = asyncio.create_task(self.tick()), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((passing, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            passing.cancel()
            stopping.cancel()
            await asyncio.gather(passing, stopping, return_exceptions=True)
        if not passing.cancelled():
            passing.result()

    async def once(self) -> bool:
        """Report all nodes once, and leave the group; return whether nothing was refused.

        Raises FencedError.
        """
        signs = asyncio.create_task(self.stay())
        try:
            await self._members.join()
            await self._observe()
            await self._read_all_pages()
            self._count(Tally())
        except AWAY as error:
            self._troubled(error)
            return False
        finally:
            signs.cancel()
            with contextlib.suppress(asyncio.CancelledError, FencedError):
                await signs
            await self.close()
        refused = self._sender.refused or self._known.unreadable or self._known.odd
        return self.progress.full_trouble is None and not refused

    def read_all_soon(self) -> None:
        """Let the next pass begin a full reading, unless one goes on."""
        self._full_due = float("-inf")

    async def read_all_done(self) -> None:
        """Return when the full reading that goes on has ended. Raises FencedError."""
        if self._full is not None:
            await self._full

    async def stay(self) -> None:
        """Send signs of life until it is cancelled, also while passes take long.

        Raises FencedError.
        """
        while True:
            await asyncio.sleep(max(self._members.due_seconds, self._members.place.ttl / 10))
            if self._members.due_seconds <= 0:
                try:
                    await self._members.join()
                except AWAY as error:
                    log.debug("cannot send a sign of life: %s", error)

    async def close(self) -> None:
        """End what goes on, and leave the group, so that the others get the nodes at once.

        What was sent and is still on its way is fenced by that. If the server does not answer soon,
        the others get the nodes when its TTL is over, and the log says so.
        """
        if self._full is not None:
            self._full.cancel()
            with contextlib.suppress(asyncio.CancelledError, FencedError):
                await self._full
        place, reason = self._members.place, f"no answer within {LEAVE_SECONDS:g} s"
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self._members.leave()
            return
        except TimeoutError:
            pass
        except AWAY as error:
            if isinstance(error, RefusedError) and error.code == FENCED:
                return  # another one has its place, and the nodes
            reason = str(error)
        log.warning(
            "could not leave the group %s, its nodes get other owners within %g s: %s",
            place.group,
            place.ttl,
            reason,
        )

    async def _pass(self, tally: Tally) -> None:
        version, began = self._members.version, monotonic()
        if not self._begun:
            await self._reading.begin()
            self._begun = True
        if (changed := await self._changed()) is not None:
            self._sender.read_at = max(self._sender.read_at, began)
        moved = version != self._owned_version
        self._todo |= dict.fromkeys(changed or ())
        if moved:
            self._todo |= dict.fromkeys(self._known.changed_at)
        self._leave_old()
        sent = [*self._todo]
        tally.add(await self._sender.send(sent, self._known.reports))
        for uuid in sent:
            self._todo.pop(uuid, None)
        self._owned_version = version
        await self._observe()
        self._read_all(moved=moved or changed is None)

    async def _observe(self) -> None:
        if self._conductors is not None and self._members.observes(self._conductors.group):
            await self._conductors.observe()

    async def _changed(self) -> list[str] | None:
        """Read what has changed; return which nodes, or None: Ironic cannot say."""
        began = monotonic()
        try:
            changed = await self._reading.changed()
        except UnorderedError as error:
            log.debug("reading all nodes, not only changed ones: %s", error)
            return None
        return self._known.remember_changed(changed, began)

    def _leave_old(self) -> None:
        """Leave nodes that were read long ago to a full reading: they may be gone."""
        since = monotonic() - LATELY_TTLS * self._members.place.ttl
        kept = {uuid: None for uuid in self._todo if self._known.read_at(uuid) >= since}
        if len(kept) < len(self._todo):
            self.read_all_soon()
        self._todo = kept | dict.fromkeys(self._sender.refused)

    def _read_all(self, *, moved: bool) -> None:
        """Begin a full reading if it is time. Raises FencedError of the last one."""
        if self._full is not None and self._full.done():
            done, self._full = self._full, None
            done.result()
        if self._full is None and (moved or monotonic() >= self._full_due):
            self._full = asyncio.create_task(self._read_all_pages())

    async def _read_all_pages(self) -> None:
        """Read all nodes; it says when that begins and ends to fail. Raises FencedError."""
        progress, began, version = self.progress, monotonic(), self._members.version
        try:
            await self._read_pages()
        except AWAY as error:
            self._full_due = monotonic() + FULL_AGAIN_SECONDS
            if progress.full_trouble is None:
                log.warning("not all nodes were read: %s", error)
            progress.full_trouble = str(error)
            return
        if progress.full_trouble is not None:
            log.warning("all nodes were read again")
        progress.full, progress.full_trouble = True, None
        moved = version != self._members.version  # nodes of pages before are its own now
        self._full_due = float("-inf") if moved else began + FULL_SECONDS

    async def _read_pages(self) -> None:
        """Read all nodes and report them; ask for those that are missing."""
        known = self._known
        before = {*known.reports, *known.gone}
        seen: set[str] = set()
        began = started = monotonic()
        async for page in self._reading.pages():
            self._sender.read_at = max(self._sender.read_at, began)
            uuids = known.remember(page, began)
            seen.update(uuid_of(node["uuid"]) or "" for node in page)
            self.progress.total.add(await self._sender.send(uuids, known.reports))
            began = monotonic()
        known.forget_odd(started)
        ledger = await self._api.nodes(self._members.place.group)
        ghosts = {uuid for uuid, ghost in ledger.items() if ghost}
        missing = sorted({*before, *ledger} - seen)
        await self._ask_for(missing, ghosts, max(len(known.reports), len(ledger)))

    async def _ask_for(self, missing: Iterable[str], ghosts: Container[str], known: int) -> None:
        """Ask for own nodes that no list has; report those as absent that Ironic does not know.

        Of `known` nodes, only some may be gone at once; `ghosts` have been gone before.
        """
        absent: dict[str, float] = {}
        most = gone_max(known)
        gone = 0
        for uuid in filter(self._members.is_own, missing):
            began, read_at = monotonic(), self._known.read_at(uuid)
            node = await self._reading.node(uuid)
            if node is None:
                absent[uuid] = read_at
                gone += uuid not in ghosts
            else:
                self._known.remember([node], began)
                self._todo[uuid] = None
            if gone > most and not self._many_gone:
                raise TooManyGoneError(
                    f"more than {gone - 1} of {known} nodes are gone: check the address of Ironic"
                    " and what the token may see there, or start once with --many-gone"
                )
        self._sender.read_at = max(self._sender.read_at, monotonic())
        for uuid, read_at in absent.items():
            if self._known.read_at(uuid) == read_at:  # otherwise it was enrolled again meanwhile
                self._known.forget(uuid)
                self._todo.pop(uuid, None)
        tally, done = await self._sender.send_absent([*absent], self._known.gone)
        self.progress.total.add(tally)
        self._known.gone.difference_update(done)

    def _count(self, tally: Tally) -> None:
        progress, members = self.progress, self._members
        reports = self._known.reports
        own, odd = [*filter(members.is_own, reports)], [*filter(members.is_own, self._known.odd)]
        unreadable = sum(uuid in self._known.unreadable for uuid in own)
        progress.known = len(reports) + len(self._known.odd)
        progress.own, progress.unreadable = len(own) + len(odd), unreadable + len(odd)
        progress.unclassed = sum(reports[uuid] is None for uuid in own) - unreadable
        progress.members = members.live
        progress.last = tally
        progress.total.add(tally)

    def _passed(self) -> None:
        """Let operators see the pass. One that has failed is not shown: the last one gets old."""
        progress, members = self.progress, self._members
        refused = Counter(
            code for uuid, code in self._sender.refused.items() if members.is_own(uuid)
        )
        if progress.unreadable:
            refused[UNREADABLE] = progress.unreadable
        members.last_pass = PassEnded(monotonic(), progress.own - progress.unclassed, refused)

    def _troubled(self, error: Exception) -> None:
        if self.progress.trouble is None:
            log.warning("the pass failed: %s", error)
        self.progress.trouble = str(error)
