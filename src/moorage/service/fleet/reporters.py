"""Groups of reporters: the operations that faces may call.

A report is compared with the index, and with the owners at that moment, without a transaction. Only
nodes that differ go through the transactor, in small units, each in a spare turn.
"""

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from msgspec import Struct

from moorage.core.clock import Clock, Instant
from moorage.core.errors import Error
from moorage.core.fleet import members
from moorage.core.fleet.facts import Facts
from moorage.core.fleet.members import check_current
from moorage.core.fleet.ownership import Owners
from moorage.core.fleet.reporters import Member, ReporterGroup
from moorage.core.ids import ProviderId
from moorage.core.ledger import reported
from moorage.core.ledger.model import NO_TAGS
from moorage.core.ledger.reported import Node, NodeAnswer, ReportOutcome
from moorage.core.service_time import Moment
from moorage.service import errors
from moorage.service.audit_entries import Actor
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.transactor import Transactor
from moorage.service.fair_turns import FairTurns, Pieces
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.fleet.group_clearing import GroupClearing
from moorage.service.fleet.report_bounds import ReportedNodes, check_new, units
from moorage.service.fleet.reporter_cases import (
    GroupDelete,
    ReportUnit,
    Sender,
)
from moorage.service.pages import page_of, rows_to_read
from moorage.store.api import Engine, Plan
from moorage.store.fleet import reads
from moorage.store.fleet.reads import Shared

T = TypeVar("T")


class GroupView(Struct, frozen=True):
    """A group of reporters at one moment. `pinned` is the number of pins by member."""

    group: ReporterGroup
    members: list[Member]
    moment: Moment
    pinned: dict[str, int]


