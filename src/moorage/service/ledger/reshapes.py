"""Reshape plans: preview without a lock, commit, undo; and what earlier reshapes have done.

A commit plans again inside of its batch, so nothing that happens after a preview is overlooked. It
is alone in its batch, which works in threads.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Clock, Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Keys as FleetKeys
from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.core.ledger import reshape_records
from moorage.core.ledger.facts import Changes as LedgerChanges
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.facts import Keys as LedgerKeys
from moorage.core.ledger.import_mark import refusal as import_refusal
from moorage.core.ledger.model import Import
from moorage.core.ledger.reshape_records import ReshapeMade, ReshapeRecord
from moorage.core.ledger.reshaping import inverse as inverses
from moorage.core.ledger.reshaping import plan as plans
from moorage.core.ledger.reshaping.effects import Effect, ProviderDeleted, Summary
from moorage.core.ledger.reshaping.inverse import Inverse
from moorage.core.ledger.reshaping.plan import Generations, ReshapePlan
from moorage.core.ledger.reshaping.planning import Planned, plan_reshape, plan_undo
from moorage.core.ledger.reshaping.stranding import Ticket, stranded
from moorage.core.ledger.reshaping.tenants import Leases
from moorage.core.limits import HOLDERS_MAX, RESHAPE_BYTES_MAX, TICKETS_READ_MAX
from moorage.core.service_time import When
from moorage.core.texts import check_reason
from moorage.service import errors
from moorage.service.audit_entries import Actor, audit_entry
from moorage.service.batch.ledger_share import holding_of
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import AuditedUseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.ids import ids_with
from moorage.service.pages import END, PageMarker, page_of, place_parse, rows_to_read
from moorage.store import changelog, import_mark
from moorage.store.access.audit import AuditRow
from moorage.store.admission.tenants import tenants_load, tickets_load
from moorage.store.api import Engine, Plan
from moorage.store.ledger import reshapes as reshape_rows
from moorage.store.ledger.load import above_read, facts_read
from moorage.store.ledger.reshapes import ReshapeRow

LOOKED_AT_MAX = 200
"""Reshapes that are looked at for one page of those of a tree: each may have long generations."""

_INVERSE = msgspec.json.Decoder(Inverse)
_SUMMARY = msgspec.json.Decoder(Summary)
_GENERATIONS = msgspec.json.Decoder(Generations)


class Task(Struct, frozen=True):
    """What is to be planned: a plan, or the way back from a reshape."""

    keys: Callable[[], LedgerKeys]
    decide: Callable[[Facts, Instant, Leases], Planned]
    created: frozenset[ProviderId]
    """Providers that it may create."""
    tenants: frozenset[ConsumerId]
    """Consumers whose leases it must know."""
    below: frozenset[ProviderId] = frozenset()
    """Providers that lose only allocations: a preview also shows what is above them.

    A commit does not load that, because it would lock whole trees of hosts.
    """


def task_of(plan: ReshapePlan) -> Task:
    """Return the task of a plan."""

    def decide(facts: Facts, now: Instant, leases: Leases) -> Planned:
        return plan_reshape(facts, now, plan, leases)

    created = frozenset(one.uuid for one in plan.create)
    below = frozenset[ProviderId]().union(*plan.vacate.values())
    losing = plans.losing_consumers(plan)
    return Task(partial(plans.keys_for, plan), decide, created, losing, below)


def undo_of(inverse: Inverse, leave_out: frozenset[ConsumerId] = frozenset()) -> Task:
    """Return the task of undoing a reshape, without the consumers in `leave_out`."""

    def decide(facts: Facts, now: Instant, leases: Leases) -> Planned:
        return plan_undo(facts, now, inverse, leases, leave_out)

    gone = frozenset(one.provider for one in inverse.effects if isinstance(one, ProviderDeleted))
    tenants = inverses.losing_consumers(inverse)
    return Task(partial(inverses.keys_for, inverse), decide, gone, tenants)


class Wish(Struct, frozen=True):
    """How a task is to be committed.

    Attributes:
        id: of the reshape; a repetition has the same.
        request: identifies what is asked for.
        digest: of the effects that the caller has seen; None: any.
        reason: for the audit log.
    """

    id: str
    request: str
    digest: str | None
    reason: str


class ReshapeRefusal(Error):
    """A plan cannot be committed, or would no longer do what its author has seen."""

    def __init__(self, code: Code, message: str, planned: Planned) -> None:
        super().__init__(code, message)
        self.planned = planned


class Preview(Struct, frozen=True):
    """What a task would do, as of a revision `EPOCH.REVISION`."""

    planned: Planned
    revision: str


class Committed(Struct, frozen=True):
    """A committed reshape with all that it has done."""

    record: ReshapeRecord
    effects: tuple[Effect, ...]
    summary: Summary
    generations: Generations


@dataclass(slots=True)
class ReshapeCommit(AuditedUseCase[Committed | None]):
    """Carry out a task. Answer: what was done; None: an earlier request of this id has done it.

    Raises ReshapeRefusal: RESHAPE_REFUSED, RESHAPE_CHANGED; `Error`: KEY_REUSED, LIMIT_EXCEEDED,
    and for the undoing of a reshape RESHAPE_NOT_FOUND, RESHAPE_UNDONE.
    """

    task: Task
    wish: Wish
    by: Actor
    undoes: str | None = None
    alone: ClassVar[bool] = True
    answer: Committed | None = field(init=False, repr=False, compare=False)

    @property
    def large(self) -> bool:
        """Whether its keys are made in a thread: always."""
        return True

    def keys(self) -> Keys:
        """Name what the plan needs, agents of what it creates, and records."""
        ids = {self.wish.id} if self.undoes is None else {self.wish.id, self.undoes}
        fleet = FleetKeys(roots=set(self.task.created)) if self.task.created else None
        return Keys(self.task.keys(), fleet=fleet, reshapes=ids, tenants={*self.task.tenants})

    def decide(self, world: World, when: When) -> Changes:
        """Plan on what is there now, and return the changes."""
        self.rows, self.answer = [], None
        wish, undone = self.wish, None
        known = world.reshapes.get(wish.id)
        if reshape_records.is_repeated(known, wish.request, wish.digest):
            return Changes()
        if self.undoes is not None:
            undone = reshape_records.undoable(world.reshapes.get(self.undoes), self.undoes)
        planned = _planned(self.task, world.ledger, when.stamp, world.leases)
        check(planned, wish.digest)
        made, self.answer = kept(planned, wish, self.by, when, undone)
        self.rows = [audited(made.record, self.by, when)]
        return Changes(ledger=planned.changes, reshape=made)

    def conclude(self, world: World, when: When) -> Committed | None:
        """Return the answer of the decision."""
        return self.answer


def kept(
    planned: Planned, wish: Wish, by: Actor, when: When, undone: ReshapeRecord | None = None
) -> tuple[ReshapeMade, Committed]:
    """Return what is to be kept of a plan without violations, and the answer.

    `undone` is the reshape that it undoes. Raises LIMIT_EXCEEDED.
    """
    assert planned.inverse is not None
    generations = _reached(planned.changes)
    record = ReshapeRecord(
        id=wish.id,
        at=when.stamp,
        who=by.who,
        role=by.role,
        reason=wish.reason,
        digest=planned.digest,
        request=wish.request,
        providers=len(planned.changes.providers),
        consumers=len(planned.changes.consumers),
        undoes=None if undone is None else undone.id,
    )
    answer = Committed(record, planned.effects, planned.summary, generations)
    parts = (planned.summary, generations, planned.inverse)
    summary, reached, inverse = (msgspec.json.encode(one) for one in parts)
    size = len(summary) + len(reached) + len(inverse)
    if size > RESHAPE_BYTES_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"What would have to be kept of this reshape has {size} bytes, of which"
            f" {RESHAPE_BYTES_MAX} are allowed: make several plans.",
        )
    texts = (summary.decode(), reached.decode(), inverse.decode())
    return ReshapeMade(record, by.token_id, *texts, undone), answer


def audited(record: ReshapeRecord, by: Actor, when: When) -> AuditRow:
    """Return the audit row of a reshape."""
    verb = "commit" if record.undoes is None else "undo"
    return audit_entry(when.stamp, by, f"reshape.{verb}", record.id, after=_noted(record))


def _planned(task: Task, facts: Facts, now: Instant, leases: Leases) -> Planned:
    """Plan a task. Raises LIMIT_EXCEEDED."""
    check_all_loaded(facts)
    return task.decide(facts, now, leases)


def check_all_loaded(facts: Facts) -> None:
    """Raise LIMIT_EXCEEDED if more consumers are concerned than can be loaded."""
    if facts.holders_left_out:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"{facts.holders_left_out} consumers are on the providers that this concerns, of whom"
            f" {HOLDERS_MAX} can be looked at.",
        )


def check(planned: Planned, digest: str | None) -> None:
    """Raise ReshapeRefusal if a plan cannot be committed, or has other effects."""
    if planned.violations:
        first, more = planned.violations[0], len(planned.violations) - 1
        rest = f" There are {counted(more, 'more violation')}." if more else ""
        raise ReshapeRefusal(
            Code.RESHAPE_REFUSED, f"The plan cannot be carried out: {first.message}{rest}", planned
        )
    if digest not in (None, planned.digest):
        raise ReshapeRefusal(
            Code.RESHAPE_CHANGED,
            "The plan would now do something else than what was shown; look at it again.",
            planned,
        )


def _with_tickets(planned: Planned, tickets: Sequence[tuple[LeaseId, str]]) -> Planned:
    """Return a plan with a note about tickets that would wait in vain, if there are any."""
    asked = ((lease, holding_of(text)) for lease, text in tickets[:TICKETS_READ_MAX])
    found = (Ticket(lease, one.consumer, one.allocations) for lease, one in asked)
    note = stranded(planned.effects, found, len(tickets) > TICKETS_READ_MAX)
    return planned if note is None else replace(planned, notes=(*planned.notes, note))


class Reshapes:
    """Previews, commits and undoes plans; lists what was committed."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        clock: Clock,
        standard: tuple[frozenset[str], frozenset[str]],
    ) -> None:
        """Create it; `standard` are the standard classes and traits."""
        self._engine = engine
        self._transactor = transactor
        self._clock = clock
        self._standard = standard
        self._planning = asyncio.Semaphore(1)
        """Plans take processor time and memory: one after the other."""

    async def preview(self, task: Task) -> Preview:
        """Plan without a lock or a write. Raises `Error`: UNAVAILABLE, IMPORTING."""
        async with self._planning:
            keys = await asyncio.to_thread(task.keys)
            with errors.translated():
                found = await self._engine.read_aside(self._read(keys, task))
            mark, revision, facts, leases, tickets = found
            if mark is not None:
                raise import_refusal()
            planned = await asyncio.to_thread(_planned, task, facts, self._clock.now(), leases)
            return Preview(await asyncio.to_thread(_with_tickets, planned, tickets), revision)

    def _read(
        self, keys: LedgerKeys, task: Task
    ) -> Plan[tuple[Import | None, str, Facts, Leases, list[tuple[LeaseId, str]]]]:
        """Read the mark of an import, revision, facts, leases and tickets, in one snapshot."""
        mark = yield from import_mark.mark_load()
        epoch, revision = yield from changelog.clock_load()
        facts = yield from facts_read(keys, *self._standard)
        yield from above_read(facts, {*task.below})
        leases = yield from tenants_load({*task.tenants})
        tickets = yield from tickets_load(keys.holders, TICKETS_READ_MAX + 1)
        return mark, f"{epoch}.{revision}", facts, leases, tickets

    async def carry_out(self, plan: ReshapePlan, wish: Wish, by: Actor) -> Committed:
        """Carry out a plan as a whole, or repeat the answer of the same request.

        Raises ReshapeRefusal and `Error`, see `ReshapeCommit`.
        """
        return await self._commit(ReshapeCommit(task_of(plan), wish, by))

    async def undo_preview(
        self, reshape_id: str, leave_out: frozenset[ConsumerId] = frozenset()
    ) -> Preview:
        """Plan the way back from a reshape, without the consumers in `leave_out`.

        Raises `Error`: RESHAPE_NOT_FOUND, RESHAPE_UNDONE, UNAVAILABLE, IMPORTING.
        """
        row = await self._row(reshape_id)
        reshape_records.undoable(row.record, reshape_id)
        return await self.preview(await asyncio.to_thread(_way_back, row, leave_out))

    async def undo(
        self,
        reshape_id: str,
        wish: Wish,
        by: Actor,
        leave_out: frozenset[ConsumerId] = frozenset(),
    ) -> Committed:
        """Undo a reshape, or repeat the answer of the same request.

        `leave_out`: consumers that the reshape removed and that are not created again.

        Raises ReshapeRefusal and `Error`, see `ReshapeCommit`.
        """
        task = await asyncio.to_thread(_way_back, await self._row(reshape_id), leave_out)
        return await self._commit(ReshapeCommit(task, wish, by, reshape_id))

    async def _commit(self, case: ReshapeCommit) -> Committed:
        check_reason(case.wish.reason)
        made = await self._transactor.submit(case)
        return await self.read(case.wish.id) if made is None else made

    async def read(self, reshape_id: str) -> Committed:
        """Return a reshape. Raises `Error`: RESHAPE_NOT_FOUND, UNAVAILABLE."""
        return await asyncio.to_thread(_committed, await self._row(reshape_id))

    async def page(self, cursor: str | None, limit: int) -> tuple[list[ReshapeRecord], str | None]:
        """Return records, newest first, and the cursor of the next page; None on the last page.

        Raises `Error`: INVALID for a wrong cursor or limit, UNAVAILABLE.
        """
        place, rows_max = place_parse(cursor, END), rows_to_read(limit)
        with errors.translated():
            window = reshape_rows.reshapes_window(place.at, place.id, rows_max)
            rows = await self._engine.read(window)
        return page_of(rows, limit, _marker)

    async def begun(self, id_prefix: str, most: int) -> list[ReshapeRecord]:
        """Return at most `most` records whose ids begin so.

        Raises `Error`: INVALID, UNAVAILABLE.
        """
        first, end = ids_with(id_prefix)
        with errors.translated():
            return await self._engine.read(reshape_rows.reshapes_window_by_id(first, end, most))

    async def page_of_tree(
        self, cursor: str | None, limit: int, tree: ProviderId
    ) -> tuple[list[ReshapeRecord], str | None]:
        """As `page`, of those that have changed a provider in the tree of this one.

        At most `LOOKED_AT_MAX` are looked at, so that a page may be short although others follow.
        """
        place, wanted_max = place_parse(cursor, END), rows_to_read(limit) - 1
        rows_max = max(LOOKED_AT_MAX, wanted_max + 1)
        window = reshape_rows.tree_reshapes_window(place.at, place.id, rows_max, tree)
        with errors.translated():
            rows = await self._engine.read_aside(window)
        found = []
        for at, (record, touched) in enumerate(rows):
            if touched:
                found.append(record)
                if len(found) == wanted_max and at + 1 < len(rows):
                    return found, str(_marker(record))
        return found, str(_marker(rows[-1][0])) if len(rows) == rows_max else None

    async def _row(self, reshape_id: str) -> ReshapeRow:
        with errors.translated():
            row = await self._engine.read_aside(reshape_rows.reshape_load(reshape_id))
        if row is None:
            raise reshape_records.not_found(reshape_id)
        return row


