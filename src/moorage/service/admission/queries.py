"""Reads pools and leases: their rows, times by the wall clock, and positions of tickets."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from moorage.core.admission import pacing, requests
from moorage.core.admission.facts import Changes
from moorage.core.admission.forecast.statistics import percentiles
from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.handing_over import is_offered_to
from moorage.core.admission.model import Lease, Pool, State, since_of
from moorage.core.admission.pools import not_found
from moorage.core.admission.sharing import fair_share
from moorage.core.admission.units import SlotGroup, figures_of, units_by_pool
from moorage.core.clock import HOUR, SECOND, Instant
from moorage.core.counting import counted
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, LeaseId
from moorage.core.limits import KEY_LENGTH_MAX, LEASES_KEPT_HOURS, LEASES_SCANNED_MAX, PAGE_MAX
from moorage.core.service_time import Timeline, When
from moorage.core.texts import check_plain
from moorage.service import errors
from moorage.service.admission.ended import EndedLeases
from moorage.service.admission.positions import Known, Positions
from moorage.service.admission.slots import DRAINED
from moorage.service.admission.template_cases import TemplateView, views_of
from moorage.service.admission.views import (
    Ages,
    ContentsView,
    LeaseView,
    OutcomeCount,
    OverstayView,
    PoolView,
    ReportView,
)
from moorage.service.batch.ledger_share import holding_of
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.caller_turns import CallerTurns
from moorage.service.feed.watch import Cursor
from moorage.service.ids import ids_with
from moorage.service.pages import START, PageMarker, page_of, place_parse, rows_to_read
from moorage.store import service_clock
from moorage.store.admission import reads
from moorage.store.admission.contents import contents_load
from moorage.store.admission.line_pass import places_load
from moorage.store.admission.reads import PoolSeen, TicketSeen
from moorage.store.api import Engine
from moorage.wire.labels import GOVERNOR, HOLDER, HOST, NODE, name_of, says

MACHINE_LABELS = (HOLDER, HOST, NODE)
"""Labels whose value may be a machine."""


class LeaseFilter(Struct, frozen=True):
    """Leases with all of these labels that have been in their state for long enough."""

    labels: dict[str, str] = {}
    older: int | None = None
    """Microseconds; None: for any time."""
    text: str = ""
    """In the owner, or in a label written as NAME=VALUE; case folded."""
    consumer: ConsumerId | None = None
    """They have allocations of this one, or ask for them; None: of any, or none."""
    machine: frozenset[str] = frozenset()
    """Names and UUIDs that mean the machine which they concern; empty: any machine, or none."""
    placed: bool = True
    """Whether a lease concerns a machine that only its allocations name."""
    offered_to: str | None = None
    """They are offered to this owner; None: whether or not."""

    def __bool__(self) -> bool:
        scanned = self.older is not None or self.consumer is not None
        scanned = scanned or self.offered_to is not None
        return scanned or bool(self.labels or self.text or self.machine)

    def admits(self, lease: Lease, at: Instant) -> bool:
        """Is a lease one of these at a service time?"""
        if self.older is not None and at - since_of(lease) < self.older:
            return False
        if self.offered_to is not None and not is_offered_to(lease, at, self.offered_to):
            return False
        if self.text and not says(self.text, lease.owner, lease.labels):
            return False
        if self.consumer is not None:
            text = lease.allocations
            # Few leases have allocations: most of these are not decoded.
            if text is None or self.consumer not in text:
                return False
            if holding_of(text).consumer != self.consumer:
                return False
        if self.machine and not self._concerns(lease):
            return False
        return self.labels.items() <= lease.labels.items()

    def _concerns(self, lease: Lease) -> bool:
        """Does a lease concern the machine?"""
        machine, held = self.machine, lease.allocations
        if any(
            value in machine or value.rpartition("/")[2] in machine  # metal3: NAMESPACE/NAME
            for label in MACHINE_LABELS
            if (value := lease.labels.get(label))
        ):
            return True
        # The key of a governor is SYSTEM/UUID/VERB.
        governed = lease.owner.startswith(GOVERNOR)
        if governed and not machine.isdisjoint(lease.key.split("/")[1:2]):
            return True
        # Few leases have allocations: most of these are not decoded.
        if not self.placed or held is None or not any(name in held for name in machine):
            return False
        return not machine.isdisjoint(holding_of(held).allocations)


ALL = LeaseFilter()


LAST = "\U0010ffff"
"""The last code point. Both engines compare keys by code points."""

BEFORE_SURROGATES, AFTER_SURROGATES = "\ud7ff", "\ue000"
"""Code points in between are not characters."""


def keys_with(prefix: str, owner: str | None) -> tuple[str, str]:
    """Return the first key with a prefix, and the least key after all of them.

    Raises INVALID: there is no owner, for whom the index is read, or the prefix cannot be one.
    """
    if owner is None:
        raise Error(Code.INVALID, "key_prefix needs the owner of the keys: ?owner=NAME.")
    if not 1 <= len(prefix) <= KEY_LENGTH_MAX:
        raise Error(Code.INVALID, f"key_prefix must have 1 to {KEY_LENGTH_MAX} characters.")
    check_plain("key_prefix", prefix)
    head = prefix.rstrip(LAST)
    if not head:
        raise Error(Code.INVALID, "key_prefix must have a character before U+10FFFF.")
    last = head[-1]
    return prefix, head[:-1] + (
        AFTER_SURROGATES if last == BEFORE_SURROGATES else chr(ord(last) + 1)
    )


GAVE_UP = frozenset({"gave_up", "unheard", "withdrawn"})
"""Causes of the ends of tickets whose clients do not wait any more."""

VIEWS_SECONDS = 0.005
"""How long leases of a page are converted before other work runs. A ticket may take as long by
itself: its reason is found in up to thousands of windows of bookings."""


SCANNED_AT_A_TIME = 500
"""Leases that one read of a filtered list looks at."""


class NextDue(Struct, frozen=True):
    """The state for a sweeper: the time, and when something is due next; None: nothing."""

    when: When
    due: Instant | None
    late: bool
    """Whether `alive_at` is out of date although deadlines depend on it."""
    skew: int = 0
    """How far service time is ahead of the wall clock: another one means that the clock jumped."""


class AdmissionQueries:
    """Answers queries from the database. Every method raises `Error`: UNAVAILABLE."""

    def __init__(
        self, engine: Engine, service_clock: ServiceClock, ended: EndedLeases, turns: CallerTurns
    ) -> None:
        self._ended = ended
        self._turns = turns
        self._engine = engine
        self._service_clock = service_clock
        self._standings = Positions(engine, self._when)
        self._unheard: dict[str, int] = {}
        self._unheard_next: Instant | None = None
        """Service time from which on it is counted again."""

    async def now(self) -> When:
        """Return the current time."""
        with errors.translated():
            return self._when(await self._engine.read(service_clock.timeline_load()))

    async def next_due(self) -> NextDue:
        """Return when something is due next, and the current time."""
        with errors.translated():
            due, lives = await self._engine.read(reads.next_due_load())
            timeline = await self._engine.read(service_clock.timeline_load())
        when = self._when(timeline)
        late = (lives or due is not None) and self._service_clock.is_late(timeline, when)
        return NextDue(when, due, late, timeline.skew)

    async def booked_pools(self, wall: Instant) -> list[str]:
        """Return the names of the pools that have bookings at a time by the wall clock."""
        with errors.translated():
            return await self._engine.read(reads.booked_pools_load(wall))

    async def all_due(self, at: Instant) -> tuple[list[LeaseId], list[str]]:
        """Return the ids of leases and tickets due at a service time, and the pools to wake."""
        with errors.translated():
            return await self._engine.read(reads.all_due_load(at))

    async def pool(self, name: str) -> PoolView:
        """Return one pool. Raises POOL_NOT_FOUND."""
        pool, when = await self._pool_seen(name)
        return await self._with_first(pool, when, await self._unheard_at(when))

    async def pools(
        self, cursor: str | None, limit: int
    ) -> tuple[list[PoolView], str | None, Cursor]:
        """Return pools after a name, the next cursor, and their revision. Raises INVALID."""
        rows_max = rows_to_read(limit)
        with errors.translated():
            seen = await self._engine.read(reads.pools_window(cursor or "", rows_max))
        page, following = page_of(seen.pools, limit, lambda one: one.pool.name)
        when = self._when(seen.timeline)
        unheard = await self._unheard_at(when)
        views = [await self._with_first(one, when, unheard) for one in page]
        return views, following, Cursor(seen.epoch, seen.revision)

    async def templates(self) -> list[TemplateView]:
        """Return all templates of pools by name."""
        with errors.translated():
            return views_of(await self._engine.read(reads.templates_load()))

    async def pools_with(self, text: str, most: int) -> list[Pool]:
        """Return at most `most` pools with a case-folded text in their names or labels."""
        found: list[Pool] = []
        after: str | None = ""
        while after is not None and len(found) < most:
            with errors.translated():
                seen = await self._engine.read_aside(reads.pools_window(after, PAGE_MAX))
            pools = [one.pool for one in seen.pools]
            found += [one for one in pools if says(text, one.name, one.spec.labels)]
            after = pools[-1].name if len(pools) == PAGE_MAX else None
        return found[:most]

    async def contents(self, name: str, leases: int, tickets: int) -> ContentsView:
        """Return a pool, its first leases and tickets, and their sums, as of one revision.

        Raises POOL_NOT_FOUND.
        """
        with errors.translated():
            seen = await self._engine.read_aside(contents_load(name, leases, tickets))
        if seen is None:
            raise not_found(name)
        when = self._when(seen.timeline)
        views = await self._views([*seen.leases, *seen.tickets], when)
        line = views[len(seen.leases) :]
        # The first ticket of this snapshot: any other read may have one of another revision.
        first = line[0] if line else None
        return ContentsView(
            as_of=Cursor(seen.epoch, seen.revision),
            pool=_pool_view(
                seen.pool,
                when,
                await self._unheard_at(when),
                first,
                await self._overstay(first, seen.pool.pool, when),
            ),
            leases=views[: len(seen.leases)],
            tickets=line,
            granted=seen.granted,
            waiting=seen.waiting,
        )

    async def lease(self, lease: LeaseId, *, asking: bool = False) -> LeaseView:
        """Return one lease or ticket; `asking` as in `standing`. Raises LEASE_NOT_FOUND."""
        with errors.translated():
            seen = await self._engine.read(reads.lease_load(lease))
        if seen is None:
            raise Error(Code.LEASE_NOT_FOUND, requests.unknown_message(lease))
        standing = await self.standing(seen.lease, asking=asking)
        awaited = await self.awaited(seen.lease, {})
        return LeaseView(seen.lease, self._when(seen.timeline), standing, awaited=awaited)

    async def waits(self, lease: LeaseId) -> bool:
        """Return whether it is a waiting ticket now."""
        with errors.translated():
            seen = await self._engine.read(reads.lease_load(lease))
        return seen is not None and seen.lease.state == "waiting"

    async def leases_of(self, leases: Sequence[LeaseId]) -> list[Lease]:
        """Return leases by their ids; missing ones are left out."""
        found = []
        with errors.translated():
            for first in range(0, len(leases), PAGE_MAX):
                page = leases[first : first + PAGE_MAX]
                found += await self._engine.read(reads.leases_load(page))
        return found

    async def tickets(self, after: tuple[int, str], limit: int) -> list[TicketSeen]:
        """Return waiting tickets of all pools in order of arrival, after (arrival, id)."""
        with errors.translated():
            return await self._engine.read_aside(reads.tickets_window(after, limit))

    async def leases(
        self,
        cursor: str | None,
        limit: int,
        pool: str | None = None,
        state: State | None = None,
        owner: str | None = None,
        key_prefix: str | None = None,
        id_prefix: str | None = None,
        only: LeaseFilter = ALL,
        group: str | None = None,
    ) -> tuple[list[LeaseView], str | None, Cursor]:
        """Return leases in the order of their requests, the next cursor, and their revision.

        A filtered page ends after `LEASES_SCANNED_MAX` leases, even if it is short or empty. It may
        take several reads; the revision is that of the first. Raises INVALID.
        """
        rows_max = rows_to_read(limit)
        after = place_parse(cursor, START)
        keys = None if key_prefix is None else keys_with(key_prefix, owner)
        ids = None if id_prefix is None else ids_with(id_prefix)
        if sum(one is not None for one in (keys, ids, group)) > 1:
            raise Error(Code.INVALID, "Set only one of key_prefix, id_prefix and group.")
        size = SCANNED_AT_A_TIME if only else rows_max
        found: list[Lease] = []
        as_of: Cursor | None = None
        scanned, ended = 0, False
        while len(found) < rows_max and not ended and scanned < LEASES_SCANNED_MAX:
            plan = reads.leases_window(
                after, size, pool=pool, state=state, owner=owner, keys=keys, ids=ids, group=group
            )
            with errors.translated():
                seen = await self._engine.read_aside(plan)
            when = self._when(seen.timeline)
            as_of = as_of or Cursor(seen.epoch, seen.revision)
            found += [lease for lease in seen.leases if only.admits(lease, when.moment.at)]
            scanned += len(seen.leases)
            ended = len(seen.leases) < size
            after = after if ended else _place(seen.leases[-1])
        page, following = page_of(found, limit, _place)
        if following is None and not ended:
            following = str(after)
        views = await self._views(page, when)
        assert as_of is not None, "it reads at least once"
        return views, following, as_of

    async def holder(self, pool: str, token: str) -> LeaseView | None:
        """Return the live lease in a pool that has this token; None if there is none."""
        with errors.translated():
            timeline, lease = await self._engine.read(reads.lease_load_by_token(pool, token))
        return None if lease is None else LeaseView(lease, self._when(timeline))

    async def unheard(self) -> dict[str, int]:
        """Count, by pool, the leases that occupy units although they were not renewed in time."""
        return await self._unheard_count(await self.now())

    async def oldest(self) -> dict[str, Ages]:
        """Return the ages of the oldest ticket and the oldest lease of each pool."""
        with errors.translated():
            timeline, found = await self._engine.read_aside(reads.oldest_load())
        at = self._when(timeline).moment.at
        return {
            one.pool: Ages(
                0 if one.asked_at is None else max(0, at - one.asked_at),
                0 if one.granted_at is None else max(0, at - one.granted_at),
            )
            for one in found
        }

    async def _unheard_at(self, when: When) -> dict[str, int]:
        """Return the count as of at most a second ago, because it reads all deadlines."""
        if self._unheard_next is None or when.moment.at >= self._unheard_next:
            return await self._unheard_count(when)
        return self._unheard

    async def _unheard_count(self, when: When) -> dict[str, int]:
        with errors.translated():
            self._unheard = await self._engine.read_aside(reads.unheard_count(when.moment))
        self._unheard_next = Instant(when.moment.at + SECOND)
        return self._unheard

    async def report(self, pool: str, since: int | None = None, *, who: str = "") -> ReportView:
        """Return statistics of a pool's leases that have ended lately, and all recorded outcomes.

        Args:
            pool: its name.
            since: how long ago they may have ended, in microseconds; None: 24 hours.
            who: the caller, who waits for its own requests.

        Raises POOL_NOT_FOUND; OVERLOADED: too many wait.
        """
        _, when = await self._pool_seen(pool)
        asked = LEASES_KEPT_HOURS * HOUR if since is None else since
        known = min(asked, when.moment.at - self._ended.since(when.moment.at))
        plan = reads.report_load(pool, Instant(when.moment.at - known))
        async with self._turns.of(who):
            with errors.translated():
                report = await self._engine.read_aside(plan, slow=True)
            # Sorting tens of thousands of durations would hold the loop.
            return await asyncio.to_thread(_report_view, pool, asked, known, when, report)

    async def _views(self, leases: Sequence[Lease], when: When) -> list[LeaseView]:
        """Return the views of leases and tickets for one answer."""
        views: list[LeaseView] = []
        lines: dict[str, int] = {}
        known: Known = {}
        loop = asyncio.get_running_loop()
        since = loop.time()
        for lease in leases:
            if loop.time() - since > VIEWS_SECONDS:
                await asyncio.sleep(0)
                since = loop.time()
            standing = await self.standing(lease, known=known)
            awaited = await self.awaited(lease, lines)
            views.append(LeaseView(lease, when, standing, awaited=awaited))
        return views

    async def awaited(self, lease: Lease, lines: dict[str, int]) -> int:
        """Return how many tickets wait in the lines of a lease that is kept for inspection.

        0 for other leases. `lines` has the lengths that this answer has read, by pool.
        """
        if lease.kept is None or lease.state != "granted":
            return 0
        for name in units_by_pool(lease.needs):
            if name not in lines:
                with errors.translated():
                    seen = await self._engine.read(reads.pool_load(name))
                lines[name] = sum(one.pool.waiting for one in seen.pools)
        return sum(lines[name] for name in units_by_pool(lease.needs))

    async def standing(
        self, lease: Lease, *, asking: bool = False, known: Known | None = None
    ) -> Standing | None:
        """Return a ticket's standing as of about a second ago; None if it does not wait.

        `asking`: for the client that has just asked for it, so that it counts as waited for;
        `known`: of the same answer, as in `Positions.of`.
        """
        if lease.state != "waiting":
            return None
        with errors.translated():
            return await self._standings.of(lease, asking=asking, known=known)

    async def moves(self, before: Lease, after: Lease) -> list[str]:
        """Return how a ticket moves in each of its lines by a change.

        As of now: no promise, for other tickets come and go.
        """
        if (before.priority, before.arrival) == (after.priority, after.arrival):
            return []
        pools = [*dict.fromkeys(need.pool for need in before.needs)]
        places = [(pool, one) for pool in pools for one in (before, after)]
        with errors.translated():
            ahead = await self._engine.read(places_load(places))
        return [
            _move_text(pool, was, then)
            for pool, was, then in zip(pools, ahead[::2], ahead[1::2], strict=True)
        ]

    def note(self, changes: Changes, when: When) -> None:
        """Mark data about changed pools as stale."""
        self._standings.note(changes, when)

    def _when(self, timeline: Timeline) -> When:
        return self._service_clock.estimate(timeline)

    async def _pool_seen(self, name: str) -> tuple[PoolSeen, When]:
        """Return a pool as stored, and the current time. Raises POOL_NOT_FOUND."""
        with errors.translated():
            seen = await self._engine.read(reads.pool_load(name))
        if not seen.pools:
            raise not_found(name)
        return seen.pools[0], self._when(seen.timeline)

    async def _with_first(self, seen: PoolSeen, when: When, unheard: Mapping[str, int]) -> PoolView:
        """Return a pool with the first ticket of its line."""
        with errors.translated():
            found = await self._standings.first(seen.pool.name) if seen.pool.waiting else None
        first = None if found is None else LeaseView(found[0], when, found[1])
        return _pool_view(seen, when, unheard, first, await self._overstay(first, seen.pool, when))

    async def _overstay(
        self, first: LeaseView | None, pool: Pool, when: When
    ) -> OverstayView | None:
        """Return the lease that a pool's line waits behind for too long."""
        if first is None or first.standing is None:
            return None
        with errors.translated():
            found = await self._standings.overstay(pool.name, first.lease, first.standing)
        if found is None:
            return None
        holder = found.holder
        granted_at = Instant(holder.since + when.wall - when.moment.at)
        return OverstayView(
            holder.lease, name_of(holder.naming), granted_at, found.usual, found.blocks
        )


