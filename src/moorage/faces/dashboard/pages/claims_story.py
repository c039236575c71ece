"""Who took of a machine, and gave it back: for its story.

Consumers that hold something say when they came. What others have given back is known from the
change feed, of which the newest revisions are followed: once for all readers, and only if somebody
looks at a machine. A change row says what a consumer holds afterwards, so what it gave back is
known if an earlier row was seen.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary

from moorage.faces.dashboard.routing import ROOT
from moorage.service.app import Service
from moorage.service.feed.catalog_index import CatalogIndex
from moorage.service.feed.change_rows import value_of
from moorage.service.feed.watch import ChangesGoneError, Cursor, Window
from moorage.service.values import time_of
from moorage.wire.providers import ConsumerShown

REVISIONS_BACK = 1_000
"""How many revisions ago the first change was that is followed; those behind more begin again."""

READS_MAX = 4
"""Windows of changes that one page reads: if more follow, the next page reads them."""

EVENTS_KEPT = 2_000
HOLDINGS_KEPT = 5_000
"""Consumers whose last allocations are remembered."""

KINDS = frozenset({"consumer"})

Amounts = Mapping[str, Mapping[str, int]]
"""By provider and resource class."""


class ClaimEvent(NamedTuple):
    """A consumer held something else afterwards."""

    at: datetime
    consumer: str
    who: str
    before: Amounts
    after: Amounts
    """Nothing: the consumer is gone."""


class RecentClaims:
    """The newest changes of consumers in one service."""

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._events: deque[ClaimEvent] = deque(maxlen=EVENTS_KEPT)
        self._held: OrderedDict[str, tuple[str, Amounts | None]] = OrderedDict()
        self._reading = asyncio.Lock()

    async def of(self, service: Service, providers: Collection[str]) -> list[ClaimEvent]:
        """Return the events of some providers, oldest first, up to now. Raises `Error`."""
        async with self._reading:
            await self._follow(service)
        return [
            one for one in self._events if _of(one.before, providers) != _of(one.after, providers)
        ]

    async def _follow(self, service: Service) -> None:
        now = await service.watch.now()
        cursor = self._cursor
        if (
            cursor is None
            or cursor.epoch != now.epoch
            or not 0 <= now.revision - cursor.revision <= REVISIONS_BACK
        ):
            self._begin(Cursor(now.epoch, max(0, now.revision - REVISIONS_BACK)))
        for _ in range(READS_MAX):
            assert self._cursor is not None
            try:
                window = await service.watch.window(self._cursor, KINDS)
            except ChangesGoneError as gone:
                self._begin(gone.oldest)
                continue
            self._take(window)
            if not window.cut:
                return

    def _begin(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._events.clear()
        self._held.clear()

    def _take(self, window: Window) -> None:
        for row in (one.row for one in window.changes):
            who, before = self._held.pop(row.key, ("", None))
            after: Amounts = {}
            if row.body is not None:
                value = value_of(row.kind, row.body)
                who = f"{value['user_id']} of {value['project_id']}"
                after = value["allocations"]
                if before is None and value["created_at"] == value["updated_at"]:
                    before = {}
                self._held[row.key] = who, after
                if len(self._held) > HOLDINGS_KEPT:
                    self._held.popitem(last=False)
            if before is not None and before != after:
                self._events.append(ClaimEvent(time_of(row.at), row.key, who, before, after))
        self._cursor = window.next


_CLAIMS: WeakKeyDictionary[CatalogIndex, RecentClaims] = WeakKeyDictionary()
"""Those of each service of this process: they end with it."""


async def claims_of(
    service: Service, providers: Collection[str], present: Iterable[ConsumerShown]
) -> list[tuple[datetime, str, str]]:
    """Return what was taken of some providers and given back: when, a text, an address or nothing.

    `present`: consumers that hold something of them now. Raises `Error`.
    """
    claims = _CLAIMS.setdefault(service.index, RecentClaims())
    recent = await claims.of(service, providers)
    seen = {one.consumer for one in recent}
    found = [(one.at, *_text(one, providers)) for one in recent]
    for holder in present:
        if holder.uuid not in seen:
            held = {one.provider: one.resources for one in holder.allocations}
            text = f"Taken by {holder.user} of {holder.project}: {_amounts(_of(held, providers))}"
            found.append((holder.created_at, text, _address(holder.uuid)))
    return found


def _text(event: ClaimEvent, providers: Collection[str]) -> tuple[str, str]:
    before, after = _of(event.before, providers), _of(event.after, providers)
    address = _address(event.consumer) if event.after else ""
    if not after:
        return f"Given back by {event.who}: {_amounts(before)}", address
    verb = "Changed" if before else "Taken"
    return f"{verb} by {event.who}: {_amounts(after)}", address


def _of(amounts: Amounts, providers: Collection[str]) -> dict[str, int]:
    """Return what is of some providers, by resource class."""
    found: dict[str, int] = {}
    for provider, resources in amounts.items():
        if provider in providers:
            for name, amount in resources.items():
                found[name] = found.get(name, 0) + amount
    return found


def _amounts(held: Mapping[str, int]) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in sorted(held.items()))


def _address(consumer: str) -> str:
    return f"{ROOT}/consumers/{consumer}"