def _marker(record: ReshapeRecord) -> PageMarker:
    return PageMarker(record.at, record.id)


def request_of(what: Any) -> str:
    """Return what identifies a request: equal ones are repetitions."""
    return sha256(msgspec.json.encode(what, order="sorted")).hexdigest()


def reshape_id_new() -> str:
    """Return the id of a reshape for a caller that has chosen none."""
    return str(uuid4())


def _way_back(row: ReshapeRow, leave_out: frozenset[ConsumerId]) -> Task:
    return undo_of(_INVERSE.decode(row.inverse), leave_out)


def _committed(row: ReshapeRow) -> Committed:
    return Committed(
        row.record,
        _INVERSE.decode(row.inverse).effects,
        _SUMMARY.decode(row.summary),
        _GENERATIONS.decode(row.generations),
    )


def _reached(changes: LedgerChanges) -> Generations:
    """Return the generations after these changes; those of deleted providers are left out."""
    return Generations(
        {uuid: one.generation for uuid, one in changes.providers.items() if one is not None},
        {uuid: None if one is None else one.generation for uuid, one in changes.consumers.items()},
    )


def _noted(record: ReshapeRecord) -> dict[str, Any]:
    """Return what the audit log says of a reshape."""
    noted = {
        "digest": record.digest,
        "providers": record.providers,
        "consumers": record.consumers,
        "reason": record.reason,
    }
    return noted if record.undoes is None else {**noted, "undoes": record.undoes}