def _move_text(pool: str, ahead: int, then: int) -> str:
    if ahead == then:
        return f"In the line of {pool} it stays at place {ahead + 1}."
    others = counted(abs(ahead - then), "other ticket")
    order = f"before {others}" if then < ahead else f"behind {others}"
    return f"In the line of {pool} it goes from place {ahead + 1} to {then + 1}, {order}."


def _pool_view(
    seen: PoolSeen,
    when: When,
    unheard: Mapping[str, int],
    first: LeaseView | None,
    overstay: OverstayView | None,
) -> PoolView:
    pool, at = seen.pool, when.moment.at
    opens = pacing.opens_at(pool)
    back = when.wall - at
    return PoolView(
        pool=pool,
        slots=_by_state(seen.slots),
        figures=figures_of(pool, seen.slots, at),
        unheard=unheard.get(pool.name, 0),
        next_grant_at=None if opens is None or opens <= at else Instant(opens + back),
        paused_until=None if pool.paused_until is None else Instant(pool.paused_until + back),
        first=first,
        overstay=overstay,
        back=back,
        at=at,
        shares=tuple(fair_share.shares_of(pool, at)),
    )


async def pools_all(engine: Engine) -> dict[str, Pool]:
    """Return all pools by name. Raises `Error`: UNAVAILABLE."""
    found: dict[str, Pool] = {}
    after = ""
    while True:
        with errors.translated():
            seen = await engine.read_aside(reads.pools_window(after, PAGE_MAX))
        found.update((one.pool.name, one.pool) for one in seen.pools)
        if len(seen.pools) < PAGE_MAX:
            return found
        after = seen.pools[-1].pool.name


def _place(lease: Lease) -> PageMarker:
    return PageMarker(Instant(lease.arrival), lease.id)


def _report_view(
    pool: str, asked: int, known: int, when: When, report: reads.PoolReportData
) -> ReportView:
    granted = [(end, end.granted_at) for end in report.ends if end.granted_at is not None]
    gone = [end for end in report.ends if end.granted_at is None and end.cause in GAVE_UP]
    first = when.moment.at - known
    if report.cut:  # older ones were not read
        first = min((end.ended_at for end in report.ends), default=first)
    return ReportView(
        pool=pool,
        asked=asked,
        covered=when.moment.at - first,
        cut=report.cut,
        leases=len(granted),
        waited=percentiles(at - end.asked_at for end, at in granted),
        held=percentiles(end.ended_at - at for end, at in granted),
        gave_up=len(gone),
        gave_up_after=percentiles(end.ended_at - end.asked_at for end in gone),
        causes=dict(sorted(Counter(end.cause for end in report.ends).items())),
        outcomes=[OutcomeCount(*line) for line in report.outcomes],
    )


def _by_state(groups: Iterable[SlotGroup]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for group in groups:
        counts[DRAINED if group.drained and not group.occupied else group.state] += group.slots
    return dict(sorted(counts.items()))