class Reporters:
    """Groups of reporters, and their reports. Every method raises `Error`."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        index: CatalogIndex,
        service_clock: ServiceClock,
        clock: Clock,
        turns: FairTurns,
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._index = index
        self._service_clock = service_clock
        self._clock = clock
        self.outcomes: Counter[str] = Counter()
        """Nodes of reports to this process, by outcome, or by the code of the refusal."""
        self.reported_at: dict[str, Instant] = {}
        """When each group last reported to this process, by the wall clock."""
        self.deleted: set[str] = set()
        """The groups that were deleted within a day, and have not begun again."""
        self.clearing = GroupClearing(engine, transactor, service_clock, turns, self._gone)

    async def delete(self, group: str, by: Actor) -> None:
        """Delete a group; what is left of it is cleared soon. Its providers stay."""
        await self._transactor.submit(GroupDelete(group, by))
        self.clearing.soon()

    def _gone(self, groups: set[str]) -> None:
        self.deleted = groups
        for group in groups:
            self.reported_at.pop(group, None)

    async def report(
        self, sender: Sender, sent: ReportedNodes, pieces: Pieces, by: Actor
    ) -> list[NodeAnswer]:
        """Apply a report; return the answer for each node, in their order.

        If the sender is fenced, or the database fails, in between, the remaining nodes are refused.

        Raises LIMIT_EXCEEDED; FENCED, UNAVAILABLE and OVERLOADED if nothing was done at all.
        """
        nodes = sent.by_uuid
        shared = await self._shared(sender.group, nodes)
        owners = _owners(shared, self._moment(shared), sender)
        await self._index.current()
        answers: dict[ProviderId, NodeAnswer] = {}
        async for node in pieces.each(nodes.values()):
            answer = self._known(node, owners, sender)
            if answer is not None:
                answers[node.uuid] = answer
        rest = [node for uuid, node in nodes.items() if uuid not in answers]
        await check_new(rest, self._index.catalog, pieces)
        for unit in units(rest):
            try:
                async with pieces.unit:
                    await pieces.rest()
                    done = await self._transactor.submit(ReportUnit(sender, unit, by))
            except Error as error:
                if not answers:
                    raise
                left = (node.uuid for node in rest if node.uuid not in answers)
                answers |= {uuid: reported.refused(uuid, error) for uuid in left}
                break
            answers.update((each.uuid, each) for each in done)
        found = [answers[uuid] for uuid in nodes]
        self.reported_at[sender.group] = self._clock.now()
        self.outcomes.update(each.refusal.code if each.refusal else each.outcome for each in found)
        return found

    def _known(self, node: Node, owners: Owners, sender: Sender) -> NodeAnswer | None:
        """Return the answer for a node that is refused or is as reported; None: decide."""
        record = self._index.catalog.record(node.uuid)
        provider = None if record is None else record.provider
        generation = None if provider is None else provider.generation
        try:
            owners.check(node.uuid, sender.member)
            reported.check(node, provider)
        except Error as refusal:
            return reported.refused(node.uuid, refusal.with_traceback(None), generation)
        held, tags = (record.inventories, record.tags) if record is not None else ({}, NO_TAGS)
        if not reported.is_met(node, sender.group, sender.mode, provider, held, tags):
            return None
        ghost = tags.reported_by(sender.group).ghost
        return NodeAnswer(node.uuid, ReportOutcome.UNCHANGED, generation, ghost)

    async def group(self, name: str) -> GroupView:
        """Return a group with its members. Raises GROUP_NOT_FOUND."""
        shared = await self._shared(name)
        if shared.group is None:
            raise members.group_not_found(name)
        with errors.translated():
            pinned = await self._engine.read(reads.pins_count(name))
        return GroupView(shared.group, shared.members, self._moment(shared), pinned)

    async def groups(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Return a page of the names of groups, and the cursor of the next page."""
        found = await self._window(limit, reads.reporter_groups_window, cursor)
        return page_of([group.name for group in found], limit, str)

    async def pins(
        self, group: str, cursor: str | None, limit: int
    ) -> tuple[list[tuple[ProviderId, str]], str | None]:
        """Return a page of pins as (node, member), and the cursor of the next page."""
        pins_of = partial(reads.pins_window, group)
        found = await self._known_window(group, limit, pins_of, cursor)
        return page_of(found, limit, lambda pin: pin[0])

    async def ghosts(
        self, group: str, cursor: str | None, limit: int
    ) -> tuple[list[ProviderId], str | None]:
        """Return a page of the ghosts of a group, and the cursor of the next page."""
        ghosts_of = partial(reads.ghosts_window, group)
        return page_of(await self._known_window(group, limit, ghosts_of, cursor), limit, str)

    async def nodes(
        self, group: str, cursor: str | None, limit: int
    ) -> tuple[list[tuple[ProviderId, bool]], str | None]:
        """Return a page of what a group owns, as (node, ghost), and the cursor of the next page."""
        nodes_of = partial(reads.reported_window, group)
        found = await self._known_window(group, limit, nodes_of, cursor)
        return page_of(found, limit, lambda node: node[0])

    async def _window(
        self, limit: int, plan_of: Callable[[str, int], Plan[list[T]]], cursor: str | None
    ) -> list[T]:
        """Read the rows of a page, and those that `page_of` needs to see whether it is the last."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            return await self._engine.read(plan_of(cursor or "", rows_max))

    async def _known_window(
        self,
        group: str,
        limit: int,
        plan_of: Callable[[str, int], Plan[list[T]]],
        cursor: str | None,
    ) -> list[T]:
        """Read the rows of a page that belongs to a group. Raises GROUP_NOT_FOUND."""
        plan = reads.known(group, plan_of(cursor or "", rows_to_read(limit)))
        with errors.translated():
            found = await self._engine.read(plan)
        if found is None:
            raise members.group_not_found(group)
        return found

    async def _shared(self, group: str, nodes: Collection[ProviderId] = ()) -> Shared:
        with errors.translated():
            return await self._engine.read(reads.shared_load(group, nodes))

    def _moment(self, shared: Shared) -> Moment:
        return self._service_clock.estimate(shared.timeline).moment


def _owners(shared: Shared, moment: Moment, sender: Sender) -> Owners:
    """Return the owners of the nodes of a report. Raises `Error`: FENCED."""
    facts = Facts(members={(one.group, one.name): one for one in shared.members})
    check_current(facts, sender.group, sender.member, sender.token)
    return Owners(members.live(shared.members, moment), shared.pins)
